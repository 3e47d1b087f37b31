"""The first thing that a person sees: the console's modules take up to half a second to import."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from strata_tui.terminal_text import printable


@contextmanager
def first_line(what: str) -> Iterator[None]:
    """A line on the terminal, with the words that the console begins with; it goes when the block ends.

    Args:
        what: is opened; as a file may be called, so not yet fit for a terminal.
    """
    # A browser's page is no terminal, and a dumb one can't take a line back.
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        yield
        return
    coding = sys.stderr.encoding or "ascii"
    said = f" strata  opening {printable(what, newlines=False)}"
    line = said.encode(coding, "backslashreplace").decode(coding)  # as wide as it will be written
    room = max(1, os.get_terminal_size(sys.stderr.fileno()).columns - 1)
    line = line[: room if line.isascii() else room // 2]  # one row whatever is in it
    print(line, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
