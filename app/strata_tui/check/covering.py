"""Covering arrays: few rows of a product in which every combination of chosen columns still occurs.

Greedy and deterministic: the next row is the one with most combinations that have not occurred yet. The
smallest array is not needed, and hard to find. `missing` looks at a result in another way than `cover` goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Row = Sequence[Any]
Group = tuple[int, ...]  # columns whose values are looked at together


def _combinations(rows: Sequence[Row], groups: Sequence[Group]) -> npt.NDArray[np.int64]:
    """[n_rows, n_groups]: a number for each combination that a row has, different in different groups."""
    columns = []
    for values in zip(*rows, strict=True):
        numbers: dict[Any, int] = {}
        columns.append(np.array([numbers.setdefault(value, len(numbers)) for value in values]))
    combinations = np.empty((len(rows), len(groups)), np.int64)
    first = 0
    for i, group in enumerate(groups):
        code = np.zeros(len(rows), np.int64)
        for column in group:
            code = code * (columns[column].max() + 1) + columns[column]
        combinations[:, i] = np.unique(code, return_inverse=True)[1] + first
        first = int(combinations[:, i].max()) + 1
    return combinations


def cover(
    rows: Sequence[Row],
    groups: Sequence[Group],
    seed: int = 0,
    begin: Sequence[int] = (),
    at_most: int | None = None,
) -> list[int]:
    """Indices of rows in which every combination occurs that occurs in `rows`.

    Args:
        seed: which of several equally good rows is taken.
        begin: rows that are there already.
        at_most: so many rows, `begin` included, even if combinations are left.
    """
    chosen = list(begin)
    if not rows:
        return chosen
    order = np.random.default_rng(seed).permutation(len(rows))
    combinations = _combinations(rows, groups)[order]
    # By combination: the rows that have it, one after the other, and where they begin.
    holders = np.argsort(combinations, axis=None, kind="stable") // len(groups)
    begins = np.concatenate([[0], np.cumsum(np.bincount(combinations.ravel()))])
    left = np.ones(len(begins) - 1, bool)
    gain = np.full(len(rows), len(groups))  # combinations of a row that are left

    def take(row: int) -> None:
        for combination in combinations[row][left[combinations[row]]]:
            left[combination] = False
            gain[holders[begins[combination] : begins[combination + 1]]] -= 1

    position = np.argsort(order)
    for index in begin:
        take(int(position[index]))
    while left.any() and (at_most is None or len(chosen) < at_most):
        best = int(gain.argmax())
        chosen.append(int(order[best]))
        take(best)
    return chosen


def missing(
    chosen: Sequence[Row], rows: Sequence[Row], groups: Sequence[Group]
) -> tuple[int, list[tuple[Any, ...]]]:
    """How many combinations occur in `rows`, and those of them that don't occur in `chosen`."""
    columns, chosen_columns = list(zip(*rows, strict=True)), list(zip(*chosen, strict=True))
    total, absent = 0, []
    for group in groups if rows else ():
        wanted = set(zip(*(columns[column] for column in group), strict=True))
        got = set(zip(*(chosen_columns[column] for column in group), strict=True)) if chosen else set()
        total += len(wanted)
        absent += sorted(wanted - got, key=str)
    return total, absent
