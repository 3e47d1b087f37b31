"""Why a stage is idle.

The cause of an idle moment is found backwards from the program that ended it: of what
this program needed, what came last, and what was awaited at that moment on the way there.

- verdict: what comes next hangs on a window that is on later stages, or on whose verdict the host is at work.
  A front stage behind whose window no guess could be launched; the last stage, from its window's end to the
  verdict. A prompt window or chunk that has to be read to its end counts the same.
- draft: the verdict is there, and the window is built from a draft chain that still runs (till the end of the
  last step before it was built).
- hand_off: the input is still on the stage before, which runs this window, or something ahead of it; or it
  has been published, and the program launched ahead has yet to notice.
- undo: the stage before is held by an undo, or the stage's own undo has not been queued since the verdict.
- no_work: held back by a rate or by the user, between requests, or nothing comes after.
- host: everything else: the input is there, and the control thread has yet to notice (sync), to stage the
  inputs or to launch; the worker has yet to wake.

While the stage before is itself idle on the way to the awaited window, its cause is the cause here too: when
the draft chain is late, all stages wait for the draft.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.doing import Doing
from strata_tui.analysis.latest import Ints, Latest
from strata_tui.analysis.spans import SPAN_DTYPE, SpanArray
from strata_tui.events import DRAFT_LANE, Events, Kind, WindowFate

_RUNS = (Kind.run, Kind.prefill_chunk)
_PROGRAMS = (*_RUNS, Kind.commit, Kind.snapshot, Kind.undo)
Piece = tuple[Ints, Ints, npt.NDArray[np.uint8] | Doing]  # from, to, cause; empty ones count for nothing


class Upstream(NamedTuple):
    """The stage before: what it did in [edges[i], edges[i+1]), as a cause for the one behind it."""

    edges: Ints  # [n+1]
    causes: npt.NDArray[np.uint8]  # [n]

    def during(self, begin: Ints, end: Ints) -> Piece:
        """Its pieces within each of the idle times [begin, end)."""
        first = np.searchsorted(self.edges, begin, side="right") - 1
        stop = np.minimum(np.searchsorted(self.edges, end), len(self.causes))
        count = np.where(end > begin, stop - first, 0)
        piece = np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)
        low, high = np.repeat(begin, count), np.repeat(end, count)
        return np.maximum(low, self.edges[piece]), np.minimum(high, self.edges[piece + 1]), self.causes[piece]


class Programs:
    """Of one stage, by their start.

    Args:
        events: of the stage.
    """

    def __init__(self, events: Events) -> None:
        self.waits = events[events["kind"] == Kind.wait_ready]
        programs = events[np.isin(events["kind"], _PROGRAMS)]
        programs = programs[np.argsort(programs["start_ns"], kind="stable")]
        kind = programs["kind"]
        # A speculative one makes way for the run behind it.
        programs = programs[(kind != Kind.snapshot) & ((kind != Kind.commit) | (programs["b"] != 1))]
        self.start = programs["start_ns"].astype(np.int64)
        self.window = programs["window"].astype(np.int64)
        self.kind = programs["kind"]

    def next(self, moments: Ints) -> Ints:
        """[n] the program that starts first from each moment on; beyond the last one: none does."""
        return np.searchsorted(self.start, moments)


class Story:
    """What the control thread decided, and when its inputs were there: the moments that idle stages await.

    Args:
        events: of all stages and the host.
    """

    def __init__(self, events: Events) -> None:
        kind, stage, end = events["kind"], events["stage"], _ends(events)
        built = kind == Kind.window
        verdict = kind == Kind.verdict
        runs = np.isin(kind, _RUNS) & (stage < DRAFT_LANE)
        prompt = events["window"][built & (events["b"] == WindowFate.prompt)]
        last = max((int(s) for s in np.unique(stage) if s < DRAFT_LANE), default=0)
        read = runs & (stage == last) & ((kind == Kind.prefill_chunk) | np.isin(events["window"], prompt))
        self._decided = np.sort(end[verdict | read])  # of verdicts and of what was read
        self._steps = np.sort(end[kind == Kind.draft_step])
        self._verdicts = events[verdict]
        self._runs = events[runs]
        # Of a chunk there is no window event: the first inputs that were staged for it.
        staged = events[(kind == Kind.stage_inputs) & (stage == 0)][::-1]
        self._built = np.concatenate([staged, events[built]])  # of a window the last one counts
        guess = events["b"] == WindowFate.guess
        self._drafted = np.unique(events["window"][built & ((events["rows"] > 1) | guess)]).astype(np.int64)

    def blame(
        self,
        begin: Ints,
        end: Ints,
        text_end: Ints,
        stage: int,
        programs: Programs,
        upstream: Upstream | None,
    ) -> SpanArray:
        """The causes of idle times [begin, end) of a stage, each [n]; host time is left out.

        Args:
            text_end: when the next text begins, whose programs are none of these idle times' business.
        """
        at = programs.next(end)
        ended = at >= programs.next(text_end)
        pieces = [*self._with_nothing_behind(begin[ended], end[ended], text_end[ended])]
        begin, end, at = begin[~ended], end[~ended], at[~ended]
        window, kind = programs.window[at], programs.kind[at]
        of_run = np.isin(kind, _RUNS)
        pieces += self._before_a_commit(begin[~of_run], end[~of_run], window[~of_run], kind[~of_run])
        begin, end, window, start = (column[of_run] for column in (begin, end, window, programs.start[at]))
        source = self._runs[self._runs["stage"] == stage - 1]
        row = Latest(source["window"]).of(window)
        by_host = row < 0 if upstream is not None else np.ones(len(row), bool)
        pieces += self._before_a_start(begin[by_host], end[by_host], window[by_host], start[by_host])
        if upstream is not None:
            rest = ~by_host
            source = source[row[rest]]
            pieces += self._before_an_input(
                begin[rest], end[rest], start[rest], source, upstream, programs.waits
            )
        return _spans(pieces)

    def _with_nothing_behind(self, begin: Ints, end: Ints, text_end: Ints) -> Iterator[Piece]:
        last = np.minimum(np.maximum(begin, _last(self._decided, text_end)), end)
        yield begin, last, Doing.verdict
        yield last, end, Doing.no_work

    def _before_a_commit(
        self, begin: Ints, end: Ints, window: Ints, kind: npt.NDArray[np.uint8]
    ) -> Iterator[Piece]:
        verdict = Latest(self._verdicts["window"]).value(_ends(self._verdicts), window, 0)
        decided = np.minimum(np.maximum(begin, verdict), end)
        yield begin, decided, Doing.verdict
        undo = kind == Kind.undo
        yield decided[undo], end[undo], Doing.undo_awaited

    def _before_a_start(self, begin: Ints, end: Ints, window: Ints, start: Ints) -> Iterator[Piece]:
        """Of a run whose input comes from the host."""
        built = Latest(self._built["window"]).value(self._built["start_ns"], window, start)
        decided = np.minimum(np.maximum(begin, _last(self._decided, built)), end)
        yield begin, decided, Doing.verdict
        drafted = np.isin(window, self._drafted)
        decided, end, built = decided[drafted], end[drafted], built[drafted]
        yield decided, np.minimum(np.maximum(decided, _last(self._steps, built)), end), Doing.draft

    def _before_an_input(
        self, begin: Ints, end: Ints, start: Ints, source: Events, upstream: Upstream, waits: Events
    ) -> Iterator[Piece]:
        """Of a run whose input comes from the stage before, which ran it as `source` [n] says."""
        decided = _last(self._decided, start)
        awaited = decided > _ends(source)
        yield begin[awaited], np.minimum(decided, end)[awaited], Doing.verdict
        begin, end, source = begin[~awaited], end[~awaited], source[~awaited]
        running = np.minimum(np.maximum(begin, source["start_ns"].astype(np.int64)), end)
        there = np.minimum(np.maximum(running, _ends(source)), end)
        yield upstream.during(begin, running)
        yield running, there, Doing.hand_off
        waited = Latest(waits["window"]).of(source["window"])
        waits = waits[waited[waited >= 0]]
        there, end = there[waited >= 0], end[waited >= 0]
        from_ns = np.maximum(there, waits["start_ns"].astype(np.int64))
        yield from_ns, np.minimum(_ends(waits), end), Doing.hand_off


def _ends(events: Events) -> Ints:
    return np.asarray((events["start_ns"] + events["dur_ns"]), np.int64)


def _last(moments: Ints, by: Ints) -> Ints:
    """[n] the last of the moments, which rise, that is not after each of `by`; 0 if there is none."""
    return np.append(moments, 0)[np.searchsorted(moments, by, side="right") - 1]


def _spans(pieces: list[Piece]) -> SpanArray:
    spans = np.zeros(sum(len(begin) for begin, _, _ in pieces), SPAN_DTYPE)
    at = 0
    for begin, end, cause in pieces:
        here = spans[at : at + len(begin)]
        here["start"], here["end"], here["state"] = begin, end, cause
        at += len(begin)
    return spans[spans["start"] < spans["end"]]
