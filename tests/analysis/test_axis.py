"""What stretch of time is shown."""

from itertools import pairwise

import pytest

from strata_tui.analysis.axis import HOLD_NS, LADDER_NS, TimeAxis, duration, tick_step

MS = 1_000_000
SECOND = 1_000 * MS


def every_ten_ms(at_ns: int) -> int:
    return at_ns // (10 * MS) * 10 * MS


def test_live_and_narrow_it_holds_and_then_begins_with_a_window() -> None:
    axis = TimeAxis(50 * MS)
    seen = [axis.look(5 * SECOND + 3 * MS + i * 50 * MS, 80, every_ten_ms) for i in range(40)]
    assert all(t1 - t0 == 50 * MS and t0 % (10 * MS) == 0 for t0, t1 in seen)
    jumps = sum(a != b for a, b in pairwise(seen))
    assert jumps == pytest.approx(2 * SECOND / HOLD_NS, abs=1)
    for i, (_, t1) in enumerate(seen):
        assert t1 <= 5 * SECOND + 3 * MS + i * 50 * MS, "never beyond the present"


def test_live_and_wide_it_scrolls_by_whole_columns() -> None:
    axis = TimeAxis(8 * SECOND)
    cell = 8 * SECOND // 80
    for i in range(50):
        t0, t1 = axis.look(100 * SECOND + i * 37 * MS, 80, every_ten_ms)
        assert t0 % cell == 0 and t1 - t0 == 8 * SECOND


def test_without_windows_it_shows_the_time_that_passed() -> None:
    t0, t1 = TimeAxis(50 * MS).look(SECOND, 80, lambda at: None)
    assert t1 - t0 == 50 * MS and SECOND - 50 * MS <= t1 <= SECOND


def test_frozen_it_stays() -> None:
    axis = TimeAxis(50 * MS)
    before = axis.look(5 * SECOND, 80, every_ten_ms)
    axis.freeze()
    axis.fit(100.0)
    assert axis.look(9 * SECOND, 80, every_ten_ms) == before
    axis.resume()
    assert axis.look(9 * SECOND, 80, every_ten_ms) != before


def test_zoom_keeps_the_middle_and_stays_on_the_ladder() -> None:
    axis = TimeAxis(50 * MS)
    axis.look(5 * SECOND, 80, every_ten_ms)
    axis.freeze()
    t0, t1 = axis.look(5 * SECOND, 80, every_ten_ms)
    for steps in (1, 1, -1, -1, -1, 40, -80):
        axis.zoom(steps)
        a, b = axis.look(5 * SECOND, 80, every_ten_ms)
        assert b - a in LADDER_NS
        assert abs((a + b) // 2 - (t0 + t1) // 2) <= 2


def test_it_does_not_move_beyond_what_there_is() -> None:
    axis = TimeAxis(50 * MS)
    axis.look(5 * SECOND, 80, every_ten_ms)
    for _ in range(1000):
        axis.pan(-0.25, 4 * SECOND, 5 * SECOND)
    assert axis.look(5 * SECOND, 80, every_ten_ms)[0] == 4 * SECOND
    for _ in range(1000):
        axis.pan(0.25, 4 * SECOND, 5 * SECOND)
    assert axis.look(5 * SECOND, 80, every_ten_ms)[1] == 5 * SECOND


@pytest.mark.parametrize("ms", [0.05, 3.0, 9.7, 44.0, 1200.0])
def test_by_itself_it_shows_a_few_windows_and_does_not_flutter(ms: float) -> None:
    axis = TimeAxis()
    axis.fit(ms)
    span = axis.span_ns
    assert 2.5 <= span / (ms * MS) <= 6.5
    for wobble in (0.85, 1.2, 1.0, 0.9):
        axis.fit(ms * wobble)
        assert axis.span_ns == span
    axis.zoom(-1)
    zoomed = axis.span_ns
    axis.fit(ms * 10)
    assert axis.span_ns == zoomed, "a person's zoom stays"


@pytest.mark.parametrize(("ns", "text"), [(500, "500 ns"), (20_000, "20 us"), (5e6, "5 ms"), (2e9, "2 s")])
def test_durations_have_a_unit(ns: float, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize("span", [30 * MS, 50 * MS, SECOND, 333 * SECOND])
def test_ticks_leave_room_for_their_words(span: int) -> None:
    step = tick_step(span, 60, 12)
    assert step in LADDER_NS and step * 60 / span >= 12
