"""The command line. Errors become exit codes here and nowhere else."""

from __future__ import annotations

import os
import sys

CHECK_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main() -> None:
    """The program's entry: runs a command, says errors in one line, sets the exit code."""
    try:
        code = _run()
    except KeyboardInterrupt:  # as early as while modules are imported
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> object:
    import click

    from strata_tui.cli.group import cli
    from strata_tui.errors import BadInput, StrataError

    _open_streams()
    try:
        return cli.main(prog_name="strata-tui", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "strata-tui"
        return _fail(f"{error.format_message()} (see {where} --help)", BAD_INPUT)
    except BadInput as error:
        return _fail(str(error), BAD_INPUT)
    except StrataError as error:
        return _fail(str(error), CHECK_FAILED)
    except BrokenPipeError:  # whoever read our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CHECK_FAILED
    except OSError as error:
        return _fail(f"{error.filename or 'system'}: {error.strerror or error}", BAD_INPUT)


def _open_streams() -> None:
    """A standard stream that the caller closed (`>&-`) becomes an empty one before a file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for the life of the process)


def _fail(line: str, code: int) -> int:
    from strata_tui.terminal_text import printable

    # A line may quote a file's own words: nothing of them moves the cursor.
    print("strata-tui: " + printable(" ".join(line.split())), file=sys.stderr)
    return code
