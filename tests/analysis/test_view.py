"""The view model against counts made event by event, however the events are cut into drains."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.tui.fake_engine import MS, FakeEngine, event

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import SHARE_COLUMNS, LaneState
from strata_tui.analysis.view import View, toggle_text
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Kind


def decoded(engine: FakeEngine, view: View, ms: float, step_ms: float = 17.0) -> np.ndarray:
    """Let the engine write for `ms`, drained every `step_ms`; every event that was seen."""
    seen = []
    for _ in range(int(ms / step_ms)):
        engine.clock.advance(step_ms)
        seen.append(engine.events())
        view.take(seen[-1])
    return np.concatenate(seen)


def started(engine: FakeEngine, max_tokens: int = 5000):
    session = engine.session()
    session.start([1, 2, 3], max_tokens, None, [])
    return session


@pytest.mark.parametrize("n_stages", [1, 2, 3, 4])
@pytest.mark.parametrize("overlap", [False, True])
def test_counters_are_those_of_the_events(n_stages: int, overlap: bool) -> None:
    engine, view = FakeEngine(stage_ms=(2.0,) * n_stages), View(n_stages)
    engine.switches.overlap = overlap
    started(engine)
    events = decoded(engine, view, 2000)
    rates = view.rates(engine.now_ns())
    verdicts = events[events["kind"] == Kind.verdict]
    assert len(verdicts) > 50
    assert rates.windows == len(verdicts)
    assert rates.drafted == sum(int(v["rows"]) - 1 for v in verdicts)
    assert rates.accepted == sum(int(v["a"]) for v in verdicts)
    assert rates.tokens == np.count_nonzero(events["kind"] == Kind.token)
    for k, (hit, had) in enumerate(rates.accepted_per_position, start=1):
        assert had == sum(1 for v in verdicts if v["rows"] > k)
        assert hit == sum(1 for v in verdicts if v["a"] >= k)
    assert rates.tokens_per_window == pytest.approx(sum(int(v["b"]) for v in verdicts) / len(verdicts))


def test_what_is_shown_does_not_depend_on_how_it_was_drained() -> None:
    views = []
    for step in (3.0, 50.0, 1000.0):
        engine, view = FakeEngine(), View(2)
        engine.switches.rate = 120
        started(engine)
        decoded(engine, view, 3000, step)
        views.append((view, engine.now_ns()))
    (first, now), *others = views
    t0, t1 = now - 400 * MS, now - 100 * MS
    for other, other_now in others:
        assert other_now == now
        smoothed = other.rates(now).tokens_per_s_smoothed
        assert smoothed == pytest.approx(first.rates(now).tokens_per_s_smoothed)
        assert replace(other.rates(now), tokens_per_s_smoothed=0) == replace(
            first.rates(now), tokens_per_s_smoothed=0
        )
        assert other.picture(t0, t1, 90) == first.picture(t0, t1, 90)
        np.testing.assert_array_equal(other.windows.rows, first.windows.rows)


def test_ms_per_window_leaves_out_what_was_held_back() -> None:
    free, capped = FakeEngine(), FakeEngine()
    capped.switches.rate = 40
    figures = []
    for engine in (free, capped):
        view = View(2)
        started(engine)
        events = decoded(engine, view, 4000)
        figures.append(view.rates(engine.now_ns()))
        verdicts = events[events["kind"] == Kind.verdict]
        held = int(events[events["kind"] == Kind.throttle]["dur_ns"].sum())
        end = (verdicts["start_ns"] + verdicts["dur_ns"]).astype(np.int64)
        begin = int(events[events["kind"] == Kind.window]["start_ns"].min())
        busy = end[-1] - begin - held
        assert figures[-1].ms_per_window == pytest.approx(busy / len(verdicts) / 1e6, rel=0.02)
    assert figures[1].tokens_per_s_session == pytest.approx(40, rel=0.05)
    assert figures[1].ms_per_window == pytest.approx(figures[0].ms_per_window, rel=0.05)
    assert figures[1].held_share > 0.5


def test_rates_are_tokens_over_time() -> None:
    view = View(1)
    begin = 10**9
    times = begin + 50 * MS + np.arange(200) * 5 * MS
    rows = [event(Kind.request_begin, begin, window=1)]
    rows += [event(Kind.token, int(t), a=1) for t in times]
    view.take(np.array(rows, EVENT_DTYPE))
    rates = view.rates(int(times[-1]))
    assert rates.first_token_ms == pytest.approx(50)
    assert rates.tokens_per_s == pytest.approx(200, rel=0.01)
    assert rates.tokens_per_s_smoothed == pytest.approx(200, rel=0.02)
    assert rates.tokens_per_s_session == pytest.approx(200)
    assert rates.gap_p50_ms == pytest.approx(5) and rates.gap_p95_ms == pytest.approx(5)


def test_a_slow_text_has_a_rate_too() -> None:
    view = View(1)
    rows = [event(Kind.request_begin, 0, window=1)]
    rows += [event(Kind.token, int(t * 1e9), a=1) for t in (4, 8, 12, 16)]
    view.take(np.array(rows, EVENT_DTYPE))
    assert view.rates(int(16e9)).tokens_per_s == pytest.approx(0.25)


def test_nothing_is_known_before_the_first_event() -> None:
    view = View(2)
    view.take(np.zeros(0, EVENT_DTYPE))
    rates = view.rates(5 * 10**9)
    assert rates.tokens_per_s is None and rates.ms_per_window is None and rates.accepted_per_position == ()
    picture = view.picture(0, 10**9, 50, now_ns=10**9)
    assert [lane.stage for lane in picture.lanes] == [0, 1, DRAFT_LANE, HOST_LANE]
    assert all([run.state for run in lane.runs] == [LaneState.UNKNOWN] for lane in picture.lanes)


def test_lanes_show_the_wait_of_an_overlapped_reader() -> None:
    engine, view = FakeEngine(stage_ms=(5.0, 5.0)), View(2)
    engine.switches.overlap = True
    started(engine)
    decoded(engine, view, 300)
    picture = view.picture(engine.now_ns() - 100 * MS, engine.now_ns() - 10 * MS, 200)
    states = {run.state for run in picture.lanes[1].runs}
    assert {LaneState.WAIT, LaneState.RUN_EVEN, LaneState.RUN_ODD} <= states
    for lane in picture.lanes:
        assert sum(run.length for run in lane.runs) == 200
        assert sum(lane.shares) == 100


def test_a_throttled_stage_is_never_idle() -> None:
    engine, view = FakeEngine(stage_ms=(1.0, 1.0)), View(2)
    engine.switches.rate = 10
    started(engine)
    decoded(engine, view, 2000)
    now = engine.now_ns()
    picture = view.picture(now - 1000 * MS, now, 200, now_ns=now, held=LaneState.THROTTLED)
    shown = [run for lane in picture.lanes[:2] for run in lane.runs]
    assert sum(run.length for run in shown if run.state == LaneState.THROTTLED) > 300
    assert all(run.length < 3 for run in shown if run.state == LaneState.IDLE)


def test_a_program_that_has_not_reported_back_is_in_flight_not_idle() -> None:
    view, ms = View(1), MS
    view.take(
        np.array(
            [
                event(Kind.request_begin, 0, window=1),
                event(Kind.window, 0, window=1, rows=1),
                event(Kind.launch, 0, 10 * ms, stage=0, window=1),
            ],
            EVENT_DTYPE,
        )
    )
    picture = view.picture(0, 1000 * ms, 100, now_ns=1000 * ms)
    assert [(run.state, run.length) for run in picture.lanes[0].runs] == [
        (LaneState.HOST, 1),
        (LaneState.IN_FLIGHT, 99),
    ]
    shares = dict(zip((name for name, _ in SHARE_COLUMNS), picture.lanes[0].shares, strict=True))
    assert shares["host"] == 100, "shares cover what has reported back"


def test_a_toggle_is_a_mark_at_its_column() -> None:
    engine, view = FakeEngine(), View(2)
    started(engine)
    decoded(engine, view, 200)
    engine.switches.overlap = True
    events = decoded(engine, view, 200)
    at = int(events[events["kind"] == Kind.toggle]["start_ns"][0])
    picture = view.picture(at - 40 * MS, at + 60 * MS, 50)
    assert [(column, mark.text) for column, mark in picture.marks] == [(20, "overlap=1")]


def pipelined(n_stages: int = 2) -> tuple[FakeEngine, View]:
    engine = FakeEngine(stage_ms=(3.0,) * n_stages, acceptance=0.85)
    engine.switches.pipeline_windows = n_stages
    return engine, View(n_stages)


@pytest.mark.parametrize("n_stages", [2, 4])
def test_what_was_rolled_back_is_lost_and_not_run(n_stages: int) -> None:
    engine, view = pipelined(n_stages)
    started(engine)
    events = decoded(engine, view, 3000)
    begin, now = view.begin_ns, engine.now_ns() - 100 * MS  # all that began by then is decided
    picture = view.picture(begin, now, 3000)
    lost = set(events["window"][events["kind"] == Kind.guess_rolled_back].tolist())
    names = [name for name, _ in SHARE_COLUMNS]
    for lane in picture.lanes[:n_stages]:
        shown = {run.window: run.state for run in lane.runs if run.window in lost}
        assert all(state not in (LaneState.RUN_EVEN, LaneState.RUN_ODD) for state in shown.values())
        here = events[(events["stage"] == lane.stage) & (events["start_ns"] < now)]
        for_nothing = (here["kind"] == Kind.undo) | (
            (here["kind"] == Kind.run) & np.isin(here["window"], list(lost))
        )
        share = 100 * int(here["dur_ns"][for_nothing].sum()) / (now - begin)
        assert lane.shares[names.index("lost")] == pytest.approx(share, abs=1.1)
        assert sum(lane.shares) == 100
    assert picture.lanes[0].shares[names.index("lost")] > 5
    assert picture.lanes[n_stages - 1].shares[names.index("lost")] == 0, "the last stage runs no guess"
    assert {picture.fates[window] for window in lost if window in picture.fates} == {Fate.ROLLED_BACK}


def test_a_run_is_a_guess_until_it_is_decided() -> None:
    rows = [
        event(Kind.request_begin, 0, window=1),
        event(Kind.window, 0, window=1, rows=4),
        event(Kind.window, 0, window=2, rows=4, b=4),
        event(Kind.guess_launched, 0, window=2, a=1),
        event(Kind.run, 0, 10, stage=0, window=1),
        event(Kind.run, 10, 10, stage=0, window=2),
    ]

    def states(*more: tuple[int, ...]) -> list[LaneState]:
        view = View(1)
        view.take(np.array([*rows, *more], EVENT_DTYPE))
        return [run.state for run in view.picture(0, 20, 2).lanes[0].runs]

    assert states() == [LaneState.RUN_ODD, LaneState.GUESS]
    assert states(event(Kind.guess_rolled_back, 20, window=2)) == [LaneState.RUN_ODD, LaneState.LOST]
    assert states(event(Kind.guess_ended, 20, window=2)) == [LaneState.RUN_ODD, LaneState.LOST]
    assert states(event(Kind.guess_kept, 20, window=2, b=1)) == [LaneState.RUN_ODD, LaneState.RUN_EVEN]


def test_neighbours_differ_in_shade_whatever_was_lost_between_them() -> None:
    engine, view = pipelined()
    started(engine)
    decoded(engine, view, 1500)
    now = engine.now_ns() - 100 * MS
    last_stage = view.picture(now - 400 * MS, now, 2000).lanes[1]
    ran = [run for run in last_stage.runs if run.state in (LaneState.RUN_EVEN, LaneState.RUN_ODD)]
    assert len(ran) > 20
    for before, after in pairwise(ran):
        assert (before.window == after.window) == (before.state == after.state)


def test_commits_ahead_and_undos_have_states_of_their_own() -> None:
    engine, view = pipelined()
    started(engine)
    decoded(engine, view, 1000)
    now = engine.now_ns()
    states = {run.state for run in view.picture(now - 500 * MS, now, 4000).lanes[0].runs}
    assert {LaneState.COMMIT, LaneState.COMMIT_AHEAD, LaneState.UNDO, LaneState.LOST} <= states


def test_memory_is_bounded_and_counters_stay_exact() -> None:
    engine, view = FakeEngine(stage_ms=(0.2, 0.2)), View(2, capacity=500)
    started(engine, 10**6)
    events = decoded(engine, view, 3000)
    assert len(view.events) == 500 and view.events_let_go == len(events) - 500
    assert view.rates(engine.now_ns()).windows == np.count_nonzero(events["kind"] == Kind.verdict)


def test_drafts_of_a_window_carry_their_fate() -> None:
    engine, view = FakeEngine(), View(2)
    started(engine)
    events = decoded(engine, view, 500)
    window = view.windows.rows[-3]
    drafts = events[(events["kind"] == Kind.draft_token) & (events["window"] == window["id"])]
    assert window["drafts"][: len(drafts)].tolist() == drafts["a"].tolist()
    assert window["rows"] == len(drafts) + 1 and window["end_ns"] > window["start_ns"]
    assert view.windows_before(int(window["start_ns"]), 1)["id"].tolist() == [window["id"]]


@pytest.mark.parametrize(
    ("switch", "value", "text"),
    [
        (0, 1, "overlap=1"),
        (5, 250_000, "theta=0.25"),
        (3, 4, "draft-max=4"),
        (2, 1, "draft=mtp"),
        (2, 9, "draft=9"),
        (99, 1, "SwitchId 99=1"),
    ],
)
def test_toggles_are_told_in_the_words_of_the_command_line(switch: int, value: int, text: str) -> None:
    assert toggle_text(switch, value) == text
