"""The mouse in the lanes: the wheel and a drag move in time, ctrl-wheel zooms, a click tells a span."""

import re
from pathlib import Path

import pytest
from tests.record.test_comparison import run
from tests.tui.console import Seat, console
from tests.tui.fake_engine import FakeEngine
from textual import events

from strata_tui.record.compare import compare
from strata_tui.tui.aligned import Aligned
from strata_tui.tui.lanes import WHEEL_SHARE
from strata_tui.tui.scrub import NAMES
from strata_tui.tui.side_by_side import SideBySide


async def wheel(seat: Seat, of: type[events.MouseEvent], ctrl: bool = False) -> None:
    """Textual's pilot has no wheel."""
    lanes = seat.app.face.lanes
    x, y = lanes.region.x + 40, lanes.region.y + 2
    event = of(lanes, 40, 2, 0, 0, 0, False, False, ctrl, screen_x=x, screen_y=y)
    lanes.post_message(event)
    await seat.pilot.pause()
    seat.app.refresh_view()


async def test_the_wheel_moves_in_time_and_freezes() -> None:
    async with console() as seat:
        await seat.play(2000)
        axis = seat.app.sitting.axis
        left, span = axis.left_ns, axis.span_ns
        await wheel(seat, events.MouseScrollUp)
        await wheel(seat, events.MouseScrollUp)
        assert axis.frozen and axis.left_ns == left - 2 * int(WHEEL_SHARE * span)
        assert "FROZEN" in seat.screen
        await wheel(seat, events.MouseScrollDown)
        assert axis.left_ns == left - int(WHEEL_SHARE * span)


async def test_with_ctrl_it_zooms() -> None:
    async with console() as seat:
        await seat.play(2000)
        span = seat.app.sitting.axis.span_ns
        await wheel(seat, events.MouseScrollUp, ctrl=True)
        nearer = seat.app.sitting.axis.span_ns
        await wheel(seat, events.MouseScrollDown, ctrl=True)
        assert nearer < span and seat.app.sitting.axis.span_ns > nearer


async def test_what_is_dragged_stays_under_the_mouse() -> None:
    async with console() as seat:
        await seat.play(2000)
        lanes, axis = seat.app.face.lanes, seat.app.sitting.axis
        left = axis.left_ns
        await seat.pilot.mouse_down(lanes, offset=(40, 2))
        for x in (45, 43, 60):
            await seat.pilot.hover(lanes, offset=(x, 2))
        await seat.pilot.mouse_up(lanes, offset=(60, 2))
        seat.app.refresh_view()
        moved = (left - axis.left_ns) * lanes.columns / axis.span_ns
        assert moved == pytest.approx(20, abs=0.01)
        assert not seat.app.sitting.looking.inspecting, "a drag is no click"
        await seat.pilot.hover(lanes, offset=(70, 2))
        assert (left - axis.left_ns) * lanes.columns / axis.span_ns == pytest.approx(20, abs=0.01)


async def test_a_click_tells_the_span_under_it() -> None:
    async with console(FakeEngine(stage_ms=(3.0, 3.4))) as seat:
        await seat.play(2000)
        await seat.press("space", ms=0)
        lanes, picture = seat.app.face.lanes, seat.app.framing.picture
        lane = picture.lanes[1]
        column = 0
        for run_ in lane.runs:  # of a window, on stage 1
            if run_.state.name.startswith("RUN"):
                break
            column += run_.length
        at = column + run_.length // 2
        y = 1 + lanes.lane_height(0)
        await seat.pilot.click(lanes, offset=(lanes.label_width + at, y))
        await seat.play(100)
        moment = seat.app.sitting.looking.moment
        assert moment.lane == 1 and moment.text == f"runs window {run_.window}, 5 rows"
        assert re.search(rf"stage 1, \d+\.\d{{3}} ms: runs window {run_.window}\b", seat.screen)
        await seat.press("escape")
        assert seat.app.sitting.looking.moment is None


async def test_a_click_beside_the_lanes_tells_nothing() -> None:
    async with console() as seat:
        await seat.play(1000)
        lanes = seat.app.face.lanes
        for offset in ((3, 2), (60, 0), (lanes.size.width - 2, 2)):
            await seat.pilot.click(lanes, offset=offset)
            await seat.pilot.pause()
        assert seat.app.sitting.looking.moment is None


async def test_before_there_is_a_model_the_mouse_does_nothing() -> None:
    async with console() as seat:
        seat.app.is_open = False
        await wheel(seat, events.MouseScrollUp)
        await seat.pilot.click(seat.app.face.lanes, offset=(40, 2))
        seat.app.is_open = True


async def test_two_runs_are_gone_through_by_their_bar(tmp_path: Path) -> None:
    app = SideBySide(Aligned(compare(run(tmp_path, 40, 4), run(tmp_path, 60, 2))))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        n, parts = app.aligned.n_tokens, app.scrub.parts
        await pilot.click(app.scrub, offset=(NAMES + parts // 2, 1))
        assert app.token == (parts // 2) * n // parts
        await pilot.mouse_down(app.scrub, offset=(NAMES + 3, 0))
        await pilot.hover(app.scrub, offset=(NAMES + 10, 0))
        assert app.token == 10 * n // parts
        await pilot.mouse_up(app.scrub, offset=(2, 0))
        assert app.token == 0
