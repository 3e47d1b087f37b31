"""Where the time of each stage went: at work, or idle for a cause.

A stage's device is at work while one of its programs runs:

- run: the program of a window or of a chunk of the prompt, less its publish;
- publish: payload and ready word to the next stage;
- commit: of a window's rows (snapshots too);
- undo: a commit ahead of its verdict taken back and done again.

All other time is idle; `blame` says how the cause of an idle moment is found.

Run + other work + idle by cause = the span, on every stage, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.blame import Programs, Story, Upstream
from strata_tui.analysis.doing import CAUSES, Doing
from strata_tui.analysis.lanes import flatten
from strata_tui.analysis.spans import SPAN_DTYPE, SpanArray
from strata_tui.events import Events, Kind, WindowFate

_OF_PROGRAM = {
    Kind.run: Doing.run,
    Kind.prefill_chunk: Doing.run,
    Kind.commit: Doing.commit,
    Kind.snapshot: Doing.commit,
    Kind.undo: Doing.undo,
    Kind.publish: Doing.publish,
}
# What a stage waits for whose input is still on a stage that does this.
_FROM_UPSTREAM = np.arange(len(Doing), dtype=np.uint8)
_FROM_UPSTREAM[[Doing.run, Doing.commit, Doing.publish]] = Doing.hand_off
_FROM_UPSTREAM[Doing.undo] = Doing.undo_awaited


_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Timeline:
    """Piece i of a stage's time is [edges[i], edges[i+1]); edges [n+1] rise, doing [n] holds `Doing`."""

    edges: npt.NDArray[np.int64]
    doing: npt.NDArray[np.uint8]

    def spent_ns(self) -> list[int]:
        """Nanoseconds by `Doing`; their sum is the span."""
        spent = np.zeros(len(Doing), np.int64)
        np.add.at(spent, self.doing, np.diff(self.edges))
        return [int(ns) for ns in spent]

    def spent_by(self, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """[n, Doing] nanoseconds from the first edge to moments [n] between the edges."""
        piece = np.diff(self.edges)
        at = np.minimum(np.searchsorted(self.edges, moments, side="right") - 1, len(piece) - 1)
        spent = np.zeros((len(moments), len(Doing)), np.int64)
        for doing in np.unique(self.doing):
            here = self.doing == doing
            before = np.cumsum(np.where(here, piece, 0)) - np.where(here, piece, 0)
            spent[:, doing] = before[at] + np.where(here[at], moments - self.edges[at], 0)
        return spent


@dataclass(frozen=True)
class StageTime:
    """A stage's time over a span, nanoseconds."""

    span_ns: int
    run_ns: int
    publish_ns: int
    commit_ns: int
    undo_ns: int
    idle_ns: dict[str, int]  # by cause, every one of CAUSES

    @property
    def busy_ns(self) -> int:
        return self.run_ns + self.publish_ns + self.commit_ns + self.undo_ns

    def idle_shares(self) -> dict[str, float]:
        """Of the span, by cause."""
        return {cause: ns / self.span_ns if self.span_ns else 0.0 for cause, ns in self.idle_ns.items()}


def text_span(events: Events) -> tuple[int, int] | None:
    """From when the first verify window was built to the end of the last verdict; None where none was."""
    built = events[(events["kind"] == Kind.window) & (events["b"] != WindowFate.prompt)]
    verdicts = events[events["kind"] == Kind.verdict]
    if not len(built) or not len(verdicts):
        return None
    begin, end = int(built["start_ns"].min()), int((verdicts["start_ns"] + verdicts["dur_ns"]).max())
    return (begin, end) if end > begin else None


def stage_times(events: Events, n_stages: int, t0: int, t1: int) -> list[StageTime]:
    """How each stage spent [t0, t1), t1 beyond t0.

    Events from around the span count too: what ends an idle time may come after it.
    """
    return [_stage_time(t1 - t0, line.spent_ns()) for line in timelines(events, n_stages, t0, t1)]


def stage_times_of(
    events: Events, n_stages: int, spans: Sequence[tuple[int, int]], begins: Sequence[int]
) -> list[list[StageTime]]:
    """How each stage spent each of these spans [t0, t1), one within a text: all texts at the cost of one.

    Args:
        events: of all texts.
        begins: when each text begins.
    """
    if not spans:
        return []
    t0, t1 = min(t0 for t0, _ in spans), max(t1 for _, t1 in spans)
    edges = np.array(spans, np.int64)
    by_stage = [
        line.spent_by(edges[:, 1]) - line.spent_by(edges[:, 0])
        for line in timelines(events, n_stages, t0, t1, begins)
    ]
    return [
        [_stage_time(end - begin, spent[i].tolist()) for spent in by_stage]
        for i, (begin, end) in enumerate(spans)
    ]


def _stage_time(span_ns: int, spent_ns: list[int]) -> StageTime:
    return StageTime(
        span_ns=span_ns,
        run_ns=spent_ns[Doing.run],
        publish_ns=spent_ns[Doing.publish],
        commit_ns=spent_ns[Doing.commit],
        undo_ns=spent_ns[Doing.undo],
        idle_ns={cause: spent_ns[doing] for cause, doing in CAUSES.items()},
    )


def timelines(events: Events, n_stages: int, t0: int, t1: int, begins: Sequence[int] = ()) -> list[Timeline]:
    """What each stage did over [t0, t1).

    Args:
        begins: of texts, each looked at by itself: nothing is idle for what the next one brings.
    """
    cuts = np.unique(np.array(begins, np.int64))
    cuts = cuts[(cuts > t0) & (cuts < t1)]
    story = Story(events)
    nothing_to_do = _no_work(events, t0, t1)
    lines: list[Timeline] = []
    for stage in range(n_stages):
        mine = events[events["stage"] == stage]
        work = _spans(mine, _OF_PROGRAM)
        edges, states = flatten(work, t0, t1)
        all_edges = np.union1d(edges, cuts) if len(cuts) else edges
        gaps = np.flatnonzero(states[np.searchsorted(edges, all_edges[:-1], side="right") - 1] == 0)
        begin, end = all_edges[gaps], all_edges[gaps + 1]
        text_end = np.append(cuts, _NEVER)[np.searchsorted(cuts, begin, side="right")]
        upstream = Upstream(lines[-1].edges, _FROM_UPSTREAM[lines[-1].doing]) if lines else None
        causes = story.blame(begin, end, text_end, stage, Programs(mine), upstream)
        lines.append(Timeline(*flatten(np.concatenate([causes, nothing_to_do, work]), t0, t1)))
    return lines


def _spans(events: Events, doing: dict[Kind, Doing]) -> SpanArray:
    mine = events[np.isin(events["kind"], list(doing))]
    spans = np.zeros(len(mine), SPAN_DTYPE)
    spans["start"] = mine["start_ns"]
    spans["end"] = mine["start_ns"] + mine["dur_ns"]
    state_of = np.zeros(256, np.uint8)
    state_of[list(doing)] = list(doing.values())
    spans["state"] = state_of[mine["kind"]]
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
