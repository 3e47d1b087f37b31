"""Bytes that aren't UTF-8, and the exit code of a console that dies."""

import os
from pathlib import Path

import pytest
from tests.tui.terminal import model, terminal
from textual.driver import Driver

from strata_tui.tui import console
from strata_tui.tui.app import Console
from strata_tui.tui.keyboard import with_keyboard
from strata_tui.tui.opened import Opened


@pytest.mark.parametrize("other", [b"\xff", b"\x80", b"\xc3(", b"\x1b[200~\xe9t\xe9\x1b[201~"])
def test_bytes_that_are_not_utf_8_do_not_end_it(other: bytes) -> None:
    pytest.importorskip("strata_tui._core")
    with terminal(model()) as its:
        its.read_until(b"live")
        its.type(other)
        its.type(b"?")
        its.read_until(b"every key and word")
        its.type(b"qq")
        assert its.wait() == 0
        assert b"Traceback" not in its.out and its.is_restored


def test_in_the_prompt_they_are_seen_and_what_is_utf_8_stays() -> None:
    pytest.importorskip("strata_tui._core")
    with terminal(model()) as its:
        its.read_until(b"live")
        its.type(b"n\xe9")
        its.read_until("\ufffd".encode())
        its.type("\u00fc".encode()[:1])
        its.type("\u00fc".encode()[1:])  # a character whose bytes come apart
        its.read_until("\u00fc".encode())


class Browser(Driver):  # type: ignore[misc]
    """Not a terminal's."""


def test_a_browser_keeps_its_driver() -> None:
    assert with_keyboard(Browser) is Browser


@pytest.mark.parametrize("where", ["in the app", "in a thread of textual's"])
def test_a_console_that_dies_of_an_exception_exits_with_1(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: Console) -> None:
        if where == "in the app":
            raise RuntimeError("a defect")
        self.panic("a defect")  # what textual does then: it sets no return code

    def unopened(progress: object) -> Opened:
        raise AssertionError("it was dead by then")

    run = Console.run
    monkeypatch.setitem(os.environ, "XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(Console, "on_mount", die)
    monkeypatch.setattr(Console, "run", lambda self: run(self, headless=True))
    assert console._show(unopened, ascii_only=False) == 1
