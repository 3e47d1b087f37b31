"""The line that tells how far a large file is read."""

import io
import itertools
import sys
from pathlib import Path

import pytest

pytest.importorskip("strata_tui._core")

from strata_tui.cli import reading_line
from strata_tui.gguf_file import ModelFile

MODEL = Path(__file__).parents[1] / "data/oracles/micro-qwen35.gguf"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def looking(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr; at every look at the clock a second has passed."""
    stderr, clock = Terminal(), itertools.count()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(reading_line.time, "monotonic", lambda: float(next(clock)))
    return stderr


def test_a_large_file_is_told_in_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    said = looking(monkeypatch)
    monkeypatch.setattr(reading_line, "LARGE_BYTES", 1000)
    reading_line.read_weights(ModelFile(MODEL))
    text = said.getvalue()
    assert "\rreading weights: 0.0 of 0.0 GB, " in text and " GB/s\x1b[K" in text
    assert text.endswith("\r\x1b[K") and "\n" not in text


def test_a_small_file_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = looking(monkeypatch)
    reading_line.read_weights(ModelFile(MODEL))
    assert said.getvalue() == ""


def test_nothing_is_read_where_memory_or_terminal_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch)

    def never(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(reading_line, "LARGE_BYTES", 1000)
    monkeypatch.setattr(reading_line, "page_in", never)
    monkeypatch.setattr(reading_line, "available_memory", lambda: 5000)
    reading_line.read_weights(ModelFile(MODEL))
    monkeypatch.setattr(reading_line, "available_memory", lambda: 1 << 40)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    reading_line.read_weights(ModelFile(MODEL))
