"""Medians with their spread, and ratios by round: what runs in turn say in spite of a loaded machine."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS_TO_TELL = 5
CHANCE_AT_MOST: float = 2.0 / 2**ROUNDS_TO_TELL
"""Of a coin: five of five on one side. With fewer rounds no ratio is told from 1."""


@dataclass(frozen=True)
class Spread:
    """Values of runs that have one."""

    runs: tuple[float, ...]

    @staticmethod
    def of(values: Sequence[float | None]) -> Spread:
        return Spread(tuple(value for value in values if value is not None))

    @property
    def median(self) -> float | None:
        return statistics.median(self.runs) if self.runs else None

    def json(self) -> dict[str, object]:
        return {
            "median": self.median,
            "min": min(self.runs, default=None),
            "max": max(self.runs, default=None),
            "runs": list(self.runs),
        }

    def show(self, form: str) -> str:
        """median (min-max); one number where they look alike."""
        if self.median is None:
            return "-"
        shown, low, high = (format(value, form) for value in (self.median, min(self.runs), max(self.runs)))
        return shown if low == high else f"{shown} ({low}-{high})"


def by_round(these: Sequence[float | None], first: Sequence[float | None]) -> Spread:
    """The ratio of each round that has both: what slowed the whole round cancels."""
    return Spread.of(
        [a / b if a is not None and b else None for a, b in zip(these, first, strict=False)],
    )


def chance_by_luck(above: int, below: int) -> float:
    """Sign test, two-sided: how often fair coins fall at least so unevenly; no round is at exactly 1."""
    n = above + below
    tail = sum(math.comb(n, k) for k in range(min(above, below) + 1))
    return min(1.0, float(2 * tail / 2**n))


def distinguishable(ratio: Spread) -> bool:
    """Do the rounds agree on a side of 1 more than luck would explain?"""
    above, below = _sides(ratio)
    return chance_by_luck(above, below) <= CHANCE_AT_MOST


def in_words(ratio: Spread, first: str) -> str:
    """Is a ratio of rates told from 1? Plainly."""
    rounds = len(ratio.runs)
    if not rounds:
        return f"not measured beside {first}"
    above, below = _sides(ratio)
    side, count = ("faster", above) if above >= below else ("slower", below)
    counted = f"{side} than {first} in {count} of {rounds} round{'' if rounds == 1 else 's'}"
    if distinguishable(ratio):
        return counted
    if rounds < ROUNDS_TO_TELL:
        return f"too few rounds to tell it from {first} ({counted})"
    return f"not distinguishable from {first} ({counted})"


def _sides(ratio: Spread) -> tuple[int, int]:
    return sum(r > 1 for r in ratio.runs), sum(r < 1 for r in ratio.runs)
