"""What the parts of a recorded text cost: the rig that a prediction runs on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from strata_tui.analysis.crowd import Crowd
from strata_tui.analysis.passages import Passage, complete
from strata_tui.events import DRAFT_LANE, Events, Kind

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
    events: Events, windows: Sequence[Passage], n_stages: int, cores: int | None = None
) -> Costs | None:
    """Medians over the places where nothing but the part itself can count. None: no text, or runs missing.

    Hand-offs are those of fresh windows. A serial one is what lies between the end on a stage and the start
    on the next; of it, an overlapped one keeps what comes behind the host's launch. Where the recording is
    overlapped, the host's part (noticing, staging) is added for a serial one.

    Args:
        cores: that all stages share, and the draft layer; what a crowd on them took is taken off. None: each
            has its own.
    """
    verified = complete(windows, n_stages)
    if not verified:
        return None
    fresh = [window for window in verified if not window.kept]
    after = [(before, window) for before, window in pairwise(verified) if not window.kept]
    steps = _draft_steps(events)
    ends = [end for _, end, _ in steps]
    chains = [(before, w) for before, w in after if w.rows > 1]
    serial, overlapped = _hand_offs(events, fresh, n_stages)
    crowd = Crowd(_running(windows, steps), cores) if cores else None
    own = {(w.position, w.rows): [_alone_ms(crowd, *span) for span in w.spans_ns] for w in verified}
    by_rows: list[dict[int, float]] = []
    for stage in range(n_stages):
        samples: dict[int, list[float]] = {}
        for (_, rows), run in own.items():
            samples.setdefault(rows, []).append(run[stage])
        by_rows.append({rows: median(ms) for rows, ms in samples.items()})
    undone = _lasted(events, Kind.undo)
    commit = _lasted(events, Kind.commit)
    return Costs(
        n_stages=n_stages,
        by_rows=by_rows,
        own=own,
        serial_hand_off=serial,
        overlapped_hand_off=overlapped,
        verdict=_median_ms([w.verdict_ns - w.end_ns[-1] for w in verified]),
        draft=float(median(_outputs(crowd, steps) or [0.0])),
        catch_up=_median_ms(_first_outputs(steps, chains)),
        launch=_median_ms(_launches(events, after, ends)),
        commit=_median_ms(commit),
        undo=_median_ms(undone or commit),
        cut=_cut_ms(windows, events, by_rows),
    )


def _hand_offs(events: Events, fresh: Sequence[Passage], n_stages: int) -> tuple[list[float], list[float]]:
    """Serial, overlapped; per boundary."""
    launches = {(w, s): (start, bool(a)) for start, _, w, _, s, _, a, _ in _rows(events, Kind.launch)}
    staged = {(w, s): start for start, _, w, _, s, *_ in _rows(events, Kind.stage_inputs)}
    noticed = {(w, s): dur for _, dur, w, _, s, *_ in _rows(events, Kind.sync)}
    serial, overlapped = [], []
    for stage in range(1, n_stages):
        gaps: dict[bool, list[int]] = {False: [], True: []}
        woken, host = [], []
        for window in fresh:
            key = window.id, stage
            launch, ahead = launches.get(key, (window.end_ns[stage - 1], False))
            gaps[ahead].append(window.start_ns[stage] - window.end_ns[stage - 1])
            if not ahead:
                woken.append(window.start_ns[stage] - launch)
            host.append(noticed.get((window.id, stage - 1), 0) + launch - staged.get(key, launch))
        by_flag = gaps[True] or woken
        by_host = gaps[False] or [gap + part for gap, part in zip(gaps[True], host, strict=True)]
        serial.append(max(0.0, _median_ms(by_host)))
        overlapped.append(min(serial[-1], max(0.0, _median_ms(by_flag))))
    return serial, overlapped


def _draft_steps(events: Events) -> list[tuple[int, int, int]]:
    """Start, end, step (0 = catch-up) of the draft layer, by their start."""
    rows = [
        (start, start + dur, a)
        for start, dur, _, _, stage, _, a, _ in _rows(events, Kind.draft_step)
        if stage == DRAFT_LANE
    ]
    return sorted(rows)


def _running(windows: Sequence[Passage], steps: Sequence[tuple[int, int, int]]) -> list[tuple[float, float]]:
    """All that ran at some time, ms."""
    runs = [span for window in windows for span in window.spans_ns]
    return [(start / 1e6, end / 1e6) for start, end, *_ in (*runs, *steps)]


def _alone_ms(crowd: Crowd | None, start_ns: int, end_ns: int) -> float:
    """What it would have taken with a core of its own."""
    lost = crowd.lost_ms(start_ns / 1e6, end_ns / 1e6) if crowd else 0.0
    return (end_ns - start_ns) / 1e6 - lost


def _outputs(crowd: Crowd | None, steps: Sequence[tuple[int, int, int]]) -> list[float]:
    """From one output of the chain to the next that follows at once."""
    return [_alone_ms(crowd, a[1], b[1]) for a, b in pairwise(steps) if b[2] and b[0] - a[1] < AT_ONCE_NS]


def _first_outputs(
    steps: Sequence[tuple[int, int, int]], chains: Sequence[tuple[Passage, Passage]]
) -> list[int]:
    """From a verdict, or the step that runs then, to the end of the catch-up; without one, to the window."""
    ends = [end for _, end, _ in steps]
    lengths = []
    for before, window in chains:
        at = next(
            (i for i in range(bisect_right(ends, before.verdict_ns), len(steps)) if not steps[i][2]), None
        )
        if at is None or ends[at] > window.built_ns:
            lengths.append(window.built_ns - before.verdict_ns)
        else:
            lengths.append(ends[at] - max(before.verdict_ns, ends[at - 1] if at else 0))
    return lengths


def _launches(
    events: Events, after: Sequence[tuple[Passage, Passage]], draft_ends: Sequence[int]
) -> list[int]:
    """From the last thing that a fresh window waited for to its start on stage 0."""
    programs = events[(events["stage"] == 0) & np.isin(events["kind"], (Kind.run, Kind.commit, Kind.undo))]
    ends = sorted((programs["start_ns"] + programs["dur_ns"]).tolist())
    return [
        window.start_ns[0]
        - max(
            before.verdict_ns,
            _last(draft_ends, window.built_ns) if window.rows > 1 else 0,
            _last(ends, window.start_ns[0]),
        )
        for before, window in after
    ]


def _cut_ms(windows: Sequence[Passage], events: Events, by_rows: Sequence[dict[int, float]]) -> float:
    missed = {w: start for start, _, w, *_ in _rows(events, Kind.guess_rolled_back)}
    late = [
        end - missed[window.id]
        for window in windows
        if window.id in missed
        for end in window.end_ns
        if end > missed[window.id]
    ]
    return _median_ms(late) if late else CUT_SHARE * min(min(times.values()) for times in by_rows)


def _rows(events: Events, kind: Kind) -> list[tuple[int, ...]]:
    return list(events[events["kind"] == kind].tolist())


def _lasted(events: Events, kind: Kind) -> list[int]:
    of_stages = events[(events["kind"] == kind) & (events["stage"] < DRAFT_LANE)]
    return list(of_stages["dur_ns"].tolist())


def _last(moments: Sequence[int], by: int) -> int:
    at = bisect_right(moments, by)
    return moments[at - 1] if at else 0


def _median_ms(ns: Sequence[int]) -> float:
    return median(ns) / 1e6 if ns else 0.0
