"""Covering arrays: few rows of a product in which every combination of chosen columns still occurs.

Greedy and deterministic: the next row is the one with most combinations that have not occurred yet. The
smallest array is not needed, and hard to find. `missing` looks at a result in another way than `cover` goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Row = Sequence[Any]
Group = tuple[int, ...]  # columns whose values are looked at together


class _Combinations:
    """Combinations by number, different in different groups.

    Attributes:
        of_row: [n_rows, n_groups].
        holders: by combination, the rows that have it; empty for numbers that stand for none.
    """

    def __init__(self, rows: Sequence[Row], groups: Sequence[Group]) -> None:
        columns, sizes = [], []
        for values in zip(*rows, strict=True):
            numbers: dict[Any, int] = {}
            columns.append(np.array([numbers.setdefault(value, len(numbers)) for value in values]))
            sizes.append(len(numbers))
        self.of_row = np.empty((len(rows), len(groups)), np.int32)
        self.holders: list[npt.NDArray[np.int32]] = []
        for i, group in enumerate(groups):
            code = np.zeros(len(rows), np.int64)
            for column in group:
                code = code * sizes[column] + columns[column]
            self.of_row[:, i] = code + len(self.holders)
            counts = np.bincount(code, minlength=math.prod(sizes[column] for column in group))
            by_code = np.argsort(code.astype(np.min_scalar_type(len(counts))), kind="stable").astype(np.int32)
            self.holders += np.split(by_code, np.cumsum(counts)[:-1])


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
    combinations = _Combinations(rows, groups)
    left = np.array([len(holders) > 0 for holders in combinations.holders])
    # How many combinations a row has that are left; below one, what decides between equals.
    gain = len(groups) + np.random.default_rng(seed).random(len(rows)) / 2

    def take(row: int) -> None:
        mine = combinations.of_row[row]
        for combination in mine[left[mine]]:
            left[combination] = False
            gain[combinations.holders[combination]] -= 1

    for row in begin:
        take(row)
    while left.any() and (at_most is None or len(chosen) < at_most):
        chosen.append(int(gain.argmax()))
        take(chosen[-1])
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
