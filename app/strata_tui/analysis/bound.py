"""How fast a text could have been on the same stages with the same verdicts: the longest path.

Nodes are (verified window, stage) with their measured times. A window's run on a stage waits for the hand-off
from the stage before and for the window ahead on the same stage. Stage 0 of a fresh window waits for the
verdict before it and the draft chain. A kept one's last stage waits for that verdict, its stage 0 for a place
among the windows in flight: the verdict of the window that is one more than `guesses` ahead of it.

actual / bound at the same depth is what the plumbing loses; at full depth, what the depth loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from strata_tui.analysis.lanes import flatten
from strata_tui.analysis.passages import Passage, complete
from strata_tui.analysis.spans import SPAN_DTYPE
from strata_tui.events import Events, Kind

Part = Literal["run", "hand_off", "verdict", "draft"]


@dataclass(frozen=True)
class PathSpan:
    """A span of the critical path. A hand-off belongs to the stage that reads, a draft to stage 0, a verdict
    to the last stage."""

    part: Part
    window: int
    stage: int
    at_ns: int  # where it lies in the bound's own schedule
    start_ns: int  # and on the clock of the events
    dur_ns: int


@dataclass(frozen=True)
class Bound:
    """ns from the first window's start to the last verdict that no schedule goes below; its path in order.

    The durations along the path add up to the bound.
    """

    ns: int
    path: tuple[PathSpan, ...]

    def shares(self) -> dict[tuple[Part, int], float]:
        """Of the bound, by part and stage: what to make faster first."""
        spent: dict[tuple[Part, int], int] = {}
        for span in self.path:
            spent[span.part, span.stage] = spent.get((span.part, span.stage), 0) + span.dur_ns
        return {key: ns / self.ns for key, ns in spent.items()} if self.ns else {}


@dataclass(frozen=True)
class Measured:
    """One verified window, nanoseconds. A run ends with its reader's begin where that comes before the writer
    has told its end: hand-offs [stages - 1] are never below 0."""

    window: Passage
    kept: bool
    run: Sequence[int]  # [stages]
    hand_off: Sequence[int]
    verdict: int  # the last stage's end -> the verdict
    draft: int  # fresh: the verdict before it -> stage 0; 0 for a text's first window


def measured(windows: Sequence[Passage], n_stages: int) -> list[Measured]:
    """The verified windows of one text; none where a run is missing.

    A hand-off, a verdict and a draft chain count as the shortest of the text (drafts: of windows of as many
    rows): in a single window they may hide that something waited, which the bound must not contain.
    """
    verified = complete(windows, n_stages)
    if not verified:
        return []
    fresh = [i for i, window in enumerate(verified) if not window.kept]
    of_hand_offs = [verified[i] for i in fresh] or verified
    hand_off = [
        max(0, min(w.start_ns[s] - w.end_ns[s - 1] for w in of_hand_offs)) for s in range(1, n_stages)
    ]
    verdict = min(window.verdict_ns - window.end_ns[-1] for window in verified)
    draft: dict[int, int] = {}  # by rows
    for i in fresh:
        if i:
            chain = max(0, verified[i].start_ns[0] - verified[i - 1].verdict_ns - verified[i].held_ns)
            draft[verified[i].rows] = min(chain, draft.get(verified[i].rows, chain))
    return [
        Measured(w, w.kept, _run(w), hand_off, verdict, 0 if i == 0 or w.kept else draft[w.rows])
        for i, w in enumerate(verified)
    ]


def _run(window: Passage) -> list[int]:
    """On each stage, as far as the next one waited: an end that was told late is its reader's begin."""
    told = [min(pair) for pair in zip(window.end_ns, window.start_ns[1:], strict=False)]
    return [end - start for start, end in zip(window.start_ns, [*told, window.end_ns[-1]], strict=True)]


def guesses_in_flight(windows: Sequence[Measured], windows_in_flight: int) -> int:
    """At most so many: as the switch has it (0 = serial), or deeper where one was kept that was launched
    before the switch was flipped; never more than there are front stages."""
    deepest = max((one.window.depth for one in windows if one.kept), default=0)
    front = len(windows[0].run) - 1 if windows else 0
    return min(front, max(windows_in_flight - 1, deepest))


def lower_bound(windows: Sequence[Measured], guesses: int | None = None) -> Bound:
    """The bound of one text.

    Args:
        guesses: in flight at most; None: one on each front stage (full depth).
    """
    if not windows:
        return Bound(0, ())
    n_stages = len(windows[0].run)
    last = n_stages - 1
    depth = last if guesses is None else guesses
    ends: list[list[int]] = []  # [windows, stages]
    verdicts: list[int] = []
    why: list[list[tuple[str, int]]] = []  # what each run waited for: its kind and window; "start": nothing
    for w, window in enumerate(windows):
        row: list[int] = []
        reasons: list[tuple[str, int]] = []
        for stage in range(n_stages):
            waits = [(0, "start", w)]
            if stage:
                waits.append((row[-1] + window.hand_off[stage - 1], "hand_off", w))
            elif window.kept:
                waits += [(verdicts[w - 1 - depth], "verdict", w - 1 - depth)] if w > depth else []
            elif w:
                waits.append((verdicts[w - 1] + window.draft, "draft", w - 1))
            if stage == last and w:
                waits.append((verdicts[w - 1], "verdict", w - 1))
            if w:
                waits.append((ends[w - 1][stage], "order", w - 1))
            ready, reason, of = max(waits, key=lambda wait: wait[0])
            row.append(ready + window.run[stage])
            reasons.append((reason, of))
        ends.append(row)
        why.append(reasons)
        verdicts.append(row[-1] + window.verdict)
    return Bound(verdicts[-1], tuple(_path(windows, ends, verdicts, why)))


def _path(
    windows: Sequence[Measured],
    ends: Sequence[Sequence[int]],
    verdicts: Sequence[int],
    why: Sequence[Sequence[tuple[str, int]]],
) -> list[PathSpan]:
    path: list[PathSpan] = []
    last = len(windows[0].run) - 1
    w, stage, reason = len(windows) - 1, last, "verdict"
    while reason != "start":
        if reason == "verdict":
            window = windows[w]
            at, since = verdicts[w] - window.verdict, window.window.end_ns[-1]
            path.append(PathSpan("verdict", window.window.id, last, at, since, window.verdict))
            stage = last
        window = windows[w]
        begin = ends[w][stage] - window.run[stage]
        path.append(
            PathSpan("run", window.window.id, stage, begin, window.window.start_ns[stage], window.run[stage])
        )
        reason, before = why[w][stage]
        if reason == "hand_off":
            length = window.hand_off[stage - 1]
            since = window.window.end_ns[stage - 1]
            path.append(PathSpan("hand_off", window.window.id, stage, begin - length, since, length))
            stage -= 1
        elif reason == "draft":
            since = windows[before].window.verdict_ns
            path.append(PathSpan("draft", window.window.id, 0, begin - window.draft, since, window.draft))
            reason = "verdict"
        w = before
    return path[::-1]


def actual_ns(windows: Sequence[Passage], events: Events, n_stages: int) -> int:
    """From the first window's start to the last verdict, less the time in which the text was held back by a
    rate or by the user and no stage ran."""
    verified = complete(windows, n_stages)
    if not verified:
        return 0
    t0, t1 = verified[0].start_ns[0], verified[-1].verdict_ns
    held, ran = 1, 2
    states_of = np.zeros(256, np.uint8)
    states_of[[Kind.throttle, Kind.paused]], states_of[Kind.run] = held, ran
    mine = events[states_of[events["kind"]] > 0]
    spans = np.zeros(len(mine), SPAN_DTYPE)
    spans["start"] = mine["start_ns"]
    spans["end"] = mine["start_ns"] + mine["dur_ns"]
    spans["state"] = states_of[mine["kind"]]
    edges, states = flatten(spans, t0, t1)
    return t1 - t0 - int(np.diff(edges)[states == held].sum())
