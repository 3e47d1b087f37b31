"""The console as the command line starts it."""

import gc
from typing import Any

import pytest
from tests.tui.console import console as seated

from strata_tui.options import RunOptions
from strata_tui.tui import console, opening
from strata_tui.tui.glyphs import ASCII
from strata_tui.tui.load import Load


async def test_ascii_holds_for_what_textual_draws_too() -> None:
    async with seated(size=(80, 24), glyphs=ASCII) as seat:
        await seat.play(500)
        await seat.press("b", ms=100)
        assert "by turns" in seat.notes or "flip a switch first" in seat.notes
        assert seat.screen.isascii()
        await seat.press("question_mark", ms=0)
        assert "every key" in seat.screen and seat.screen.isascii()
        await seat.press("escape", "ctrl+p", ms=0)
        await seat.pilot.pause(0.3)
        assert seat.screen.isascii()


@pytest.mark.parametrize(
    ("environment", "is_ascii"),
    [
        ({}, False),
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1@euro"}, True),
        ({"LANG": "de_DE.utf8"}, False),
        ({"LC_CTYPE": "ja_JP.eucJP", "LANG": "ja_JP.UTF-8"}, True),
        ({"LC_ALL": "C", "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}, False),
    ],
)
def test_a_terminal_without_utf_8_gets_ascii_and_a_line(environment: dict[str, str], is_ascii: bool) -> None:
    glyphs, line = console.glyphs_for(False, environment)
    assert (glyphs is ASCII) == is_ascii
    assert ("is not UTF-8" in line) == is_ascii
    assert console.glyphs_for(True, environment) == (ASCII, "")


def test_garbage_is_collected_again_behind_the_first_paint(monkeypatch: pytest.MonkeyPatch) -> None:
    at_open: list[bool] = []

    class Screen:
        open_error = None
        return_code = 0

        def __init__(self, open_model: Any, *_: object, **__: object) -> None:
            self.open_model = open_model

        def run(self) -> None:
            at_open.append(gc.isenabled())
            self.open_model(Load())

        def close(self) -> None:
            pass

        still_opens = False

    monkeypatch.setattr(console, "Console", Screen)
    monkeypatch.setattr(opening, "open_model", lambda options, progress: at_open.append(gc.isenabled()))
    gc.disable()
    try:
        assert console.run_console(RunOptions()) == 0
        assert at_open == [False, True]
    finally:
        gc.enable()
        gc.unfreeze()
