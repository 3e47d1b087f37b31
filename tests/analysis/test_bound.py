"""The lower bound and its path: figures worked out by hand, the reference's, and a real run's."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from reference.events import make
from strata_tui import Engine
from strata_tui.analysis.bound import actual_ns, guesses_in_flight, lower_bound, measured
from strata_tui.analysis.explained import Explained
from strata_tui.analysis.fate import Fate
from strata_tui.analysis.passages import (
    accepted_per_position,
    last_text,
    ms_by_class,
    passages,
    texts,
    wasted_ns,
)
from strata_tui.events import EVENT_DTYPE, Events, Kind, WindowFate

MODEL = Path(__file__).parents[1] / "data/oracles/micro-qwen35-friendly.gguf"


def window(id: int, built: int, runs: list[tuple[int, int]], verdict: int, accepted: int = 1) -> Events:
    parts = [make(Kind.window, built, window=id, rows=2, a=3 * id)]
    for stage, (start, end) in enumerate(runs):
        parts.append(make(Kind.run, start, end - start, id, stage, rows=2))
    if verdict:
        parts.append(make(Kind.verdict, verdict - 1, 1, id, rows=2, a=accepted, b=accepted + 1))
    return np.concatenate(parts)


# Window 1 fresh, 2 kept behind it, 3 a guess that was rolled back, 4 fresh.
TEXT = np.concatenate(
    [
        make(Kind.request_begin, 0, window=1),
        window(1, 8, [(10, 30), (33, 43)], 45),
        window(2, 20, [(30, 60), (62, 72)], 75, 0),
        make(Kind.guess_launched, 30, window=2, a=1),
        make(Kind.guess_kept, 45, window=2, b=WindowFate.kept_after_fresh),
        window(3, 50, [(60, 79)], 0),
        make(Kind.guess_rolled_back, 75, window=3, a=1),
        window(4, 79, [(80, 100), (104, 114)], 116, 0),
    ]
)


def test_the_longest_path_worked_out_by_hand() -> None:
    """The shortest hand-off is 3, of window 1, the shortest verdict 2, the one draft chain 80 - 75 = 5."""
    nodes = measured(passages(TEXT), 2)
    assert [(n.window.id, n.kept, list(n.run), list(n.hand_off), n.verdict, n.draft) for n in nodes] == [
        (1, False, [20, 10], [3], 2, 0),
        (2, True, [30, 10], [3], 2, 0),
        (4, False, [20, 10], [3], 2, 5),
    ]
    full = lower_bound(nodes)
    assert [(s.part, s.window, s.stage, s.at_ns, s.start_ns, s.dur_ns) for s in full.path] == [
        ("run", 1, 0, 0, 10, 20),
        ("run", 2, 0, 20, 30, 30),  # stage 0 was window 1's until 20
        ("hand_off", 2, 1, 50, 60, 3),
        ("run", 2, 1, 53, 62, 10),
        ("verdict", 2, 1, 63, 72, 2),
        ("draft", 4, 0, 65, 75, 5),
        ("run", 4, 0, 70, 80, 20),
        ("hand_off", 4, 1, 90, 100, 3),
        ("run", 4, 1, 93, 104, 10),
        ("verdict", 4, 1, 103, 114, 2),
    ]
    assert full.ns == 105 and lower_bound(nodes, 1) == full
    assert full.shares()["run", 0] == pytest.approx(70 / 105)
    serial = lower_bound(nodes, 0)  # window 2 has no place before the verdict of 1, at 20 + 3 + 10 + 2
    assert serial.ns == 35 + 30 + 3 + 10 + 2 + 5 + 20 + 3 + 10 + 2
    assert [(s.part, s.window) for s in serial.path[:6]] == [
        ("run", 1),
        ("hand_off", 1),
        ("run", 1),
        ("verdict", 1),
        ("run", 2),
        ("hand_off", 2),
    ]
    assert actual_ns(passages(TEXT), TEXT, 2) == 116 - 10


def test_guesses_kept_after_the_switch_was_flipped_count() -> None:
    nodes = measured(passages(TEXT), 2)
    assert [guesses_in_flight(nodes, windows) for windows in (0, 1, 2, 8)] == [1, 1, 1, 1]
    alone = [node for node in nodes if not node.kept]
    assert [guesses_in_flight(alone, windows) for windows in (0, 1, 2, 8)] == [0, 0, 1, 1]
    assert guesses_in_flight([], 2) == 0
    flipped = Explained(TEXT, 2, windows_in_flight=0)
    assert flipped.same_depth == lower_bound(nodes) and flipped.same_depth.ns <= 116 - 10


def test_time_held_back_is_no_draft_chain() -> None:
    """3 of the 5 ns before window 4: a rate; a pause within it counts once."""
    held = np.concatenate([TEXT, make(Kind.throttle, 76, 3), make(Kind.paused, 77, 1)])
    assert [node.draft for node in measured(passages(held), 2)] == [0, 0, 2]
    assert [window.held_ns for window in passages(held) if window.verified] == [0, 0, 3]
    assert actual_ns(passages(held), held, 2) == 116 - 10  # window 3 ran meanwhile


def test_a_writer_that_tells_its_end_late_makes_no_time() -> None:
    late = np.concatenate([window(1, 0, [(0, 40), (33, 43)], 45), window(2, 45, [(46, 66), (69, 79)], 80)])
    first, second = measured(passages(late), 2)
    assert (list(first.run), list(first.hand_off), list(second.run)) == ([33, 10], [0], [20, 10])
    bound = lower_bound([first, second])
    assert bound.ns <= 80
    assert sum(bound.shares().values()) == pytest.approx(1)
    assert sum(span.dur_ns for span in bound.path) == bound.ns


def test_a_verdict_and_a_slow_last_stage_are_waited_for() -> None:
    slow = np.concatenate(
        [
            window(1, 0, [(0, 5), (5, 45)], 47),
            window(2, 2, [(5, 10), (47, 87)], 89),
            make(Kind.guess_kept, 45, window=2, b=WindowFate.kept_after_fresh),
        ]
    )
    bound = lower_bound(measured(passages(slow), 2))
    assert bound.ns == 5 + 40 + 2 + 40 + 2
    assert [(s.part, s.window, s.stage) for s in bound.path] == [
        ("run", 1, 0),
        ("hand_off", 1, 1),
        ("run", 1, 1),
        ("verdict", 1, 1),
        ("run", 2, 1),
        ("verdict", 2, 1),
    ]


def test_time_held_back_counts_only_where_nothing_ran() -> None:
    held = np.concatenate([TEXT, make(Kind.throttle, 73, 7), make(Kind.paused, 5, 20)])
    assert actual_ns(passages(held), held, 2) == 106 - (80 - 79)


def test_facts_of_the_windows() -> None:
    windows = passages(TEXT)
    assert [(w.id, w.fate, w.depth) for w in windows] == [
        (1, Fate.FRESH, 0),
        (2, Fate.KEPT_AFTER_FRESH, 1),
        (3, Fate.ROLLED_BACK, 0),
        (4, Fate.FRESH, 0),
    ]
    assert ms_by_class(windows) == {
        Fate.FRESH: (2, pytest.approx((45 - 8 + 116 - 75) / 2 / 1e6)),
        Fate.KEPT_AFTER_FRESH: (1, pytest.approx(30 / 1e6)),
        Fate.KEPT_AFTER_KEPT: (0, None),
    }
    assert accepted_per_position(windows) == [(1, 3)]
    assert wasted_ns(TEXT, 2) == [19, 0]
    two = np.concatenate([TEXT, make(Kind.request_begin, 200, window=2)])
    assert last_text(two)["start_ns"].tolist() == [200]
    parts = texts(np.concatenate([make(Kind.sync, 250), two[::-1], make(Kind.sync, 150)]))
    assert [len(part) for part in parts] == [0, len(TEXT) + 1, 2]
    assert parts[2]["start_ns"].tolist() == [250, 200]  # in the order in which they came


def test_nothing_and_missing_runs_have_no_bound() -> None:
    assert lower_bound([]).ns == 0 and lower_bound([]).shares() == {} and measured([], 2) == []
    assert actual_ns([], np.empty(0, EVENT_DTYPE), 2) == 0
    dropped = TEXT[~((TEXT["kind"] == Kind.run) & (TEXT["window"] == 2) & (TEXT["stage"] == 0))]
    assert measured(passages(dropped), 2) == [] and actual_ns(passages(dropped), dropped, 2) == 0


@pytest.mark.parametrize("windows", [0, 2, 3])
def test_no_real_run_is_faster(windows: int) -> None:
    with Engine.open(
        MODEL, devices=["even:2+draft=0.2"] * 3, pipeline_windows=windows, draft="replay:0.85", theta=0.0
    ) as engine:
        list(engine.session().generate([1, 2, 3], max_tokens=48, ignore_eos=True))
        events = last_text(engine.events())
    verified = passages(events)
    nodes = measured(verified, 3)
    same, full = lower_bound(nodes, max(1, windows) - 1), lower_bound(nodes)
    assert 0 < full.ns <= same.ns <= actual_ns(verified, events, 3)
    for bound in (same, full):
        assert bound.path[0].at_ns == 0 and sum(span.dur_ns for span in bound.path) == bound.ns
        for before, span in itertools.pairwise(bound.path):
            assert before.at_ns + before.dur_ns == span.at_ns
