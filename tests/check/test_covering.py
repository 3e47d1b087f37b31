import itertools
import random
from typing import Any

import pytest

from reference.combinations import missing
from strata_tui.check.covering import Numbered, cover, covered

Rows = list[tuple[Any, ...]]


def product_without_some(values: list[int], seed: int) -> Rows:
    """A product of columns with so many values each, a fifth of its rows impossible."""
    rng = random.Random(seed)
    return [row for row in itertools.product(*map(range, values)) if rng.random() > 0.2]


def brute_force_missing(chosen: Rows, rows: Rows, groups: list[tuple[int, ...]]) -> set[Any]:
    absent = set()
    for group in groups:
        for row in rows:
            values = [row[c] for c in group]
            if not any([other[c] for c in group] == values for other in chosen):
                absent.add((group, tuple(values)))
    return absent


@pytest.mark.parametrize("values", [[2, 3, 4], [4, 2, 5, 3], [3], [2, 2, 2, 2, 2], [1, 3, 1]], ids=str)
@pytest.mark.parametrize("strength", [1, 2, 3])
def test_every_combination_is_covered(values: list[int], strength: int) -> None:
    groups = list(itertools.combinations(range(len(values)), strength))
    rows = product_without_some(values, seed=strength)
    chosen = [rows[i] for i in cover(rows, groups or [(0,)])]
    assert brute_force_missing(chosen, rows, groups) == set()
    assert len(chosen) == len(set(chosen)) <= len(rows)


def test_pairs_need_few_rows() -> None:
    rows = list(itertools.product(range(4), repeat=6))
    assert len(cover(rows, list(itertools.combinations(range(6), 2)))) <= 2 * 4 * 4


def test_the_verification_finds_each_combination_that_is_left_out() -> None:
    rows = product_without_some([3, 4, 2, 3], seed=5)
    groups = [*itertools.combinations(range(4), 2), (0, 1, 3)]
    chosen = [rows[i] for i in cover(rows, groups)]
    total, absent = missing(chosen, rows, groups)
    assert absent == []
    assert total == len({(g, tuple(row[c] for c in g)) for g in groups for row in rows})
    for left_out in range(len(chosen)):
        rest = chosen[:left_out] + chosen[left_out + 1 :]
        expected = brute_force_missing(rest, rows, groups)
        assert len(missing(rest, rows, groups)[1]) == len(expected)
        assert covered(rest, rows, groups) == (total - len(expected), total)
        assert expected  # no row is there for nothing


def test_values_of_any_type_and_a_seed() -> None:
    rows = list(itertools.product(("mtp", "none"), (0.2, 0.0, 2.0), (False, True)))
    groups = [(0, 1), (1, 2)]
    assert cover(rows, groups, seed=3) == cover(rows, groups, seed=3)
    assert len({tuple(cover(rows, groups, seed=seed)) for seed in range(8)}) > 1


def test_rows_to_begin_with_and_a_limit() -> None:
    rows = list(itertools.product(range(3), repeat=3))
    pairs = list(itertools.combinations(range(3), 2))
    assert cover(rows, pairs, begin=[5, 17])[:2] == [5, 17]
    assert len(cover(rows, pairs, begin=[5, 17], at_most=4)) == 4
    whole = cover(rows, pairs)
    assert cover(rows, pairs, begin=whole) == whole


def test_no_rows() -> None:
    assert cover([], [(0, 1)]) == []
    assert missing([], [], [(0, 1)]) == (0, [])
    assert covered([], [(1, 2), (1, 3)], [(0, 1), (0,)]) == (0, 3)
    assert covered([(1, 3), (9, 9)], [(1, 2), (1, 3)], [(0, 1), (0,)]) == (2, 3)


def test_a_part_of_the_rows_is_covered_as_if_it_were_all() -> None:
    rows = product_without_some([3, 4, 2, 3], seed=2)
    part = list(range(5, len(rows), 2))
    groups = list(itertools.combinations(range(4), 2))
    assert cover(Numbered.of(rows).only(part), groups) == cover([rows[i] for i in part], groups)
