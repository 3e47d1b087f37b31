"""Time to columns, against a reference that walks every nanosecond."""

import itertools

import numpy as np
import pytest

from strata_tui.analysis.lane_state import N_STATES, SHARE_COLUMNS, LaneState
from strata_tui.analysis.lanes import (
    Run,
    cell_bounds,
    cells,
    flatten,
    percent,
    runs,
    shares_of_cells,
    windows_of_cells,
)
from strata_tui.analysis.spans import SPAN_DTYPE


def random_spans(rng: np.random.Generator, n: int, t0: int, t1: int) -> np.ndarray:
    spans = np.zeros(n, SPAN_DTYPE)
    spans["start"] = rng.integers(t0 - 20, t1 + 20, n)
    spans["end"] = spans["start"] + rng.integers(0, max(2, (t1 - t0) // 3), n)
    spans["state"] = rng.integers(1, N_STATES, n)
    spans["window"] = rng.integers(1, 9, n)
    return spans


def by_walking(spans: np.ndarray, t0: int, t1: int, bounds: np.ndarray) -> np.ndarray:
    """The rule, word by word: an instant belongs to the highest state that covers it."""
    spent = np.zeros((len(bounds) - 1, N_STATES), np.int64)
    for cell in range(len(bounds) - 1):
        for t in range(bounds[cell], bounds[cell + 1]):
            covering = [int(s["state"]) for s in spans if s["start"] <= t < s["end"]]
            spent[cell, max(covering, default=0)] += 1
    return spent


@pytest.mark.parametrize("seed", range(30))
def test_cells_show_what_walking_every_nanosecond_shows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t0 = int(rng.integers(0, 1000))
    t1 = t0 + int(rng.integers(1, 400))
    columns = int(rng.integers(1, 60))
    spans = random_spans(rng, int(rng.integers(0, 25)), t0, t1)
    bounds = cell_bounds(t0, t1, columns)
    spent = by_walking(spans, t0, t1, bounds)

    edges, states = flatten(spans, t0, t1)
    np.testing.assert_array_equal(shares_of_cells(edges, states, bounds), spent)
    assert spent.sum() == t1 - t0
    for shown, row in zip(cells(spans, t0, t1, columns), spent, strict=True):
        if not row.sum():
            continue  # no nanosecond in it: see below
        even, odd = row[LaneState.RUN_EVEN], row[LaneState.RUN_ODD]
        row[LaneState.RUN_EVEN], row[LaneState.RUN_ODD] = 0, even + odd
        longest = max(range(N_STATES), key=lambda state: (row[state], state))
        if longest == LaneState.RUN_ODD and even > odd:
            longest = LaneState.RUN_EVEN
        assert shown == longest


def test_a_lane_without_spans_is_idle() -> None:
    assert cells(np.zeros(0, SPAN_DTYPE), 0, 100, 7).tolist() == [LaneState.IDLE] * 7


def test_more_columns_than_nanoseconds_leave_no_cell_undefined() -> None:
    span = np.array([(0, 3, 1, LaneState.RUN_ODD)], SPAN_DTYPE)
    shown = cells(span, 0, 3, 10)
    assert len(shown) == 10 and set(shown.tolist()) <= {LaneState.RUN_ODD}


@pytest.mark.parametrize("seed", range(20))
def test_runs_are_the_cells_merged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 50))
    shown = rng.integers(0, 3, n).astype(np.uint8)
    window = rng.integers(0, 2, n).astype(np.uint32)
    merged = runs(shown, window)
    assert [(r.state, r.window) for r in merged for _ in range(r.length)] == list(
        zip(shown.tolist(), window.tolist(), strict=True)
    )
    for left, right in itertools.pairwise(merged):
        assert (left.state, left.window) != (right.state, right.window)


def test_two_windows_back_to_back_are_two_runs() -> None:
    spans = np.array([(0, 50, 1, LaneState.WAIT), (50, 100, 2, LaneState.WAIT)], SPAN_DTYPE)
    bounds = cell_bounds(0, 100, 10)
    shown = cells(spans, 0, 100, 10)
    assert runs(shown, windows_of_cells(spans, shown, bounds)) == [
        Run(LaneState.WAIT, 5, 1),
        Run(LaneState.WAIT, 5, 2),
    ]


@pytest.mark.parametrize("seed", range(50))
def test_percents_sum_to_a_hundred(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spent = rng.integers(0, 1000, N_STATES) * (rng.random(N_STATES) < 0.6)
    spent[LaneState.UNKNOWN] = 0
    shown = percent(spent)
    assert sum(shown) == (100 if spent.sum() else 0)
    for whole, (_, states) in zip(shown, SHARE_COLUMNS, strict=True):
        exact = 100 * sum(spent[s] for s in states) / max(1, spent.sum())
        assert abs(whole - exact) < 1


def test_every_state_is_in_one_column_of_shares() -> None:
    in_columns = sorted(state for _, states in SHARE_COLUMNS for state in states)
    assert in_columns == sorted(set(LaneState) - {LaneState.UNKNOWN})
