"""Moments and spans that a person asks for: the next verdict or miss, the longest gap, spans of a lane."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from strata_tui.analysis.doing import CAUSES
from strata_tui.analysis.idle import Timeline, timelines
from strata_tui.events import DRAFT_LANE, HOST_LANE, Events, Kind, MissCause
from strata_tui.terminal_text import counted

_WORDS = {
    Kind.run: "runs window {window}",
    Kind.prefill_chunk: "reads a chunk of the prompt",
    Kind.commit: "commits window {window}",
    Kind.snapshot: "takes a snapshot",
    Kind.undo: "undoes a commit of window {window}",
    Kind.draft_step: "a draft step behind window {window}",
    Kind.stage_inputs: "stages the inputs of window {window}",
    Kind.launch: "launches window {window}",
    Kind.sync: "notices the end of window {window}",
    Kind.verdict: "verdict of window {window}",
    Kind.throttle: "held back by the rate",
    Kind.paused: "held by you",
}
_OF_STAGE = (Kind.run, Kind.prefill_chunk, Kind.commit, Kind.snapshot, Kind.undo)
_OF_HOST = (Kind.stage_inputs, Kind.launch, Kind.sync, Kind.verdict, Kind.throttle, Kind.paused)
_WAITS = {
    "hand_off": "for its input from the stage before",
    "verdict": "for a verdict",
    "draft": "for the draft chain",
    "undo": "for an undo",
    "host": "for the host: to notice, stage or launch",
    "no_work": "for nothing: there is no work",
}
TOGETHER = 0.7  # of their time: gaps of several stages that overlap so far are one
_MISSES = {
    MissCause.drafts_wrong: "a draft was wrong",
    MissCause.bonus_wrong: "only the guessed bonus was wrong",
    MissCause.forced: "made to miss",
}


@dataclass(frozen=True)
class Moment:
    """A span of a lane, or a moment of it (of no length), in words.

    Attributes:
        who: does what the text says; "" = the lane.
    """

    lane: int
    start_ns: int
    end_ns: int
    text: str
    who: str = ""

    @property
    def middle_ns(self) -> int:
        return (self.start_ns + self.end_ns) // 2


def verdicts(events: Events) -> list[Moment]:
    """Every verdict of a window that yielded tokens, in order."""
    told = events[(events["kind"] == Kind.verdict) & (events["b"] > 0)]
    return [
        Moment(
            HOST_LANE,
            start,
            start + duration,
            f"verdict of window {window}: {a} of {rows - 1} drafts accepted, {counted(b, 'token')}",
        )
        for start, duration, window, _, _, rows, a, b in np.sort(told, order="start_ns").tolist()
    ]


def misses(events: Events) -> list[Moment]:
    """Every verdict that a launched guess did not survive, in order."""
    told = np.sort(events[events["kind"] == Kind.miss], order="start_ns")
    return [
        Moment(
            HOST_LANE,
            start,
            start,
            f"the guess behind window {window} is rolled back: {_MISSES.get(MissCause(a), 'unknown')}"
            + (", the second choice was right" if b == 1 else ""),
        )
        for start, _, window, _, _, _, a, b in told.tolist()
        if a in set(MissCause)
    ]


def gaps(events: Events, n_stages: int, t0: int, t1: int, most: int = 20) -> list[Moment]:
    """The longest idle times of any stage with one cause, the longest first; time without work left out.

    What several stages wait through at the same time is one gap: it is told with what they all wait for, the
    program that runs meanwhile if one does.
    """
    found = [
        gap
        for stage, line in enumerate(timelines(events, n_stages, t0, t1))
        for gap in _idle(stage, line)
        if _WAITS["no_work"] not in gap.text
    ]
    left = sorted(found, key=lambda gap: gap.start_ns - gap.end_ns)[: most * n_stages]
    told: list[Moment] = []
    while left and len(told) < most:
        longest = left[0]
        together = [gap for gap in left if _overlap(longest, gap) >= TOGETHER]
        left = [gap for gap in left if gap not in together]
        told.append(_of_all(longest, together, events, n_stages))
    return told


def _overlap(a: Moment, b: Moment) -> float:
    """The share of the time of both together in which they overlap."""
    both = min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns)
    return both / (max(a.end_ns, b.end_ns) - min(a.start_ns, b.start_ns))


def _of_all(longest: Moment, together: list[Moment], events: Events, n_stages: int) -> Moment:
    """One gap for all stages that wait through it."""
    stages = {gap.lane for gap in together}
    if len(stages) < 2:
        return longest
    every = "both stages" if n_stages == 2 else f"all {n_stages} stages"
    who = every if len(stages) == n_stages else f"{len(stages)} of {n_stages} stages"
    return replace(longest, text=_awaited(longest, together, events, stages), who=who)


def _awaited(longest: Moment, together: list[Moment], events: Events, stages: set[int]) -> str:
    """The program that runs most of the time, on a stage that doesn't wait; else the cause of most of it."""
    programs = events[np.isin(events["kind"], _OF_STAGE) & ~np.isin(events["stage"], list(stages))]
    starts = programs["start_ns"].astype(np.int64)
    ends = starts + programs["dur_ns"].astype(np.int64)
    covered = np.minimum(ends, longest.end_ns) - np.maximum(starts, longest.start_ns)
    if len(covered) and 2 * covered.max() > longest.end_ns - longest.start_ns:
        _, _, window, kind, stage, rows, _, b = programs[int(covered.argmax())].tolist()
        return f"wait while stage {stage} {_told(kind, window, rows, b)}"
    causes: Counter[str] = Counter()
    for gap in together:
        causes[gap.text] += gap.end_ns - gap.start_ns
    return causes.most_common(1)[0][0].replace("waits", "wait", 1)


def of_lane(events: Events, n_stages: int, lane: int, t0: int, t1: int) -> list[Moment]:
    """What a lane did over [t0, t1), in order; a stage's idle time by cause is among it."""
    if lane in (DRAFT_LANE, HOST_LANE):
        kinds = (Kind.draft_step,) if lane == DRAFT_LANE else _OF_HOST
        mine = events[np.isin(events["kind"], kinds)]
        idle: list[Moment] = []
    else:
        mine = events[np.isin(events["kind"], _OF_STAGE) & (events["stage"] == lane)]
        held = events[np.isin(events["kind"], (Kind.paused, Kind.throttle))]
        idle = [_held(gap, held) for gap in _idle(lane, timelines(events, n_stages, t0, t1)[lane])]
    spans = [
        Moment(lane, start, start + duration, _told(kind, window, rows, b))
        for start, duration, window, kind, _, rows, _, b in mine.tolist()
        if start + duration > t0 and start < t1
    ]
    return sorted([*spans, *idle], key=lambda moment: (moment.start_ns, moment.end_ns))


def _held(gap: Moment, held: Events) -> Moment:
    """A stage has no work where decoding is paused, or held back by the rate: that is told instead.

    Args:
        held: the events of that. One is recorded as it ends: a pause that lasts still is not among them.
    """
    if _WAITS["no_work"] not in gap.text:
        return gap
    starts = held["start_ns"].astype(np.int64)
    covered = np.minimum(starts + held["dur_ns"].astype(np.int64), gap.end_ns) - np.maximum(
        starts, gap.start_ns
    )
    if not len(covered) or 2 * covered.max() <= gap.end_ns - gap.start_ns:
        return gap
    return replace(gap, text=f"waits: {_WORDS[Kind(held['kind'][int(covered.argmax())])]}")


def _told(kind: int, window: int, rows: int, b: int) -> str:
    text = _WORDS[Kind(kind)].format(window=window)
    if kind == Kind.run:
        text += f", {rows} rows"
    elif kind == Kind.commit and b == 1:
        text += " ahead of its verdict"
    return text


def _idle(stage: int, line: Timeline) -> list[Moment]:
    """Neighbouring pieces of one cause are one."""
    change = np.flatnonzero(np.diff(line.doing)) + 1
    first = np.concatenate([[0], change])
    last = np.concatenate([change, [len(line.doing)]])
    causes = {int(doing): cause for cause, doing in CAUSES.items()}
    return [
        Moment(stage, int(line.edges[a]), int(line.edges[b]), f"waits {_WAITS[causes[doing]]}")
        for a, b, doing in zip(first.tolist(), last.tolist(), line.doing[first].tolist(), strict=True)
        if doing in causes
    ]
