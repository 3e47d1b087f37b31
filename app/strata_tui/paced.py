"""A rig described by its times: what a paced stage is given, for any number of stages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

MAX_WINDOW_ROWS = 8
MAX_PROGRAM_MS = 5000.0

Points = tuple[tuple[int, float], ...]
"""(rows, ms), ascending in rows: a line through them, its ends drawn on."""


@dataclass(frozen=True)
class HandOffTimes:
    """From a stage's end to the next one's begin, ms; `launch`: from a launch to the first stage's begin."""

    launch: float = 0.0
    serial: float = 0.0  # launched by the host when the stage before has finished
    overlapped: float = 0.0  # launched ahead, waits on the ready word
    polled: float = 0.0  # launched by a loop that looks after several windows at a time

    def of(self, overlap: bool, pipelined: bool) -> float:
        """Between two stages, with these switches."""
        return self.overlapped if overlap else self.polled if pipelined else self.serial


@dataclass(frozen=True)
class StageTimes:
    """One stage's programs.

    Attributes:
        run_ms: of a window, by its rows.
        run_ms_per_1k: more for each 1,000 positions before the window.
        chunk_ms: of a chunk of a prompt, by its rows; () = as long as it takes.
    """

    run_ms: Points = ()
    run_ms_per_1k: float = 0.0
    chunk_ms: Points = ()


@dataclass(frozen=True)
class Rig:
    """Costs of programs, never of kinds of windows: those emerge.

    Attributes:
        verdict_ms: the end of the last stage -> the host has seen it, accepted and launched.
        draft_ms: one output of the draft layer.
        commit_ms, undo_ms: on each stage; 0 = as long as it takes.
        jitter: each program lasts up to this share longer or shorter, by `seed`.
        position_offset: rows stand so much later in the context than they do here.
    """

    name: str
    stages: tuple[StageTimes, ...]
    hand_off_ms: HandOffTimes = HandOffTimes()
    verdict_ms: float = 0.0
    draft_ms: float = 0.0
    commit_ms: float = 0.0
    undo_ms: float = 0.0
    jitter: float = 0.0
    seed: int = 0
    position_offset: int = 0

    def stage(self, index: int, bounds: Sequence[int]) -> StageTimes:
        """The times of one stage of a split: the rig's own stage where there are as many.

        Else the rig's stages are laid over the layers, each over an equal share, and a stage takes the time
        of the layers that it has.

        Args:
            bounds: 0, the first layer of each later stage, the number of layers.
        """
        count = len(self.stages)
        if len(bounds) == count + 1:
            return self.stages[index]
        low, high = (bounds[index + end] / bounds[-1] * count for end in (0, 1))
        shares = [max(0.0, min(high, i + 1) - max(low, i)) for i in range(count)]
        parts = list(zip(shares, self.stages, strict=True))
        return StageTimes(
            run_ms=_sum([(share, part.run_ms) for share, part in parts]),
            run_ms_per_1k=sum(share * part.run_ms_per_1k for share, part in parts),
            chunk_ms=_sum([(share, part.chunk_ms) for share, part in parts]),
        )

    def at_offset(self, position_offset: int) -> Rig:
        return replace(self, position_offset=position_offset)


def ms_at(points: Points, rows: int) -> float:
    """The line through the points at `rows`, never below 0; a single point is flat."""
    if len(points) == 1:
        return points[0][1]
    pairs = list(itertools.pairwise(points))
    (x0, y0), (x1, y1) = next((pair for pair in pairs if rows <= pair[1][0]), pairs[-1])
    return max(0.0, y0 + (y1 - y0) * (rows - x0) / (x1 - x0))


def table(points: Points, most_rows: int) -> list[float]:
    """ms for 1 .. most_rows rows; [] for no points."""
    return [ms_at(points, rows) for rows in range(1, most_rows + 1)] if points else []


def _sum(parts: Sequence[tuple[float, Points]]) -> Points:
    """The weighted sum of such lines."""
    used = [(share, points) for share, points in parts if share and points]
    rows = sorted({x for _, points in used for x, _ in points})
    if len(rows) == 1:
        rows.append(rows[0] + 1)
    return tuple((x, sum(share * ms_at(points, x) for share, points in used)) for x in rows)
