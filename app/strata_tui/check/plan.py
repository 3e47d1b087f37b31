"""Which arms a check runs: a covering array of the matrix, or all of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata_tui.check.arms import TRIPLES, Arm
from strata_tui.check.covering import Group, Numbered, cover, covered

COLUMNS = range(len(Arm._fields))
PAIRS: list[Group] = list(itertools.combinations(COLUMNS, 2))
ALL_TRIPLES: list[Group] = list(itertools.combinations(COLUMNS, 3))
NAMED_TRIPLES: list[Group] = [tuple(Arm._fields.index(name) for name in triple) for triple in TRIPLES]

BLOCK = 100  # arms that are brought into the order of their placements: few engines are loaded


@dataclass(frozen=True)
class Mode:
    """How much is run.

    Attributes:
        at_most: arms; None: the whole product. What pairs and the named triples leave of it goes to all
            triples, again and again.
    """

    name: str
    n_tokens: int
    at_most: int | None


QUICK = Mode("quick", 32, 64)
FULL = Mode("full", 64, 400)
EXHAUSTIVE = Mode("exhaustive", 64, None)


def unhindered(arms: Sequence[Arm]) -> list[int]:
    """For each of stages, windows in flight and drafter, the arm whose guesses may be kept most easily.

    A covering array gives most of its arms something that rolls guesses back.
    """
    best: dict[tuple[int, int, str], tuple[Any, int]] = {}
    for i, arm in enumerate(arms):
        if not arm.may_keep or arm.reaches_part:
            continue
        key = arm.stages, arm.pipeline_windows, arm.draft
        turn = (arm.stages + arm.pipeline_windows + (arm.draft == "mtp")) % 2 == 1  # both kinds of hand-off
        hindrance = arm.force_miss, arm.theta, arm.draft_max, arm.prompt != "copy", arm.overlap != turn
        best[key] = min(best.get(key, (hindrance, i)), (hindrance, i))
    return [i for _, i in best.values()]


def cut_by_ends(arms: Sequence[Arm]) -> list[int]:
    """For each prompt, the arm whose text an end token ends amid a window, if any does."""
    best: dict[str, tuple[Any, int]] = {}
    for i, arm in enumerate(arms):
        if arm.ending == "token" and arm.drafts_go_on:
            hindrance = -arm.draft_max, not arm.may_keep, arm.force_miss
            best[arm.prompt] = min(best.get(arm.prompt, (hindrance, i)), (hindrance, i))
    return [i for _, i in best.values()]


def choose(arms: Sequence[Arm], mode: Mode, seed: int) -> list[Arm]:
    """The arms that a mode runs, placements together, a stop in the middle leaving a fair sample."""
    if mode.at_most is None:
        chosen = np.random.default_rng(seed).permutation(len(arms)).tolist()
    else:
        table = Numbered.of(arms)
        begin = [*dict.fromkeys([*unhindered(arms), *cut_by_ends(arms)])]
        # What was promised comes whole, even if it needs more arms than that.
        chosen = cover(table, PAIRS + NAMED_TRIPLES, seed, begin)
        chosen = cover(table, ALL_TRIPLES, seed, begin=chosen, at_most=mode.at_most)
        while len(chosen) < min(mode.at_most, len(arms)):
            # Each time over, with other arms.
            rest = sorted(set(range(len(arms))) - set(chosen))
            more = cover(table.only(rest), ALL_TRIPLES, seed, at_most=mode.at_most - len(chosen))
            chosen += [rest[i] for i in more]
    ordered: list[Arm] = []
    for i in range(0, len(chosen), BLOCK):
        ordered += sorted((arms[index] for index in chosen[i : i + BLOCK]), key=lambda arm: arm.stages)
    return ordered


def covered_combinations(chosen: Sequence[Arm], arms: Sequence[Arm]) -> dict[str, tuple[int, int]]:
    """By kind of combination: how many `chosen` has, and how many there are."""
    kinds = {"pairs": PAIRS, "named_triples": NAMED_TRIPLES, "triples": ALL_TRIPLES}
    return {name: covered(chosen, arms, groups) for name, groups in kinds.items()}
