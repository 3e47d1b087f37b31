"""What a flip gave: which windows are compared, their figures, and when nothing is said."""

import numpy as np
import pytest
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.flips import FEWEST, FEWEST_CLEAR, GROUP, MOST, STRADDLE, Flip, FlipLog, Side
from strata_tui.analysis.view import View
from strata_tui.analysis.windows import WINDOW_DTYPE
from strata_tui.events import Kind


class Run:
    """A fake engine that decodes one long text, its view, and the log of its flips."""

    def __init__(self) -> None:
        self.engine, self.view, self.log = FakeEngine(acceptance=0.85), View(2), FlipLog()
        self.engine.session().start([1, 2, 3], 100_000, None, [])

    def play(self, ms: float) -> None:
        for _ in range(int(ms / 50)):
            self.engine.clock.advance(50)
            self.view.take(self.engine.events())
            self.log.look(self.view)


def test_the_windows_on_both_sides_of_a_flip_are_compared() -> None:
    run = Run()
    run.play(1000)
    assert run.log.flips == []
    run.engine.switches.pipeline_windows = 2
    run.play(100)
    assert run.log.flips == [], "too few windows behind it"
    run.play(900)
    (flip,) = run.log.flips
    assert flip.text == "pipeline-windows=2"
    events = run.view.events
    verdicts = np.sort(events[events["kind"] == Kind.verdict], order="start_ns")
    ends = (verdicts["start_ns"] + verdicts["dur_ns"]).astype(np.int64)
    before = np.flatnonzero(ends <= flip.at_ns)[STRADDLE:]
    assert flip.before.windows == len(before)
    groups = before[len(before) % GROUP :].reshape(-1, GROUP)
    tokens = verdicts["b"][groups].sum(axis=1)
    ms = np.array([ends[g[-1]] - ends[g[0] - 1] for g in groups]) / 1e6
    assert flip.before.tokens_per_window.median == pytest.approx(np.median(tokens) / GROUP)
    assert flip.before.ms_per_window.median == pytest.approx(np.median(ms) / GROUP)
    low, high = np.percentile(tokens / ms * 1e3, [25, 75])
    assert (flip.before.tokens_per_s.low, flip.before.tokens_per_s.high) == pytest.approx((low, high))
    assert flip.after.windows == np.count_nonzero(ends > flip.at_ns) - STRADDLE
    assert flip.gain > 0.1


def test_flips_that_follow_too_soon_are_told_as_one_and_later_ones_apart() -> None:
    run = Run()
    run.play(600)
    run.engine.switches.overlap = True
    run.play(50)
    run.engine.switches.draft_max = 2
    run.play(600)
    assert [flip.text for flip in run.log.flips] == ["overlap=1 draft-max=2"]
    first = run.log.flips[0]
    run.engine.switches.draft_max = 4
    run.play(600)
    assert [flip.text for flip in run.log.flips] == ["overlap=1 draft-max=2", "draft-max=4"]
    assert run.log.flips[0].before == first.before
    assert run.log.flips[1].before == run.log.flips[0].after


def test_the_cap_on_the_pace_is_no_flip_and_costs_no_window_time() -> None:
    run = Run()
    run.play(600)
    run.engine.switches.rate = 100.0
    run.play(1500)
    assert run.log.flips == []
    run.engine.switches.overlap = True
    run.play(1500)
    (flip,) = run.log.flips
    assert flip.before.ms_per_window.median < 12 and flip.before.tokens_per_s.median > 200


def test_it_can_begin_anew() -> None:
    run = Run()
    run.play(600)
    run.engine.switches.overlap = True
    run.play(600)
    run.log.begin_anew(run.engine.now_ns())
    run.play(600)
    assert [flip.text for flip in run.log.flips] == ["overlap=1"]
    run.engine.switches.overlap = False
    run.play(600)
    assert run.log.flips[1].before.windows < 70, "only windows behind the new beginning"


def test_a_side_needs_its_windows_and_spreads_that_touch_overlap() -> None:
    windows = np.zeros(FEWEST, WINDOW_DTYPE)
    windows["emitted"], windows["busy_ns"] = 2, 10_000_000
    assert Side.of(windows[1:]) is None
    side = Side.of(windows)
    assert side is not None and side.windows == FEWEST
    for spread, value in ((side.ms_per_window, 10), (side.tokens_per_window, 2), (side.tokens_per_s, 200)):
        assert (spread.low, spread.median, spread.high) == pytest.approx((value,) * 3)
    assert side.tokens_per_s.overlaps(side.tokens_per_s)
    assert MOST >= FEWEST


def side(n: int, ms: float, spread: float, seed: int) -> Side:
    """Windows of three tokens that take about so long."""
    rng = np.random.default_rng(seed)
    windows = np.zeros(n, WINDOW_DTYPE)
    windows["busy_ns"] = rng.normal(ms, spread, n) * 1e6
    windows["emitted"] = 3
    found = Side.of(windows)
    assert found is not None
    return found


def test_a_difference_is_one_when_windows_and_distance_suffice() -> None:
    def clear(n: int, ms: float, spread: float = 1.0) -> bool:
        return Flip("overlap=1", 0, side(n, 40, spread, 1), side(n, ms, spread, 2)).is_clear

    assert clear(FEWEST_CLEAR, 30)
    assert not clear(FEWEST_CLEAR - GROUP, 30), "so few windows may all be of one stretch of the text"
    assert not clear(FEWEST_CLEAR, 40)
    assert not clear(FEWEST_CLEAR, 38, spread=12.0), "within its own error"
