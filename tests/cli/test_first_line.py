"""The line that stands on the terminal until the console does."""

import io
import os
import sys

import pytest
from tests.tui.terminal import Terminal

from strata_tui.cli import first_line as told
from strata_tui.cli.first_line import first_line


class Screen(io.StringIO):
    coding = "utf-8"

    @property
    def encoding(self) -> str:
        return self.coding

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def said(what: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(told.os, "get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    with pytest.raises(ZeroDivisionError), first_line(what):
        raise ZeroDivisionError
    return screen.getvalue()


@pytest.mark.parametrize(
    ("what", "columns", "line"),
    [
        ("model.gguf", 80, " strata  opening model.gguf"),
        ("model.gguf", 20, " strata  opening mo"),
        ("a\x1b[2Jb\nc", 80, " strata  opening a[2Jb c"),
        ("東" * 40, 40, " strata  opening 東東"),
        ("model.gguf", 0, " "),
    ],
)
def test_one_row_that_goes_whatever_happens(
    what: str, columns: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(what, columns, monkeypatch) == f"{line}\r\x1b[K"


def test_what_a_locale_cannot_write_counts_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Screen, "coding", "ascii")
    assert said("éé.gguf", 30, monkeypatch) == r" strata  opening \xe9\xe9.ggu" + "\r\x1b[K"


def test_nothing_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "dumb")
    with first_line("model.gguf"):
        pass
    assert screen.getvalue() == ""


def test_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with first_line("model.gguf"):
        pass
    assert capsys.readouterr() == ("", "")


def test_it_comes_before_the_console_and_is_gone_after_it() -> None:
    terminal = Terminal()
    terminal.read_until(b"opening the embedded model")
    assert terminal.out == b" strata  opening the embedded model"
    terminal.read_until(b"\x1b[?1049h")
    assert terminal.out.startswith(b" strata  opening the embedded model\r\x1b[K")
    terminal.type(b"q")
    assert terminal.wait() == 0
    assert terminal.is_restored
