"""A recorded text as the windows of the reference schedule: what the engine did, in the simulator's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from strata_tui.analysis.schedule import Rig, Verdict, Window
from strata_tui.events import DRAFT_LANE, Events, Kind, WindowFate

FATES = {
    Kind.guess_kept: None,  # in b
    Kind.guess_gated: "gated",
    Kind.guess_late: "late",
    Kind.guess_rolled_back: "rolled back",
    Kind.guess_ended: "ended",
}
WINDOW_FATES = {
    WindowFate.fresh: "fresh",
    WindowFate.kept_after_fresh: "kept after fresh",
    WindowFate.kept_after_kept: "kept after kept",
}
GUESS = 4  # of a window event, before its verdict


class Committed(NamedTuple):
    kind: Kind  # commit or undo
    window: int
    stage: int
    rows: int
    speculative: bool
    ms: float


@dataclass
class Recording:
    """One text; ms from the first window's start on stage 0."""

    windows: list[Window]  # in the order in which they were built
    draft_steps: list[tuple[float, float, int]] = field(
        default_factory=list
    )  # start, end, step (0 = catch-up)
    commits: list[Committed] = field(default_factory=list)  # undos too, in the order of their starts

    @property
    def verified(self) -> list[Window]:
        return [window for window in self.windows if window.verified]

    def verdicts(self, own_times: bool = False) -> list[Verdict]:
        """What happened, as far as it decides what happens next; with `own_times`, each window's own too."""
        verified = self.verified
        return [
            Verdict(
                window.accepted, behind is not None and behind.kept, run=window.run_ms if own_times else None
            )
            for window, behind in zip(verified, [*verified[1:], None], strict=True)
        ]


def recorded(events: Events) -> Recording:
    """The last request of a trace. Prompt windows are left out."""
    events = events[events["start_ns"].argsort(kind="stable")]
    begin = events["start_ns"][events["kind"] == Kind.request_begin][-1]
    windows: dict[int, Window] = {}
    recording = Recording([])
    for event in events[events["start_ns"] >= begin]:
        kind, stage, a, b = Kind(event["kind"]), int(event["stage"]), int(event["a"]), int(event["b"])
        start, end = int(event["start_ns"]) / 1e6, int(event["start_ns"] + event["dur_ns"]) / 1e6
        if kind == Kind.window and b != WindowFate.prompt:
            fate = "guess" if b == GUESS else WINDOW_FATES[WindowFate(b)]
            windows[event["window"]] = Window(int(event["window"]), 0, int(event["rows"]), start, fate=fate)
        elif kind == Kind.draft_step and windows:
            recording.draft_steps.append((start, end, a))
        elif kind in (Kind.commit, Kind.undo) and windows and stage != DRAFT_LANE:
            commit = Committed(kind, int(event["window"]), stage, int(event["rows"]), bool(b), end - start)
            recording.commits.append(commit)
        window = windows.get(event["window"])
        if window is None:
            continue
        if kind == Kind.run:
            if stage != len(window.start_ms):
                raise AssertionError(f"window {window.id}: stage {stage} after {len(window.start_ms)} stages")
            window.start_ms.append(start)
            window.end_ms.append(end)
        elif kind == Kind.verdict:
            window.verdict_ms, window.accepted = end, a
        elif kind == Kind.guess_launched:
            window.depth = a
        elif kind == Kind.commit and b and stage < 254:
            window.committed.add(stage)
        elif kind in FATES:
            window.fate = FATES[kind] or WINDOW_FATES[WindowFate(b)]
    recording.windows = list(windows.values())
    _from_first_start(recording)
    return recording


def _from_first_start(recording: Recording) -> None:
    zero = recording.windows[0].start_ms[0]
    for window in recording.windows:
        window.built_ms -= zero
        window.verdict_ms -= zero
        window.start_ms = [ms - zero for ms in window.start_ms]
        window.end_ms = [ms - zero for ms in window.end_ms]
    recording.draft_steps = [(start - zero, end - zero, step) for start, end, step in recording.draft_steps]


def measured_rig(recording: Recording, cut: float | None) -> Rig:
    """What the parts of this text took, each the median over the places where nothing but it can count.

    Hand-offs: of fresh windows. Launches: the shortest, since some wait for an undo. A draft output: from the
    end of the step before, where one follows the other at once; the catch-up: from the verdict before a fresh
    window.
    """
    verified = recording.verified
    fresh = [window for window in verified if not window.kept]
    stages = range(len(verified[0].start_ms))
    steps = recording.draft_steps
    passes = [end for _, end, step in steps if step == 0]
    catch_ups = [
        min((end for end in passes if end > before.verdict_ms), default=before.verdict_ms) - before.verdict_ms
        for before, window in pairwise(verified)
        if window.rows > 1 and not window.kept
    ]
    return Rig(
        run=[median(w.run_ms[s] for w in verified) for s in stages],
        handoff=_median([w.start_ms[s] - w.end_ms[s - 1] for w in fresh for s in stages[1:]]),
        verdict=_median([w.verdict_ms - w.end_ms[-1] for w in verified]),
        draft=_median([b[1] - a[1] for a, b in pairwise(steps) if b[2] > 0 and b[0] - a[1] < 1]),
        catch_up=_median(catch_ups),
        commit=_median([commit.ms for commit in recording.commits if commit.kind == Kind.commit]),
        undo=_median([commit.ms for commit in recording.commits if commit.kind == Kind.undo]),
        launch=min(w.start_ms[0] - w.built_ms for w in fresh),
        cut=cut,
    )


def _median(values: Sequence[Any]) -> float:
    return float(median(values)) if values else 0.0
