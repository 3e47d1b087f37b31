"""The explanation of a stretch of decoding: which windows it is of, and its figures."""

import numpy as np
import pytest
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.bound import actual_ns, lower_bound, measured
from strata_tui.analysis.doing import CAUSES
from strata_tui.analysis.idle import stage_times
from strata_tui.analysis.passages import passages
from strata_tui.analysis.view import View
from strata_tui.analysis.why import FEWEST_WINDOWS, MOST_WINDOWS, PARTS, explain
from strata_tui.events import Events

NONE: dict[str, object] = {}


def played(engine: FakeEngine, ms: float, view: View) -> Events:
    """Decode for so long, and take what was recorded."""
    parts = []
    session = engine._session or engine.session()
    for _ in range(int(ms / 50)):
        if session.finish:
            session.start([1, 2, 3], 10_000, None, [])
        engine.clock.advance(50)
        parts.append(engine.events())
        view.take(parts[-1])
    return np.concatenate(parts)


def test_nothing_is_explained_before_the_first_verdict() -> None:
    assert explain(View(2), 10**12, NONE, 2) is None


@pytest.mark.parametrize("windows", [0, 3])
def test_figures_are_those_of_the_analyses_it_is_made_of(windows: int) -> None:
    engine, view = FakeEngine(stage_ms=(3.0, 2.0, 4.0), acceptance=0.85), View(3)
    engine.switches.pipeline_windows = windows
    events = played(engine, 700, view)
    why = explain(view, engine.now_ns(), {"pipeline_windows": windows}, 3)
    assert why is not None and 20 < why.windows < MOST_WINDOWS
    times = stage_times(events, 3, why.t0_ns, why.t1_ns)
    for shares, time in zip(why.stages, times, strict=True):
        assert sum(shares) == pytest.approx(1)
        assert shares[0] == pytest.approx((time.run_ns + time.publish_ns) / time.span_ns)
        assert shares[PARTS.index("idle_verdict")] == pytest.approx(time.idle_shares()["verdict"])
    assert len(PARTS) == 3 + len(CAUSES)
    text = passages(events)
    nodes = measured(text, 3)
    assert why.bounds is not None and why.windows == len(nodes)
    assert why.bounds.actual_ms == pytest.approx(actual_ns(text, events, 3) / len(nodes) / 1e6)
    same = lower_bound(nodes, max(0, windows - 1))
    assert why.bounds.same_depth_ms == pytest.approx(same.ns / len(nodes) / 1e6)
    assert {(part, stage): share for part, stage, share in why.path} == pytest.approx(same.shares())
    assert [share for *_, share in why.path] == sorted((share for *_, share in why.path), reverse=True)


def test_it_begins_with_the_last_flip_once_there_are_windows_enough_behind_it() -> None:
    engine, view = FakeEngine(), View(2)
    played(engine, 800, view)
    engine.switches.overlap = True
    played(engine, 50, view)
    why = explain(view, engine.now_ns(), NONE, 2)
    assert why is not None and not why.since
    played(engine, 300, view)
    why = explain(view, engine.now_ns(), NONE, 2)
    assert why is not None and why.since == "overlap=1"
    (flip,) = [mark for mark in view.marks if mark.kind == "toggle"]
    assert why.t0_ns >= flip.at_ns and why.windows >= FEWEST_WINDOWS
    engine.switches.rate = 300.0
    played(engine, 300, view)
    why = explain(view, engine.now_ns(), NONE, 2)
    assert why is not None and why.since == "overlap=1", "the cap on the pace is no flip"


def test_a_moment_of_the_past_is_explained_with_what_was_verified_by_then() -> None:
    engine, view = FakeEngine(), View(2)
    played(engine, 400, view)
    then = engine.now_ns()
    before = explain(view, then, NONE, 2)
    played(engine, 400, view)
    assert explain(view, then, NONE, 2) == before


def test_windows_of_several_texts_are_bounded_text_by_text() -> None:
    engine, view = FakeEngine(), View(2)
    played(engine, 200, view)
    engine.cancelled = True
    played(engine, 300, view)
    why = explain(view, engine.now_ns(), NONE, 2)
    assert view.requests == 2 and why is not None and why.bounds is not None
    assert why.bounds.same_depth_ms <= why.bounds.actual_ms * 1.001
    assert why.stages[0][PARTS.index("idle_no_work")] > 0


def test_it_stays_within_its_most_windows() -> None:
    engine, view = FakeEngine(stage_ms=(0.5, 0.5)), View(2)
    played(engine, 1000, view)
    why = explain(view, engine.now_ns(), NONE, 2)
    assert why is not None and why.windows == MOST_WINDOWS
