"""NO_COLOR, looked at as a terminal sees it."""

import re
import time

import pytest
from tests.tui.terminal import model, terminal

pytest.importorskip("strata_tui._core")

ALLOWED = {"", "0", "1", "3", "4", "7"}  # reset, bold, italic, underlined, reversed


def sent(out: bytes) -> set[str]:
    """The parts of every sequence that sets how text looks."""
    return {part.decode() for found in re.findall(rb"\x1b\[([0-9;]*)m", out) for part in found.split(b";")}


def test_no_colour_is_sent_whatever_is_looked_at() -> None:
    with terminal(model(), NO_COLOR="1") as its:
        its.read_until(b"live")
        for keys, shown in ((b"p", b"decoding paused"), (b"y", b"why:"), (b"?", b"keys")):
            its.type(keys)
            its.read_until(shown)
        time.sleep(0.2)
        its.type(b"q")
        its.process.terminate()
        its.wait()
        assert sent(its.out) <= ALLOWED


def test_a_locale_without_utf_8_is_drawn_with_ascii() -> None:
    with terminal(model(), LC_ALL="C") as its:
        its.read_until(b"live")
        its.read_until(b"LC_ALL=C is n")  # folded wherever it is
        its.process.terminate()
        its.wait()
        assert "\u2588".encode() not in its.out and "\u25cf".encode() not in its.out


def test_with_colour_it_would_be() -> None:
    with terminal(model()) as its:
        its.read_until(b"live")
        its.process.terminate()
        its.wait()
        assert "38" in sent(its.out)
