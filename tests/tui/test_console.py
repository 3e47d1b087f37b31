"""The console as the command line starts it."""

import gc
from typing import Any

import pytest

from strata_tui.options import RunOptions
from strata_tui.tui import console
from strata_tui.tui.load import Load


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
    monkeypatch.setattr(console, "open_model", lambda options, progress: at_open.append(gc.isenabled()))
    gc.disable()
    try:
        assert console.run_console(RunOptions()) == 0
        assert at_open == [False, True]
    finally:
        gc.enable()
        gc.unfreeze()
