"""The command line. Errors become exit codes here and nowhere else."""

from __future__ import annotations

import os
import sys

CHECK_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
READER_GONE = 141  # as a shell tells of SIGPIPE


def main() -> None:
    """The program's entry: runs a command, says errors in one line, sets the exit code."""
    try:
        code = _run()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # here, where a closed pipe has its exit code
    except KeyboardInterrupt:  # as early as while modules are imported
        code = INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone: nothing is left to say
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        code = READER_GONE
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> object:
    import click

    from strata_tui.cli.group import cli
    from strata_tui.errors import BadInput, StrataError, why

    _open_streams()
    try:
        if "_STRATA_TUI_COMPLETE" in os.environ:  # a shell asks how a word may go on
            return cli.main(prog_name="strata-tui", standalone_mode=False)
        # Not by `main`: it would make an exit code of its own of a closed pipe.
        with cli.make_context("strata-tui", sys.argv[1:]) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "strata-tui"
        return _fail(f"{error.format_message()} (see {where} --help)", BAD_INPUT)
    except BadInput as error:
        return _fail(str(error), BAD_INPUT)
    except StrataError as error:
        return _fail(str(error), CHECK_FAILED)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            raise
        return _fail(why(error) if _has_folder() else "the working folder is gone", BAD_INPUT)


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


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
