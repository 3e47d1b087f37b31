"""The keys that move in time and look closer."""

import re

from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine

from strata_tui.tui.glyphs import COLOUR


async def test_space_freezes_the_lanes_while_recording_goes_on() -> None:
    async with console() as seat:
        await seat.play(1000)
        await seat.press("space", ms=0)
        frozen = seat.app.framing.picture
        windows = seat.app.sitting.view.windows.decoded
        await seat.play(2000)
        assert seat.app.framing.picture is frozen
        assert "FROZEN" in seat.screen and "s behind live" in seat.screen
        assert seat.app.sitting.view.windows.decoded > windows + 50
        assert "PAUSED" not in seat.screen.upper(), "decoding goes on"
        await seat.press("p")
        assert "s behind live, decoding paused" in seat.screen
        await seat.press("p")
        await seat.press("space", ms=500)
        assert "FROZEN" not in seat.screen and "live" in seat.screen
        assert seat.app.framing.picture is not frozen


async def test_arrows_move_and_zoom() -> None:
    async with console() as seat:
        await seat.play(2000)
        span = seat.app.sitting.axis.span_ns
        await seat.press("up")
        assert seat.app.sitting.axis.span_ns < span
        await seat.press("down", "down")
        assert seat.app.sitting.axis.span_ns > span
        await seat.press("space")
        at = seat.app.framing.picture.t0_ns
        await seat.press("left", "left")
        assert seat.app.framing.picture.t0_ns < at
        await seat.press("shift+right", "right", "right")
        assert seat.app.framing.picture.t1_ns <= seat.engine.now_ns()
        await seat.press("f", ms=600)
        assert not seat.app.sitting.axis.frozen and seat.app.sitting.axis.auto
        assert "FROZEN" not in seat.screen


def told(seat) -> str:
    """What stands under the lanes."""
    return seat.app.sitting.looking.told(seat.app.sitting.begin_ns)


async def test_u_goes_to_the_longest_gap_and_names_its_cause() -> None:
    async with console(FakeEngine(stage_ms=(2.0, 2.5, 2.0, 5.0))) as seat:
        await seat.play(1500)
        await seat.press("u", ms=0)
        seat.app.refresh_view()
        await seat.pilot.pause()
        assert seat.app.sitting.axis.frozen and "FROZEN" in seat.screen
        first = seat.app.sitting.looking.moment
        assert re.search("waits? for |wait while ", told(seat)) and told(seat) in seat.screen
        assert re.match(r"[^:]+, \d+\.\d{3} ms: ", told(seat)), (
            "how long stands where no narrow screen cuts it"
        )
        assert (
            seat.app.sitting.axis.left_ns <= first.start_ns and first.end_ns <= seat.app.sitting.axis.right_ns
        )
        await seat.press("u")
        second = seat.app.sitting.looking.moment
        assert second.end_ns - second.start_ns <= first.end_ns - first.start_ns
        await seat.press("space")
        assert seat.app.sitting.looking.moment is None and told(seat) not in seat.screen.split()


async def test_j_and_m_go_to_verdicts_and_misses() -> None:
    engine = FakeEngine(acceptance=0.85)
    engine.switches.pipeline_windows = 2
    async with console(engine) as seat:
        await seat.play(1000)
        await seat.press("j")
        newest = seat.app.sitting.looking.moment
        assert "verdict of window" in told(seat) and "drafts accepted" in seat.screen
        await seat.press("J", "J")
        before = seat.app.sitting.looking.moment
        assert before.start_ns < newest.start_ns
        await seat.press("j", "j")
        assert seat.app.sitting.looking.moment == newest
        await seat.press("M")
        miss = seat.app.sitting.looking.moment
        assert "is rolled back: " in told(seat) and miss.start_ns < newest.start_ns + 10**9
        await seat.press("M")
        assert seat.app.sitting.looking.moment.start_ns < miss.start_ns
        await seat.press("m")
        assert seat.app.sitting.looking.moment == miss


async def test_i_puts_a_cursor_that_the_arrows_move_over_spans_and_lanes() -> None:
    async with console() as seat:
        await seat.play(1000)
        await seat.press("i")
        seen = [seat.app.sitting.looking.moment]
        for _ in range(12):
            await seat.press("right", ms=0)
            seen.append(seat.app.sitting.looking.moment)
        starts = [moment.start_ns for moment in seen]
        assert starts == sorted(starts) and len(set(starts)) > 8
        texts = " ".join(moment.text for moment in seen)
        assert "runs window" in texts and "waits for a verdict" in texts and "commits window" in texts
        await seat.press("down")
        assert seat.app.sitting.looking.moment.lane == 1 and told(seat) in seat.screen
        await seat.press("up", "up")
        assert seat.app.sitting.looking.moment.lane == 255
        await seat.press("left")
        assert seat.app.sitting.looking.inspecting
        await seat.press("escape")
        assert not seat.app.sitting.looking.inspecting and seat.app.sitting.looking.moment is None


async def test_k_lays_the_critical_path_over_the_lanes() -> None:
    async with console() as seat:
        await seat.play(1000)
        assert COLOUR.path not in seat.screen
        await seat.press("space", "k")
        assert COLOUR.path in seat.screen
        lanes = {lane for lane, *_ in seat.app.framing.path}
        assert {0, 1, 254, 255} == lanes, "serial windows: both stages, the draft chain and the verdict"
        await seat.press("k")
        assert COLOUR.path not in seat.screen
