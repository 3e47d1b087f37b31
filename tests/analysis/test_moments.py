"""Moments and spans of a text worked out by hand: two stages, two windows, the second missed its guess."""

import itertools

import numpy as np

from reference.events import make
from strata_tui.analysis.moments import Moment, _of_all, gaps, misses, of_lane, verdicts
from strata_tui.events import HOST_LANE, Kind, MissCause

EVENTS = np.concatenate(
    [
        make(Kind.request_begin, 0, window=1),
        make(Kind.window, 10, window=1, rows=2, a=3),
        make(Kind.run, 10, 20, 1, 0, rows=2),
        make(Kind.run, 30, 40, 1, 1, rows=2),
        make(Kind.verdict, 70, 5, 1, rows=2, a=1, b=2),
        make(Kind.miss, 75, window=1, a=MissCause.bonus_wrong, b=1),
        make(Kind.window, 80, window=2, rows=2, a=5),
        make(Kind.run, 80, 20, 2, 0, rows=2),
        make(Kind.run, 100, 40, 2, 1, rows=2),
        make(Kind.verdict, 140, 5, 2, rows=2, a=0, b=1),
    ]
)


def test_verdicts_and_misses_are_told_in_order() -> None:
    assert [(m.start_ns, m.end_ns, m.text) for m in verdicts(EVENTS)] == [
        (70, 75, "verdict of window 1: 1 of 1 drafts accepted, 2 tokens"),
        (140, 145, "verdict of window 2: 0 of 1 drafts accepted, 1 token"),
    ]
    (miss,) = misses(EVENTS)
    assert miss.start_ns == 75 and "window 1 is rolled back: only the guessed bonus" in miss.text
    assert "the second choice was right" in miss.text


def test_the_longest_gap_comes_first_with_its_cause() -> None:
    """Stage 0 awaits a verdict from 30 to 75 and from 100 to 145; stage 1 its input from 80 to 100."""
    found = gaps(EVENTS, 2, 10, 145)
    first = found[0]
    assert (first.lane, first.end_ns - first.start_ns, first.text) == (0, 45, "waits for a verdict")
    lengths = [gap.end_ns - gap.start_ns for gap in found]
    assert lengths == sorted(lengths, reverse=True)
    assert (1, 80, 100) in {(g.lane, g.start_ns, g.end_ns) for g in found if "its input" in g.text}
    assert gaps(EVENTS, 2, 10, 145, most=1) == found[:1]


def test_a_stage_without_work_is_paused_or_held_back_where_decoding_is() -> None:
    """Nothing runs from 145 to 400: paused for most of it, held back, or neither."""
    until = np.concatenate([EVENTS, make(Kind.request_end, 145), make(Kind.request_begin, 400, window=3)])
    for kind, text in ((Kind.paused, "waits: held by you"), (Kind.throttle, "waits: held back by the rate")):
        held = np.concatenate([until, make(kind, 150, 240, stage=HOST_LANE)])
        assert of_lane(held, 2, 0, 145, 400)[-1].text == text
    brief = np.concatenate([until, make(Kind.paused, 150, 20, stage=HOST_LANE)])
    for events in (until, brief):
        assert of_lane(events, 2, 0, 145, 400)[-1].text == "waits for nothing: there is no work"


STALLED = np.concatenate(
    [
        make(Kind.request_begin, 0, window=1),
        make(Kind.window, 10, window=1, rows=2, a=3),
        make(Kind.run, 10, 10, 1, 0, rows=2),
        make(Kind.run, 20, 10, 1, 1, rows=2),
        make(Kind.run, 30, 200, 1, 2, rows=2),  # twenty times as long as the others
        make(Kind.verdict, 230, 5, 1, rows=2, a=1, b=2),
        make(Kind.draft_step, 235, 60, 1, stage=254),
        make(Kind.window, 295, window=2, rows=2, a=5),
        make(Kind.run, 295, 10, 2, 0, rows=2),
        make(Kind.run, 305, 10, 2, 1, rows=2),
        make(Kind.run, 315, 10, 2, 2, rows=2),
        make(Kind.verdict, 325, 5, 2, rows=2, a=0, b=1),
    ]
)


def test_two_stages_are_both() -> None:
    waits = [Moment(stage, 10, 100, "wait", f"stage {stage}") for stage in (0, 1)]
    assert _of_all(waits[0], waits, STALLED, 2).who == "both stages"
    assert _of_all(waits[0], waits, STALLED, 3).who == "2 of 3 stages"


def test_what_all_wait_for_is_told_once_and_first() -> None:
    """Stages 0 and 1 wait from 20 and 30 for stage 2; from 235 on all three wait for the draft chain."""
    first, second, *others = gaps(STALLED, 3, 10, 330)
    assert (first.who, first.text) == ("2 of 3 stages", "wait while stage 2 runs window 1, 2 rows")
    assert (first.lane, first.start_ns, first.end_ns) == (0, 20, 235)
    assert (second.who, second.text) == ("all 3 stages", "wait for the draft chain")
    assert second.end_ns - second.start_ns == 60
    assert not any(gap.start_ns < 235 < gap.end_ns and gap.end_ns - gap.start_ns > 100 for gap in others)


def test_one_that_waits_alone_is_told_as_its_own() -> None:
    assert [gap.who for gap in gaps(EVENTS, 2, 10, 145)[:3]] == ["", "", ""]


def test_a_lane_is_work_and_idle_time_without_a_hole() -> None:
    for stage in (0, 1):
        spans = of_lane(EVENTS, 2, stage, 10, 145)
        assert spans[0].start_ns == 10 and spans[-1].end_ns == 145
        assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(spans))
    assert "runs window 1, 2 rows" in {m.text for m in of_lane(EVENTS, 2, 0, 10, 145)}
    assert [m.start_ns for m in of_lane(EVENTS, 2, HOST_LANE, 10, 145)] == [70, 140]
