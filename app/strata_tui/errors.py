"""What can go wrong in a way that the user should read."""


class StrataError(Exception):
    """Its text is one line, and begins with the operation in brackets where there is one."""


class BadInput(StrataError):
    """What was given can't be used: the line says what was expected and what came. Exit code 2."""
