"""A line for each chain and each verdict."""

import numpy as np
import pytest
from tests.analysis.test_windows import STORY
from tests.tui.fake_engine import MS, FakeEngine, event

from strata_tui.analysis.pipeline_log import PipelineLog
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, Events, Kind

BEGIN = "strata pipeline: "
MORE = [
    event(Kind.launch, 1 * MS, stage=0, window=1),
    event(Kind.launch, 7 * MS, stage=0, window=2),
    event(Kind.commit, 8 * MS, 1 * MS, stage=0, window=1, rows=2, b=1),
    event(Kind.draft_step, 20 * MS, 1 * MS, stage=DRAFT_LANE, window=1, rows=2, a=0, b=5),
    event(Kind.draft_step, 21 * MS, 2 * MS, stage=DRAFT_LANE, window=1, a=1, b=6),
    event(Kind.draft_step, 23 * MS, 1 * MS, stage=DRAFT_LANE, window=1, a=2, b=-1),
    event(Kind.commit, 38 * MS, 1 * MS, stage=1, window=3, rows=2),
    event(Kind.request_end, 70 * MS, window=1),
]
LINES = [
    "verdict w1 p=0 T=2 a=1 emitted=2 ahead=0 guess=w2 kept estimate=0.80 front=1 in-flight=0",
    "chain w1 caught-up=2 outputs=2 ms=4.00",
    "verdict w2 p=0 T=2 a=1 emitted=2 ahead=- guess=w3 kept estimate=0.70 front=1 in-flight=0",
    "verdict w3 p=0 T=2 a=1 emitted=2 ahead=- guess=w4 rolled back estimate=0.60 front=1 in-flight=1 "
    "(bonus wrong, second choice right)",
    "verdict w6 p=0 T=2 a=0 emitted=1 ahead=- guess=w7 ended estimate=0.90",
]


def story() -> Events:
    events = np.array(STORY + MORE, EVENT_DTYPE)
    return events[np.argsort(events["start_ns"] + events["dur_ns"], kind="stable")]


@pytest.mark.parametrize("cut", [1, 5, 100])
def test_lines_by_hand_however_the_events_are_cut(cut: int) -> None:
    log, lines = PipelineLog(), []
    events = story()
    for at in range(0, len(events), cut):
        lines += log.take(events[at : at + cut])
    lines += log.finish()
    assert lines == [BEGIN + line for line in LINES]


def test_a_time_that_is_emulated_is_marked_in_its_line() -> None:
    log = PipelineLog(emulated=True)
    lines = log.take(story()) + log.finish()
    timed = [line for line in lines if " ms=" in line]
    assert timed == [BEGIN + LINES[1] + " [emulated]"]
    assert [line for line in lines if line not in timed] == [
        BEGIN + line for line in LINES if "ms=" not in line
    ]


def test_a_line_waits_for_what_the_stages_still_have_to_tell() -> None:
    """The commit ahead of W1's verdict is drained after the verdict."""
    events = story()
    late = (events["kind"] == Kind.commit) & (events["window"] == 1)
    log = PipelineLog()
    until_verdict = events[(events["start_ns"] < 25 * MS) & ~late]
    assert log.take(until_verdict) == []
    assert log.take(events[late]) == []
    assert log.take(events[events["start_ns"] >= 25 * MS]) == []
    assert log.take(events[:0])[0] == BEGIN + LINES[0]


def test_a_window_without_a_guess_says_none() -> None:
    log = PipelineLog()
    assert log.take(np.array([event(Kind.verdict, 0, 1, window=1, rows=3, a=2, b=3)], EVENT_DTYPE)) == []
    assert log.finish() == [BEGIN + "verdict w1 p=0 T=3 a=2 emitted=3 ahead=- guess=none"]


def test_memory_is_bounded_and_every_verdict_has_its_line() -> None:
    engine = FakeEngine(stage_ms=(1.0, 1.0), acceptance=0.85)
    engine.switches.pipeline_windows = 2
    engine.session().start([1], 3000, None, [])
    log, lines, n_verdicts = PipelineLog(), 0, 0
    for _ in range(100):
        engine.clock.advance(30)
        events = engine.events()
        n_verdicts += np.count_nonzero(events["kind"] == Kind.verdict)
        lines += sum("verdict" in line for line in log.take(events))
    assert n_verdicts > 500
    assert lines + sum("verdict" in line for line in log.finish()) == n_verdicts
    assert len(log._windows) <= 256


def test_noise_makes_lines_and_no_errors() -> None:
    rng = np.random.default_rng(5)
    events = np.zeros(3000, EVENT_DTYPE)
    events["kind"] = rng.integers(0, 40, len(events))
    events["stage"] = rng.integers(0, 256, len(events))
    events["window"] = rng.integers(0, 60, len(events))
    events["a"], events["b"] = rng.integers(-(2**31), 2**31, (2, len(events)))
    log = PipelineLog()
    lines = log.take(events) + log.finish()
    assert lines and all(line.startswith(BEGIN) and line.isprintable() for line in lines)
