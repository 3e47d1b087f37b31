"""Which arms a check runs: a covering array of the matrix, or all of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strata_tui.check.arms import TRIPLES, Arm
from strata_tui.check.covering import Group, cover, missing

COLUMNS = range(len(Arm._fields))
PAIRS: list[Group] = list(itertools.combinations(COLUMNS, 2))
ALL_TRIPLES: list[Group] = list(itertools.combinations(COLUMNS, 3))
NAMED_TRIPLES: list[Group] = [tuple(Arm._fields.index(name) for name in triple) for triple in TRIPLES]
QUADRUPLES: list[Group] = list(itertools.combinations(COLUMNS, 4))

BLOCK = 100  # arms that are brought into the order of their placements: few engines are loaded


@dataclass(frozen=True)
class Mode:
    """How much is run.

    Attributes:
        at_most: arms; None: the whole product.
        then: what is covered beyond pairs and the named triples, as far as `at_most` goes.
    """

    name: str
    n_tokens: int
    at_most: int | None
    then: tuple[Sequence[Group], ...] = ()


QUICK = Mode("quick", 32, 64, (ALL_TRIPLES,))
FULL = Mode("full", 64, 400, (ALL_TRIPLES, QUADRUPLES))
EXHAUSTIVE = Mode("exhaustive", 64, None)


def choose(arms: Sequence[Arm], mode: Mode, seed: int) -> list[Arm]:
    """The arms that a mode runs, placements together, a stop in the middle leaving a fair sample."""
    if mode.at_most is None:
        chosen = np.random.default_rng(seed).permutation(len(arms)).tolist()
    else:
        # What was promised comes whole, even if it needs more arms than that.
        chosen = cover(arms, PAIRS + NAMED_TRIPLES, seed)
        for groups in mode.then:
            chosen = cover(arms, groups, seed, begin=chosen, at_most=mode.at_most)
    ordered: list[Arm] = []
    for i in range(0, len(chosen), BLOCK):
        ordered += sorted((arms[index] for index in chosen[i : i + BLOCK]), key=lambda arm: arm.stages)
    return ordered


def covered_combinations(chosen: Sequence[Arm], arms: Sequence[Arm]) -> dict[str, tuple[int, int]]:
    """By kind of combination: how many `chosen` has, and how many there are."""
    kinds = {"pairs": PAIRS, "named_triples": NAMED_TRIPLES, "triples": ALL_TRIPLES}
    found = {}
    for name, groups in kinds.items():
        total, absent = missing(chosen, arms, groups)
        found[name] = (total - len(absent), total)
    return found
