"""A split that balances times instead of bytes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class LayerTimes:
    """What a window costs on one device.

    Attributes:
        layer_ms: of each layer of the trunk.
        tail_ms: what comes on top where the last stage lies: output norm, head, picks.
    """

    layer_ms: tuple[float, ...]
    tail_ms: float

    def stage_ms(self, first: int, end: int) -> float:
        """A stage of the layers [first, end); the tail goes with the last layer."""
        return sum(self.layer_ms[first:end]) + self.tail_ms * (end == len(self.layer_ms))


def stages_ms(split: Sequence[int], times: Sequence[LayerTimes]) -> list[float]:
    """Of each stage, on its device's times."""
    bounds = (0, *split, len(times[0].layer_ms))
    return [of_device.stage_ms(a, b) for of_device, (a, b) in zip(times, pairwise(bounds), strict=True)]


def balanced_by_time(times: Sequence[LayerTimes], last_ms: float = 0.0) -> tuple[int, ...]:
    """First layer of each later stage, so that the slowest stage is as fast as can be.

    Of splits that are equal in this the one with the least sum: it is the fastest while nothing overlaps.

    Args:
        times: of each stage's device, one a stage; at most as many stages as layers.
        last_ms: what the last stage does besides in each window (the verdict).
    """
    slowest, _ = _least(times, last_ms, max, math.inf)
    _, split = _least(times, last_ms, operator.add, slowest * (1 + 1e-12))
    return split


def _least(
    times: Sequence[LayerTimes], last_ms: float, total: Callable[[float, float], float], at_most_ms: float
) -> tuple[float, tuple[int, ...]]:
    """The least `total` of the stages' times over all splits, no stage above `at_most_ms`; and that split."""
    n, n_stages = len(times[0].layer_ms), len(times)
    best = [(0.0, 0)] + [(math.inf, 0)] * n  # over the first i layers: the total, where the last stage begins
    rows = []
    for s, of_device in enumerate(times):
        row = [(math.inf, 0)] * (n + 1)
        for i in range(s + 1, n - (n_stages - 1 - s) + 1):
            for j in range(s, i):
                ms = of_device.stage_ms(j, i) + last_ms * (s == n_stages - 1)
                if ms <= at_most_ms:
                    row[i] = min(row[i], (total(best[j][0], ms), j))
        rows.append(row)
        best = row
    split, end = [], n
    for row in reversed(rows[1:]):
        end = row[end][1]
        split.append(end)
    return best[n][0], tuple(reversed(split))


def layer_times(group_ms: Sequence[float], split: Sequence[int], layer_bytes: Sequence[int]) -> LayerTimes:
    """Times of layers from those of groups of them, of which the last one has the tail besides.

    A group's time is shared out by bytes. What the last group takes beyond the median time of a byte in the
    others is the tail.

    Args:
        group_ms: measured, of each group.
        split: first layer of each later group; at least one.
        layer_bytes: of each layer.
    """
    groups = list(pairwise((0, *split, len(layer_bytes))))
    sizes = [sum(layer_bytes[a:b]) or b - a for a, b in groups]
    of_a_byte = sorted(ms / size for ms, size in zip(group_ms[:-1], sizes[:-1], strict=True))
    middle = of_a_byte[len(of_a_byte) // 2]
    last_ms = min(group_ms[-1], middle * sizes[-1])
    layer_ms: list[float] = []
    for (a, b), ms, size in zip(groups, (*group_ms[:-1], last_ms), sizes, strict=True):
        layer_ms += [ms * (layer_bytes[k] or (size == b - a)) / size for k in range(a, b)]
    return LayerTimes(tuple(layer_ms), group_ms[-1] - last_ms)


def scaled_to(
    times: Sequence[LayerTimes], split: Sequence[int], measured_ms: Sequence[float]
) -> list[LayerTimes]:
    """The same shares, so that stages take what was measured: groups have overheads of their own.

    Equal devices are scaled alike, by all their stages together.

    Args:
        times: of each stage's device.
        measured_ms: of each stage of this split.
    """
    shares = stages_ms(split, times)
    factors = []
    for one in times:
        alike = [i for i, other in enumerate(times) if other == one]
        share, measured = sum(shares[i] for i in alike), sum(measured_ms[i] for i in alike)
        factors.append(measured / share if share > 0 and measured > 0 else 1.0)
    return [
        LayerTimes(tuple(ms * factor for ms in one.layer_ms), one.tail_ms * factor)
        for one, factor in zip(times, factors, strict=True)
    ]
