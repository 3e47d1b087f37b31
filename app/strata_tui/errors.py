"""What can go wrong in a way that the user should read."""


class StrataError(Exception):
    """Its text is one line, and begins with the operation in brackets where there is one."""


def why(error: Exception) -> str:
    """Of the system's errors its words and the file's name, without the number that Python puts in front."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror


class BadInput(StrataError):
    """What was given can't be used: the line says what was expected and what came. Exit code 2."""
