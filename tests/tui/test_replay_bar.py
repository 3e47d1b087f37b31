"""A replay's bar: a click and a drag go to a moment, forward and back; the screen is that of the moment."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tui.console import console
from tests.tui.test_replay import here, recorded, replay

from strata_tui.events import Kind
from strata_tui.record.playback import Playback
from strata_tui.tui.commands import ONLY_A_REPLAY, SEEK_SHARE
from strata_tui.tui.glyphs import ASCII
from strata_tui.tui.replay_bar import ENDS

__all__ = ["here"]


def seconds(tape: Playback) -> float:
    return (tape.now_ns() - tape.begin_ns) / 1e9


async def test_the_bar_stands_in_place_of_the_prompt_and_moves(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, tape):
        assert not seat.prompt.display
        bar = seat.app.face.replay_bar
        line = bar.render_line(0).text
        assert line.index("●") == ENDS and line.endswith(f"{(tape.end_ns - tape.begin_ns) / 1e9:.1f} s    ")
        assert line.count("▼") == 1, "where a switch was flipped"
        await seat.play(1000)
        at = bar.render_line(0).text.index("●") - ENDS
        assert at == 1_000_000_000 * bar.cells // (tape.end_ns - tape.begin_ns)
        assert bar.render_line(0).text.startswith("    1.0 s")
    async with replay(recording, glyphs=ASCII) as (seat, _):
        assert seat.app.face.replay_bar.render_line(0).text.isascii()


async def test_a_click_goes_there_and_back(here: Path) -> None:
    recording, text, _ = await recorded(here, max_tokens=120)
    recording = replace(recording, switches={**recording.switches, "overlap": False})
    async with replay(recording) as (seat, tape):
        bar = seat.app.face.replay_bar
        length = tape.end_ns - tape.begin_ns

        def taken() -> np.ndarray:
            return np.sort(seat.app.sitting.view.events["start_ns"])

        def ended() -> np.ndarray:
            events = recording.events
            ends = events["start_ns"] + events["dur_ns"]
            return np.sort(events["start_ns"][ends <= tape.now_ns()])

        for share in (0.8, 0.3, 0.31, 0.0, 1.0, 0.1):
            x = ENDS + round(share * (bar.cells - 1))
            await seat.pilot.click(bar, offset=(x, 0))
            await seat.pilot.pause()
            assert tape.now_ns() == bar.moment_of(x)
            assert abs(seconds(tape) * 1e9 - share * length) <= length / bar.cells
            assert np.array_equal(taken(), ended()), share
            shown = "".join(seat.text.split()).removesuffix("[therecordingendshere]")
            assert shown in "".join(text.split())
            toggles = recording.events[recording.events["kind"] == Kind.toggle]
            flipped = int(toggles["start_ns"][0]) <= tape.now_ns()
            assert seat.app.sitting.switches.overlap == flipped
        await seat.play(500)
        assert np.array_equal(taken(), ended()) and "▶ replay" in seat.screen


async def test_dragging_goes_along_and_a_frozen_view_shows_the_moment(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, tape):
        bar = seat.app.face.replay_bar
        bar._due_s = 0.0
        await seat.play(500)
        await seat.press("space", ms=0)
        span = seat.app.sitting.axis.span_ns
        await seat.pilot.mouse_down(bar, offset=(ENDS + 90, 0))
        for x in (80, 60, 40):
            bar._due_s = 0.0
            await seat.pilot.hover(bar, offset=(ENDS + x, 0))
            assert tape.now_ns() == bar.moment_of(ENDS + x)
        await seat.pilot.mouse_up(bar, offset=(ENDS + 20, 0))
        at = bar.moment_of(ENDS + 20)
        assert tape.now_ns() == at and tape.held, "it stands still there"
        picture = seat.app.framing.picture
        assert picture.t1_ns == at and picture.t1_ns - picture.t0_ns == span
        assert "PAUSED replay" in seat.screen
        await seat.pilot.hover(bar, offset=(ENDS + 100, 0))
        assert tape.now_ns() == at, "the button is up"
        await seat.press("space", ms=300)
        assert tape.now_ns() == at + 300_000_000


async def test_the_keys_go_by_a_twentieth_and_to_the_ends(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, tape):
        step = int(SEEK_SHARE * (tape.end_ns - tape.begin_ns))
        await seat.press("greater_than_sign", "greater_than_sign", ms=0)
        assert tape.now_ns() - tape.begin_ns == 2 * step
        await seat.press("less_than_sign", ms=0)
        assert tape.now_ns() - tape.begin_ns == step
        await seat.press("end", ms=0)
        assert tape.ended
        await seat.press("home", ms=0)
        assert tape.now_ns() == tape.begin_ns
        await seat.press("y", ms=0)
        await seat.press("greater_than_sign", "v", "l", "less_than_sign", "a", ms=200)


async def test_a_live_console_cannot_be_gone_through() -> None:
    async with console() as seat:
        await seat.play(100)
        await seat.press("less_than_sign", "home", ms=0)
        assert seat.notes.count(ONLY_A_REPLAY) == 2


@pytest.mark.parametrize("width", [20, 40, 200])
async def test_every_cell_is_the_bar(here: Path, width: int) -> None:
    recording, _, _ = await recorded(here, ms=400)
    async with replay(recording, size=(width, 24)) as (seat, tape):
        bar = seat.app.face.replay_bar
        assert len(bar.render_line(0).text) == width
        assert bar.moment_of(ENDS) == tape.begin_ns
        assert bar.moment_of(width) in (tape.begin_ns, tape.end_ns)
        assert bar.cell_of(tape.end_ns) == bar.cells - 1
