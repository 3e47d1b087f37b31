"""Drafts in flight behind the text: dim, and corrected with their verdict."""

import numpy as np
import pytest
from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.windows import WINDOW_DTYPE, WindowArray
from strata_tui.tui.drafted import drafted
from strata_tui.tui.text import TextPanel


def windows(*rows: tuple[int, Fate, int, int, tuple[int, ...]]) -> WindowArray:
    """Position, fate, accepted, guessed, drafts of each."""
    made = np.zeros(len(rows), WINDOW_DTYPE)
    for window, (position, fate, accepted, guessed, drafts) in zip(made, rows, strict=True):
        window["position"], window["fate"], window["accepted"] = position, fate, accepted
        window["guessed"], window["rows"], window["drafts"] = guessed, 1 + len(drafts), -1
        window["drafts"][: len(drafts)] = drafts
    return made


def piece(token: int) -> str:
    return f"{token} "


W0 = (9, Fate.FRESH, -1, -1, (11, 12, 13))
GUESS = (13, Fate.IN_FLIGHT, -1, 14, (15, 16))
NEXT = (16, Fate.GUESS, -1, 17, ())


@pytest.mark.parametrize(
    ("log", "n_tokens", "told"),
    [
        ([W0], 10, [("11 12 13 ", "draft")]),
        ([W0, GUESS, NEXT], 10, [("11 12 13 ", "draft"), ("14 15 16 ", "guess"), ("17 ", "guess")]),
        ([W0, NEXT], 10, [("11 12 13 ", "draft")]),  # one in between is missing
        ([W0], 11, []),  # the text is further
        ([W0], 8, []),
        ([(9, Fate.FRESH, 3, -1, (11, 12, 13))], 10, []),  # it has its verdict
        ([(9, Fate.ROLLED_BACK, -1, 10, (1,)), (9, Fate.FRESH, -1, -1, (2,))], 10, [("2 ", "draft")]),
        ([(9, Fate.GATED, -1, 10, (1,))], 10, []),
        ([(9, Fate.KEPT_AFTER_FRESH, -1, 10, (1, 2))], 10, [("1 2 ", "draft")]),  # its row 0 is text by now
        ([], 10, []),
    ],
)
def test_drafts_behind_the_last_token(log: list, n_tokens: int, told: list) -> None:
    assert drafted(windows(*log), n_tokens, piece) == told
    assert drafted(windows(*log), n_tokens, None) == []


def rows(panel: TextPanel) -> str:
    return " ".join(panel.render_line(y).text.strip() for y in range(panel.size.height)).strip()


async def test_what_is_foreseen_gives_way_to_the_text() -> None:
    async with console(size=(120, 40)) as seat:
        panel = seat.app.face.text_panel
        before = rows(panel)
        panel.add("The ship ", "text")
        panel.foresee([("sailed away", "draft"), (" and never", "guess")])
        assert rows(panel) == f"{before}The ship sailed away and never"
        assert "sailed" not in panel.text, "it is no part of the text"
        panel.add("sank.", "text")
        assert rows(panel).endswith("The ship sank.")
        panel.foresee([("word " * 60, "draft")])
        assert rows(panel).count("word") == 60, "it is wrapped as the text is"
        await seat.pilot.resize_terminal(80, 40)
        await seat.pilot.pause()
        assert rows(panel).count("word") == 60
        panel.foresee([])
        assert "word" not in rows(panel)


async def test_a_held_text_foresees_nothing_new() -> None:
    async with console(FakeEngine(acceptance=0.85)) as seat:
        seat.engine.switches.pipeline_windows = 2
        seen = set()
        for _ in range(30):
            await seat.play(20, step_ms=20)
            seen |= {style for _, style in seat.app.face.text_panel._foreseen}
        assert seen == {"draft", "guess"}
        await seat.press("space", ms=0)
        await seat.play(500)
        assert seat.app.face.text_panel._foreseen == ()


async def test_hostile_drafts_cannot_harm_the_screen() -> None:
    async with console(piece=lambda token: "a\x1b[2J\x9b5m\n\u202eb") as seat:
        for _ in range(20):
            await seat.play(20, step_ms=20)
            assert "\x1b" not in seat.screen and "\x9b" not in seat.screen and "\u202e" not in seat.screen
