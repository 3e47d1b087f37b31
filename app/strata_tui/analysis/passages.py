"""The way of each verify window through the stages: what bounds and predictions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strata_tui.analysis.fate import CLASSES, KEPT, Fate
from strata_tui.events import DRAFT_LANE, Events, Kind, WindowFate

_ENDINGS = {
    Kind.guess_gated: Fate.GATED,
    Kind.guess_late: Fate.LATE,
    Kind.guess_ended: Fate.ENDED,
    Kind.guess_rolled_back: Fate.ROLLED_BACK,
}
_FATES = {int(fate): Fate(fate) for fate in WindowFate}
_TOLD = (Kind.window, Kind.run, Kind.verdict, Kind.guess_launched, Kind.guess_kept, *_ENDINGS)


@dataclass(slots=True)
class Passage:
    """A window; times in nanoseconds of the events' clock, per stage in the order of the stages."""

    id: int
    position: int  # of row 0
    rows: int
    built_ns: int
    fate: Fate
    start_ns: list[int] = field(default_factory=list)  # of its run on each stage that it came to
    end_ns: list[int] = field(default_factory=list)
    verdict_ns: int = 0  # end of its verdict; 0: it had none
    accepted: int = 0
    emitted: int = 0
    depth: int = 0  # windows ahead of it when it was launched as a guess
    held_ns: int = 0  # between the verdict before it and its start: by a rate or by the user

    @property
    def verified(self) -> bool:
        return self.verdict_ns > 0

    @property
    def kept(self) -> bool:
        return self.fate in KEPT

    @property
    def spans_ns(self) -> list[tuple[int, int]]:
        return list(zip(self.start_ns, self.end_ns, strict=True))

    @property
    def run_ns(self) -> list[int]:
        return [end - start for start, end in zip(self.start_ns, self.end_ns, strict=True)]


def last_text(events: Events) -> Events:
    """The events of the last request that began, sorted by their start; all of them where none began."""
    events = events[np.argsort(events["start_ns"], kind="stable")]
    begins = np.flatnonzero(events["kind"] == Kind.request_begin)
    return events[begins[-1] :] if len(begins) else events


def texts(events: Events) -> list[Events]:
    """Cut where a request begins: what was before the first one, then a part a request.

    Within a part events stay in the order in which they came.
    """
    begins = np.sort(events["start_ns"][events["kind"] == Kind.request_begin])
    if not len(begins):
        return [events]
    part = np.searchsorted(begins, events["start_ns"], side="right")
    order = np.argsort(part, kind="stable")
    cuts = np.searchsorted(part[order], np.arange(1, len(begins) + 1))
    return np.split(events[order], cuts)


def passages(events: Events) -> list[Passage]:
    """The verify windows of these events, oldest first; prompt windows and chunks are left out.

    A run whose stage does not follow the one before it (events were dropped) is left out, and so are the
    window's later ones.
    """
    told = events[np.isin(events["kind"], _TOLD) & (events["stage"] != DRAFT_LANE)]
    kind = told["kind"]
    windows = _built(told[kind == Kind.window])
    _note_runs(windows, told[kind == Kind.run])
    _note_verdicts(windows, told[kind == Kind.verdict])
    _note_guesses(windows, told[(kind >= Kind.guess_built) & (kind <= Kind.guess_ended)])
    found = sorted(windows.values(), key=lambda window: window.id)
    _note_held(found, events)
    return found


def _built(events: Events) -> dict[int, Passage]:
    """By id, those of a prompt left out."""
    events = events[(events["b"] != WindowFate.prompt) & np.isin(events["b"], list(_FATES))]
    events = events[np.argsort(events["start_ns"], kind="stable")]
    told = (events[name].tolist() for name in ("window", "a", "rows", "start_ns", "b"))
    return {id: Passage(id, a, rows, at, _FATES[b]) for id, a, rows, at, b in zip(*told, strict=True)}


def _note_runs(windows: dict[int, Passage], events: Events) -> None:
    ends = events["start_ns"] + events["dur_ns"]
    order = np.lexsort([events["window"], ends, events["start_ns"], events["stage"]])
    told = (
        column[order].tolist() for column in (events["stage"], events["start_ns"], ends, events["window"])
    )
    for stage, start, end, id in zip(*told, strict=True):
        window = windows.get(id)
        if window is not None and stage == len(window.start_ns):
            window.start_ns.append(start)
            window.end_ns.append(end)


def _note_verdicts(windows: dict[int, Passage], events: Events) -> None:
    ends = events["start_ns"] + events["dur_ns"]
    told = (column.tolist() for column in (events["window"], ends, events["a"], events["b"]))
    for id, end, accepted, emitted in zip(*told, strict=True):
        window = windows.get(id)
        if window is not None:
            window.verdict_ns, window.accepted, window.emitted = end, accepted, emitted


def _note_guesses(windows: dict[int, Passage], events: Events) -> None:
    for _, _, id, kind, _, _, a, b in events.tolist():
        window = windows.get(id)
        if window is None:
            continue
        if kind == Kind.guess_launched:
            window.depth = a
            if window.fate == Fate.GUESS:
                window.fate = Fate.IN_FLIGHT
        elif kind == Kind.guess_kept and b in (WindowFate.kept_after_fresh, WindowFate.kept_after_kept):
            window.fate = _FATES[b]
        elif kind in _ENDINGS:
            window.fate = _ENDINGS[kind]


def _note_held(windows: Sequence[Passage], events: Events) -> None:
    verified = [window for window in windows if window.verified and window.start_ns]
    holds = events[np.isin(events["kind"], (Kind.throttle, Kind.paused))]
    if not len(holds) or len(verified) < 2:
        return
    holds = holds[np.argsort(holds["start_ns"], kind="stable")]
    base = holds["start_ns"][0]
    starts = (holds["start_ns"] - base).astype(np.int64)
    ends = np.maximum.accumulate(starts + holds["dur_ns"].astype(np.int64))
    starts = np.maximum(starts, np.append(0, ends[:-1]))  # one within another counts once
    edges = np.column_stack([starts, ends]).ravel()
    held = np.column_stack([np.zeros(len(starts), np.int64), ends - starts]).ravel().cumsum()
    before = np.array([window.verdict_ns for window in verified[:-1]], np.int64) - np.int64(base)
    after = np.array([window.start_ns[0] for window in verified[1:]], np.int64) - np.int64(base)
    spent = np.interp(after, edges, held, left=0) - np.interp(before, edges, held, left=0)
    for window, ns in zip(verified[1:], np.maximum(spent, 0).tolist(), strict=True):
        window.held_ns = round(ns)


def complete(windows: Sequence[Passage], n_stages: int) -> list[Passage]:
    """The verified windows; none at all where one of them lacks a run (events were dropped)."""
    verified = [window for window in windows if window.verified]
    return verified if all(len(window.end_ns) == n_stages for window in verified) else []


def ms_by_class(windows: Sequence[Passage]) -> dict[Fate, tuple[int, float | None]]:
    """Windows of each class and their mean ms, verdict to verdict; the first from when it was built."""
    verified = [window for window in windows if window.verified]
    before = [verified[0].built_ns, *(w.verdict_ns for w in verified[:-1])] if verified else []
    spent: dict[Fate, list[int]] = {fate: [] for fate in CLASSES}
    for window, since in zip(verified, before, strict=True):
        if window.fate in spent:
            spent[window.fate].append(window.verdict_ns - since)
    return {fate: (len(ns), sum(ns) / len(ns) / 1e6 if ns else None) for fate, ns in spent.items()}


def accepted_per_position(windows: Sequence[Passage]) -> list[tuple[int, int]]:
    """(windows whose first k drafts were accepted, windows that had a k-th draft), k = 1 .. the most."""
    verified = [window for window in windows if window.verified]
    most = max((window.rows for window in verified), default=1)
    return [
        (sum(w.accepted >= k for w in verified), sum(w.rows > k for w in verified)) for k in range(1, most)
    ]


def wasted_ns(events: Events, n_stages: int) -> list[int]:
    """Device time of the programs of windows that were rolled back, per stage."""
    lost = events["window"][events["kind"] == Kind.guess_rolled_back]
    runs = events[(events["kind"] == Kind.run) & np.isin(events["window"], lost)]
    return [int(runs["dur_ns"][runs["stage"] == stage].sum()) for stage in range(n_stages)]
