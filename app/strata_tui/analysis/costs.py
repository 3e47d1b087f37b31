"""What the parts of a recorded text cost: the rig that a prediction runs on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.crowd import Crowds
from strata_tui.analysis.latest import Ints, Latest
from strata_tui.analysis.passages import Passage, complete
from strata_tui.events import DRAFT_LANE, Events, Kind
from strata_tui.placement import SharedCores

Floats = npt.NDArray[np.float64]

AT_ONCE_NS = 1_000_000  # a draft step that begins so soon behind another follows it without waiting
CUT_SHARE = 0.1  # of a stage's run: how soon a rolled-back program ends, where none was recorded


@dataclass(frozen=True)
class Costs:
    """ms; hand-offs per boundary."""

    n_stages: int
    by_rows: list[dict[int, float]]  # [stages] rows -> run
    own: dict[tuple[int, int], list[float]]  # position, rows of a verified window -> its run per stage
    serial_hand_off: list[float]
    overlapped_hand_off: list[float]
    verdict: float
    draft: float  # from one output of the chain to the next
    catch_up: float  # from the verdict to the chain's first output
    catch_up_per_row: float  # more of it for each row more that the verdict left to catch up on
    launch: float  # from the last draft (or verdict) to the start on stage 0
    commit: float
    undo: float
    cut: float  # from a miss to the end of a rolled-back program

    def run(self, stage: int, rows: int) -> float:
        """A stage's time for so many rows: as recorded, else between or along the recorded ones."""
        known = self.by_rows[stage]
        if rows in known:
            return known[rows]
        x = sorted(known)
        if len(x) > 1 and not x[0] < rows < x[-1]:
            slope = max(0.0, (known[x[-1]] - known[x[0]]) / (x[-1] - x[0]))
            edge = x[0] if rows < x[0] else x[-1]
            return max(0.0, known[edge] + slope * (rows - edge))
        return float(np.interp(rows, x, [known[at] for at in x]))

    def of_window(self, position: int, rows: int) -> list[float]:
        """Per stage: its own times where this very window was recorded."""
        return self.own.get((position, rows)) or [self.run(stage, rows) for stage in range(self.n_stages)]


def read_costs(
    events: Events, windows: Sequence[Passage], n_stages: int, shared: Sequence[SharedCores] = ()
) -> Costs | None:
    """Means over the places where nothing but the part itself can count. None: no text, or runs missing.

    Means, not medians: they add up to what the text took, which is what a prediction is compared with.

    Hand-offs are those of fresh windows. A serial one is what lies between the end on a stage and the start
    on the next; of it, an overlapped one keeps what comes behind the host's launch. Where the recording is
    overlapped, the host's part (noticing, staging) is added for a serial one.

    Args:
        shared: cores that stages and draft layer share; what a crowd on them took is taken off. What is in
            none has cores of its own.
    """
    verified = complete(windows, n_stages)
    if not verified:
        return None
    fresh = [window for window in verified if not window.kept]
    after = [(before, window) for before, window in pairwise(verified) if not window.kept]
    after = [(before, window) for before, window in after if not window.held_ns] or after
    steps = _draft_steps(events)
    ends = [end for _, end, _ in steps]
    chains = [(before, w) for before, w in after if w.rows > 1]
    serial, overlapped = _hand_offs(events, fresh, n_stages)
    crowds = Crowds(_running(windows, steps, n_stages), shared)
    starts = _matrix([w.start_ns for w in verified], n_stages)
    by_stage = zip(starts.T, _matrix([w.end_ns for w in verified], n_stages).T, strict=True)
    alone = np.stack([_alone_ms(crowds, s, *times) for s, times in enumerate(by_stage)], axis=1).tolist()
    own = {(w.position, w.rows): ms for w, ms in zip(verified, alone, strict=True)}
    by_rows = _by_rows(own, n_stages)
    undone = _lasted(events, Kind.undo)
    commit = _lasted(events, Kind.commit)
    return Costs(
        n_stages=n_stages,
        by_rows=by_rows,
        own=own,
        serial_hand_off=serial,
        overlapped_hand_off=overlapped,
        verdict=_mean_ms([w.verdict_ns - w.end_ns[-1] for w in verified]),
        draft=_mean(_outputs(crowds, steps)),
        catch_up=_mean_ms(_first_outputs(steps, chains)),
        catch_up_per_row=_catch_up_per_row(events, crowds, verified[0].verdict_ns),
        launch=_mean_ms(_launches(events, after, ends)),
        commit=_mean_ms(commit),
        undo=_mean_ms(undone if len(undone) else commit),
        cut=_cut_ms(windows, events, by_rows),
    )


def _matrix(times: Sequence[Sequence[int]], n_stages: int) -> Ints:
    """[windows, stages]"""
    return np.array(times, np.int64).reshape(-1, n_stages)


def _by_rows(own: dict[tuple[int, int], list[float]], n_stages: int) -> list[dict[int, float]]:
    rows, ms = np.array([rows for _, rows in own]), np.array(list(own.values()))
    means = {n: np.mean(ms[rows == n], axis=0).tolist() for n in dict.fromkeys(rows.tolist())}
    return [{n: of_stages[stage] for n, of_stages in means.items()} for stage in range(n_stages)]


def _hand_offs(events: Events, fresh: Sequence[Passage], n_stages: int) -> tuple[list[float], list[float]]:
    """Serial, overlapped; per boundary."""
    start, end = _matrix([w.start_ns for w in fresh], n_stages), _matrix([w.end_ns for w in fresh], n_stages)
    ids = np.array([window.id for window in fresh], np.int64)
    launches, staging, syncs = (
        events[events["kind"] == kind] for kind in (Kind.launch, Kind.stage_inputs, Kind.sync)
    )
    serial, overlapped = [], []
    for stage in range(1, n_stages):
        came = end[:, stage - 1]
        gap = start[:, stage] - came
        launch = _latest(launches, stage, "start_ns", ids, came)
        ahead = _latest(launches, stage, "a", ids, 0) != 0
        noticing = _latest(syncs, stage - 1, "dur_ns", ids, 0)
        host = noticing + launch - _latest(staging, stage, "start_ns", ids, launch)
        by_flag = gap[ahead] if ahead.any() else start[:, stage] - launch
        by_host = gap + host if ahead.all() else gap[~ahead]
        serial.append(max(0.0, _mean_ms(by_host)))
        overlapped.append(min(serial[-1], max(0.0, _mean_ms(by_flag))))
    return serial, overlapped


def _latest(events: Events, stage: int, field: str, ids: Ints, default: Ints | int) -> Ints:
    """Of each window's last event on a stage a field."""
    mine = events[events["stage"] == stage]
    return Latest(mine["window"]).value(mine[field], ids, default)


def _draft_steps(events: Events) -> list[tuple[int, int, int]]:
    """Start, end, step (0 = catch-up) of the draft layer, by their start."""
    steps = events[(events["kind"] == Kind.draft_step) & (events["stage"] == DRAFT_LANE)]
    start, step = steps["start_ns"], steps["a"]
    return sorted(zip(start.tolist(), (start + steps["dur_ns"]).tolist(), step.tolist(), strict=True))


def _running(
    windows: Sequence[Passage], steps: Sequence[tuple[int, int, int]], n_stages: int
) -> dict[int, Floats]:
    """All that ran at some time: ms by lane."""
    spans = {
        stage: [(w.start_ns[stage], w.end_ns[stage]) for w in windows if len(w.end_ns) > stage]
        for stage in range(n_stages)
    } | {DRAFT_LANE: [(start, end) for start, end, _ in steps]}
    return {lane: np.array(of, float).reshape(-1, 2) / 1e6 for lane, of in spans.items()}


def _alone_ms(crowds: Crowds, lane: int, start_ns: Ints, end_ns: Ints) -> Floats:
    """What each would have taken with a core of its own."""
    alone: Floats = (end_ns - start_ns) / 1e6 - crowds.lost_ms(lane, start_ns / 1e6, end_ns / 1e6)
    return alone


def _outputs(crowds: Crowds, steps: Sequence[tuple[int, int, int]]) -> Floats:
    """From one output of the chain to the next that follows at once."""
    start, end, step = np.array(steps, np.int64).reshape(-1, 3).T
    at_once = (step[1:] != 0) & (start[1:] - end[:-1] < AT_ONCE_NS)
    return _alone_ms(crowds, DRAFT_LANE, end[:-1][at_once], end[1:][at_once])


def _catch_up_per_row(events: Events, crowds: Crowds, since_ns: int) -> float:
    """The slope of the passes that give a chain's first output; 0 where all are of as many rows.

    Args:
        since_ns: the first verdict; the pass before it, over the prompt's rows, finds caches cold.
    """
    steps = events[(events["kind"] == Kind.draft_step) & (events["stage"] == DRAFT_LANE)]
    firsts = steps[(steps["a"] == 0) & (steps["b"] >= 0) & (steps["start_ns"] >= since_ns)]
    rows = firsts["rows"].astype(float)
    if not rows.size or np.ptp(rows) == 0:
        return 0.0
    start = firsts["start_ns"].astype(np.int64)
    ms = _alone_ms(crowds, DRAFT_LANE, start, start + firsts["dur_ns"].astype(np.int64))
    return max(0.0, float(np.polyfit(rows, ms, 1)[0]))


def _first_outputs(
    steps: Sequence[tuple[int, int, int]], chains: Sequence[tuple[Passage, Passage]]
) -> list[int]:
    """From a verdict, or the step that runs then, to the end of the catch-up; without one, to the window."""
    ends = [end for _, end, _ in steps]
    catch_ups = [i for i, (_, _, step) in enumerate(steps) if not step]
    lengths = []
    for before, window in chains:
        later = bisect_left(catch_ups, bisect_right(ends, before.verdict_ns))
        at = catch_ups[later] if later < len(catch_ups) else None
        if at is None or ends[at] > window.built_ns:
            lengths.append(window.built_ns - before.verdict_ns)
        else:
            lengths.append(ends[at] - max(before.verdict_ns, ends[at - 1] if at else 0))
    return lengths


def _launches(
    events: Events, after: Sequence[tuple[Passage, Passage]], draft_ends: Sequence[int]
) -> list[int]:
    """From the last thing that a fresh window waited for to its start on stage 0, less held time."""
    programs = events[(events["stage"] == 0) & np.isin(events["kind"], (Kind.run, Kind.commit, Kind.undo))]
    ends = np.sort(programs["start_ns"] + programs["dur_ns"]).tolist()
    waits = [
        window.start_ns[0]
        - max(
            before.verdict_ns,
            _last(draft_ends, window.built_ns) if window.rows > 1 else 0,
            _last(ends, window.start_ns[0]),
        )
        - window.held_ns
        for before, window in after
    ]
    return [max(0, wait) for wait in waits]


def _cut_ms(windows: Sequence[Passage], events: Events, by_rows: Sequence[dict[int, float]]) -> float:
    missed = {w: start for start, _, w, *_ in _rows(events, Kind.guess_rolled_back)}
    late = [
        end - missed[window.id]
        for window in windows
        if window.id in missed
        for end in window.end_ns
        if end > missed[window.id]
    ]
    return _mean_ms(late) if late else CUT_SHARE * min(min(times.values()) for times in by_rows)


def _rows(events: Events, kind: Kind) -> list[tuple[int, ...]]:
    return list(events[events["kind"] == kind].tolist())


def _lasted(events: Events, kind: Kind) -> Ints:
    of_stages = events[(events["kind"] == kind) & (events["stage"] < DRAFT_LANE)]
    return np.asarray(of_stages["dur_ns"], np.int64)


def _last(moments: Sequence[int], by: int) -> int:
    at = bisect_right(moments, by)
    return moments[at - 1] if at else 0


def _mean_ms(ns: Sequence[int] | Ints) -> float:
    return _mean(np.asarray(ns)) / 1e6


def _mean(values: npt.NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
