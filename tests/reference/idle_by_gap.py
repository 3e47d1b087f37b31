"""Idle time by cause, one gap after the other: what the app finds for all gaps at once, to the nanosecond."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from strata_tui.analysis.doing import Doing
from strata_tui.analysis.idle import Timeline
from strata_tui.analysis.lanes import flatten
from strata_tui.analysis.spans import SPAN_DTYPE, SpanArray
from strata_tui.events import DRAFT_LANE, Events, Kind, WindowFate

_OF_PROGRAM = {
    Kind.run: Doing.run,
    Kind.prefill_chunk: Doing.run,
    Kind.commit: Doing.commit,
    Kind.snapshot: Doing.commit,
    Kind.undo: Doing.undo,
    Kind.publish: Doing.publish,
}
_TOLD = (Kind.verdict, Kind.draft_step, Kind.window, Kind.stage_inputs, Kind.run, Kind.prefill_chunk)
# What a stage waits for whose input is still on a stage that does this.
_FROM_UPSTREAM = np.arange(len(Doing), dtype=np.uint8)
_FROM_UPSTREAM[[Doing.run, Doing.commit, Doing.publish]] = Doing.hand_off
_FROM_UPSTREAM[Doing.undo] = Doing.undo_awaited


def timelines(events: Events, n_stages: int, t0: int, t1: int) -> list[Timeline]:
    """What each stage did over [t0, t1)."""
    story = _Story.of(events)
    nothing_to_do = _no_work(events, t0, t1)
    lines: list[Timeline] = []
    upstream = None
    for stage in range(n_stages):
        mine = events[events["stage"] == stage]
        work = _spans(mine, _OF_PROGRAM)
        programs = _programs(mine)
        waits = _by_window(mine[mine["kind"] == Kind.wait_ready])
        idle: list[tuple[int, int, int]] = []
        edges, states = flatten(work, t0, t1)
        for i in np.flatnonzero(states == 0).tolist():
            gap = int(edges[i]), int(edges[i + 1])
            pieces = story.blame(*gap, stage, programs, upstream, waits)
            idle += [piece for piece in pieces if piece[0] < piece[1]]
        causes = np.zeros(len(idle), SPAN_DTYPE)
        for name, column in zip(("start", "end", "state"), zip(*idle, strict=True), strict=False):
            causes[name] = column
        lines.append(Timeline(*flatten(np.concatenate([causes, nothing_to_do, work]), t0, t1)))
        upstream = _Upstream(lines[-1].edges.tolist(), _FROM_UPSTREAM[lines[-1].doing].tolist())
    return lines


class _Upstream(NamedTuple):
    """The stage before: what it did in [edges[i], edges[i+1]), as a cause for the one behind it."""

    edges: list[int]
    causes: list[int]


class _Program(NamedTuple):
    """Of a device, by its start."""

    start_ns: int
    kind: int
    window: int
    speculative: bool


@dataclass
class _Story:
    """What the control thread decided, and when its inputs were there: the moments that idle stages await."""

    decided: list[int] = field(default_factory=list)  # ends of verdicts and of what was read, rising
    verdict: dict[int, int] = field(default_factory=dict)  # window -> end of its verdict
    steps: list[int] = field(default_factory=list)  # ends of draft steps, rising
    built: dict[int, int] = field(default_factory=dict)  # window or chunk -> when it came to be
    drafted: set[int] = field(default_factory=set)  # windows made from draft outputs
    runs: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # window, stage -> start, end

    @classmethod
    def of(cls, events: Events) -> _Story:
        story = cls()
        of_prompt = (events["kind"] == Kind.window) & (events["b"] == WindowFate.prompt)
        prompt = set(events["window"][of_prompt].tolist())
        last = max((int(s) for s in np.unique(events["stage"]) if s < DRAFT_LANE), default=0)
        needed = np.isin(events["kind"], _TOLD)
        for start, duration, window, kind, stage, rows, _, b in events[needed].tolist():
            end = start + duration
            if kind == Kind.verdict:
                story.decided.append(end)
                story.verdict[window] = end
            elif kind == Kind.draft_step:
                story.steps.append(end)
            elif kind == Kind.window:
                story.built[window] = start
                if rows > 1 or b == WindowFate.guess:
                    story.drafted.add(window)
            elif kind == Kind.stage_inputs:
                if stage == 0:
                    story.built.setdefault(window, start)
            elif stage < DRAFT_LANE:
                story.runs[window, stage] = start, end
                if stage == last and (kind == Kind.prefill_chunk or window in prompt):
                    story.decided.append(end)
        story.decided.sort()
        story.steps.sort()
        return story

    def blame(
        self,
        begin: int,
        end: int,
        stage: int,
        programs: list[_Program],
        upstream: _Upstream | None,
        waits: dict[int, tuple[int, int]],
    ) -> Iterator[tuple[int, int, int]]:
        """The pieces (start, end, cause) of an idle time [begin, end), host time left out."""
        at = bisect_left(programs, end, key=lambda program: program.start_ns)
        while at < len(programs) and programs[at].speculative:  # it makes way for the run behind it
            at += 1
        if at == len(programs):
            last = min(max(begin, self.decided[-1] if self.decided else 0), end)
            yield begin, last, Doing.verdict
            yield last, end, Doing.no_work
            return
        program = programs[at]
        window = program.window
        if program.kind not in (Kind.run, Kind.prefill_chunk):
            decided = min(max(begin, self.verdict.get(window, 0)), end)
            yield begin, decided, Doing.verdict
            if program.kind == Kind.undo:
                yield decided, end, Doing.undo_awaited
            return
        source = self.runs.get((window, stage - 1))
        if upstream is None or source is None:
            built = self.built.get(window, program.start_ns)
            decided = min(max(begin, self.last(self.decided, built)), end)
            yield begin, decided, Doing.verdict
            if window in self.drafted:
                yield decided, min(max(decided, self.last(self.steps, built)), end), Doing.draft
            return
        decided = self.last(self.decided, program.start_ns)
        if decided > source[1]:
            yield begin, min(decided, end), Doing.verdict
            return
        running = min(max(begin, source[0]), end)
        there = min(max(running, source[1]), end)
        yield from _from_upstream(upstream, begin, running)
        yield running, there, Doing.hand_off
        waited = waits.get(window)
        if waited is not None:
            yield max(there, waited[0]), min(waited[1], end), Doing.hand_off

    @staticmethod
    def last(moments: list[int], by: int) -> int:
        """The last of the moments that is not after `by`; 0 if there is none."""
        at = bisect_right(moments, by)
        return moments[at - 1] if at else 0


def _from_upstream(upstream: _Upstream, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """What the stage before did in [begin, end), as causes."""
    if end <= begin:
        return
    i = bisect_right(upstream.edges, begin) - 1
    while i < len(upstream.causes) and upstream.edges[i] < end:
        yield max(begin, upstream.edges[i]), min(end, upstream.edges[i + 1]), upstream.causes[i]
        i += 1


def _programs(events: Events) -> list[_Program]:
    programs = events[np.isin(events["kind"], [kind for kind in _OF_PROGRAM if kind != Kind.publish])]
    ordered = programs[np.argsort(programs["start_ns"], kind="stable")]
    return [
        _Program(start, kind, window, kind == Kind.snapshot or (kind == Kind.commit and b == 1))
        for start, _, window, kind, _, _, _, b in ordered.tolist()
    ]


def _by_window(events: Events) -> dict[int, tuple[int, int]]:
    return {window: (start, start + duration) for start, duration, window, *_ in events.tolist()}


def _spans(events: Events, doing: dict[Kind, Doing]) -> SpanArray:
    mine = events[np.isin(events["kind"], list(doing))]
    spans = np.zeros(len(mine), SPAN_DTYPE)
    spans["start"] = mine["start_ns"]
    spans["end"] = mine["start_ns"] + mine["dur_ns"]
    spans["state"] = [doing[kind] for kind in mine["kind"].tolist()]
    return spans


def _no_work(events: Events, t0: int, t1: int) -> SpanArray:
    """Held back, or between requests."""
    held = _spans(events, {Kind.throttle: Doing.no_work, Kind.paused: Doing.no_work})
    moments = events[np.isin(events["kind"], [Kind.request_begin, Kind.request_end])]
    moments = moments[np.argsort(moments["start_ns"], kind="stable")]
    pauses: list[tuple[int, int, int, Doing]] = []
    since: int | None = t0
    for start, _, _, kind, *_ in moments.tolist():
        if kind == Kind.request_begin:
            if since is not None and start > since:
                pauses.append((since, start, 0, Doing.no_work))
            since = None
        else:
            since = start
    if since is not None and len(moments) and t1 > since:
        pauses.append((since, t1, 0, Doing.no_work))
    return np.concatenate([held, np.array(pauses, SPAN_DTYPE)])
