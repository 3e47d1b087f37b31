"""Covering arrays: few rows of a product in which every combination of chosen columns still occurs.

Greedy and deterministic: the next row is the one with most combinations that have not occurred yet. The
smallest array is not needed, and hard to find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Row = Sequence[Any]
Group = tuple[int, ...]  # columns whose values are looked at together


@dataclass(frozen=True)
class Numbered:
    """Rows with a number for each value of a column.

    Attributes:
        columns: [n_columns, n_rows] below the column's size.
        sizes: [n_columns] values of each.
    """

    columns: npt.NDArray[np.int64]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Numbered:
        columns, sizes = [], []
        for values in zip(*rows, strict=True):
            numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
            columns.append([numbers[value] for value in values])
            sizes.append(len(numbers))
        return cls(np.array(columns, np.int64).reshape(len(sizes), len(rows)), tuple(sizes))

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def only(self, rows: Sequence[int]) -> Numbered:
        """Of these rows, with the same numbers."""
        return Numbered(self.columns[:, list(rows)], self.sizes)

    def combinations(self, group: Group) -> tuple[npt.NDArray[np.int64], int]:
        """[n_rows] a number for each combination of these columns' values, and how many there may be."""
        code = np.zeros(len(self), np.int64)
        for column in group:
            code = code * self.sizes[column] + self.columns[column]
        return code, math.prod(self.sizes[column] for column in group)


class _Combinations:
    """Combinations by number, different in different groups.

    Attributes:
        of_row: [n_rows, n_groups].
        holders: by combination, the rows that have it; empty for numbers that stand for none.
    """

    def __init__(self, rows: Numbered, groups: Sequence[Group]) -> None:
        self.of_row = np.empty((len(rows), len(groups)), np.int32)
        self.holders: list[npt.NDArray[np.int32]] = []
        for i, group in enumerate(groups):
            code, size = rows.combinations(group)
            self.of_row[:, i] = code + len(self.holders)
            counts = np.bincount(code, minlength=size)
            by_code = np.argsort(code.astype(np.min_scalar_type(len(counts))), kind="stable").astype(np.int32)
            self.holders += np.split(by_code, np.cumsum(counts)[:-1])


def cover(
    rows: Sequence[Row] | Numbered,
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
    if not len(rows):
        return chosen
    combinations = _Combinations(rows if isinstance(rows, Numbered) else Numbered.of(rows), groups)
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


def covered(chosen: Sequence[Row], rows: Sequence[Row], groups: Sequence[Group]) -> tuple[int, int]:
    """Of the combinations that occur in `rows`, how many occur in the chosen ones, and how many there are."""
    table = Numbered.of([*rows, *chosen])
    found = total = 0
    for group in groups if len(rows) else ():
        code, size = table.combinations(group)
        wanted, got = (np.bincount(part, minlength=size) > 0 for part in np.split(code, [len(rows)]))
        total += int(wanted.sum())
        found += int((wanted & got).sum())
    return found, total
