"""Time to columns: the picture of one lane.

1. At an instant a lane is in the highest state whose span covers it (`LaneState`), IDLE where none does.
2. A cell shows the state that has the longest share of the cell's time; of equal shares the higher state. The
   two shades of running are one state here; the shade is that with the longer share.
3. Neighbouring cells of one state and one window are one run: it is drawn, labelled and styled as a piece.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.lane_state import N_STATES, SHARE_COLUMNS, LaneState
from strata_tui.analysis.spans import SpanArray

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Run:
    """Neighbouring cells that look the same: `window` is 0 where the state belongs to none."""

    state: LaneState
    length: int
    window: int


def flatten(spans: SpanArray, t0: int, t1: int) -> tuple[Int64, UInt8]:
    """Piecewise states of a lane over [t0, t1).

    Args:
        spans: SPAN_DTYPE rows in any order; they may lie over one another.
        t0: start of the range, nanoseconds.
        t1: its end, beyond t0.

    Returns:
        edges [n+1], rising from t0 to t1, and states [n]: piece i is [edges[i], edges[i+1]).
    """
    start = np.clip(spans["start"], t0, t1)
    end = np.clip(spans["end"], t0, t1)
    edges = np.sort(np.concatenate([[t0, t1], start, end]))
    edges = edges[np.append(True, edges[1:] > edges[:-1])]
    states = np.zeros(len(edges) - 1, np.uint8)
    first = np.searchsorted(edges, start)
    last = np.searchsorted(edges, end)
    for state in np.unique(spans["state"]):
        of_state = spans["state"] == state
        begun = np.bincount(first[of_state], minlength=len(edges))
        ended = np.bincount(last[of_state], minlength=len(edges))
        states[np.cumsum(begun - ended)[:-1] > 0] = state
    return edges, states


def shares_of_cells(edges: Int64, states: UInt8, bounds: Int64) -> Int64:
    """Nanoseconds of cell i, [bounds[i], bounds[i+1]), in each state: [n_cells, N_STATES]."""
    piece = np.diff(edges)
    spent = np.zeros((len(bounds) - 1, N_STATES), np.int64)
    at = np.clip(np.searchsorted(edges, bounds, side="right") - 1, 0, len(piece) - 1)
    into = bounds - edges[at]
    for state in np.unique(states):
        here = states == state
        before = np.concatenate([[0], np.cumsum(np.where(here, piece, 0))])
        spent[:, state] = np.diff(before[at] + np.where(here[at], into, 0))
    return spent


def cell_bounds(t0: int, t1: int, columns: int) -> Int64:
    """The edges of `columns` cells over [t0, t1), [columns+1]: cells differ by at most a nanosecond."""
    return t0 + (np.arange(columns + 1, dtype=np.int64) * (t1 - t0)) // columns


def cells(spans: SpanArray, t0: int, t1: int, columns: int) -> UInt8:
    """The state that each of `columns` equal cells over [t0, t1) shows, by the rules above."""
    edges, states = flatten(spans, t0, t1)
    bounds = cell_bounds(t0, t1, columns)
    shown = _dominant(shares_of_cells(edges, states, bounds))
    if columns > t1 - t0:  # cells without time show the instant that they stand for
        at = np.clip(np.searchsorted(edges, bounds[:-1], side="right") - 1, 0, len(states) - 1)
        shown = np.where(np.diff(bounds) == 0, states[at], shown)
    return shown


def _dominant(spent: Int64) -> UInt8:
    odd = spent[:, LaneState.RUN_ODD] >= spent[:, LaneState.RUN_EVEN]
    merged = spent.copy()
    merged[:, LaneState.RUN_ODD] += merged[:, LaneState.RUN_EVEN]
    merged[:, LaneState.RUN_EVEN] = 0
    from_top = np.argmax(merged[:, ::-1], axis=1)  # argmax takes the first: of equal shares the higher state
    shown = np.asarray(N_STATES - 1 - from_top, np.uint8)
    shown[(shown == LaneState.RUN_ODD) & ~odd] = LaneState.RUN_EVEN
    return shown


def windows_of_cells(spans: SpanArray, shown: UInt8, bounds: Int64) -> npt.NDArray[np.uint32]:
    """The window of each cell, 0 for none: that of the last span of the cell's state begun by its end."""
    window = np.zeros(len(shown), np.uint32)
    for state in np.unique(shown):
        of_state = spans[spans["state"] == state]
        if not len(of_state):
            continue
        where = np.flatnonzero(shown == state)
        at = np.searchsorted(of_state["start"], bounds[where + 1], side="left") - 1
        window[where] = np.where(at >= 0, of_state["window"][at], 0)
    return window


def runs(shown: UInt8, window: npt.NDArray[np.uint32]) -> list[Run]:
    """Merge neighbouring cells of equal state and window."""
    if not len(shown):
        return []
    change = np.flatnonzero((np.diff(shown) != 0) | (np.diff(window) != 0)) + 1
    first = np.concatenate([[0], change])
    length = np.diff(np.concatenate([first, [len(shown)]]))
    return [
        Run(LaneState(state), n, w)
        for state, n, w in zip(shown[first].tolist(), length.tolist(), window[first].tolist(), strict=True)
    ]


def percent(spent_ns: Int64) -> tuple[int, ...]:
    """Whole percents per column of SHARE_COLUMNS that sum to exactly 100 (largest remainders are rounded up).

    Args:
        spent_ns: time in each state, [N_STATES].

    Returns:
        One number a column; all zero when no time has passed.
    """
    columns = [int(sum(spent_ns[state] for state in states)) for _, states in SHARE_COLUMNS]
    total = sum(columns)
    if not total:
        return (0,) * len(columns)
    whole = [100 * ns // total for ns in columns]
    by_remainder = sorted(range(len(columns)), key=lambda i: -(100 * columns[i] % total))
    for i in by_remainder[: 100 - sum(whole)]:
        whole[i] += 1
    return tuple(whole)
