import pytest

from strata_tui.bench.spread import Spread, by_round, chance_by_luck, distinguishable, in_words


def test_a_spread_by_hand() -> None:
    spread = Spread.of([3.0, None, 1.0, 10.0])
    assert spread.json() == {"median": 3.0, "min": 1.0, "max": 10.0, "runs": [3.0, 1.0, 10.0]}
    assert spread.show(".1f") == "3.0 (1.0-10.0)"
    assert Spread.of([2.0, 2.0]).show(".2f") == "2.00"
    assert Spread.of([None]).show(".1f") == "-"
    assert Spread.of([]).json() == {"median": None, "min": None, "max": None, "runs": []}


def test_ratios_are_taken_round_by_round() -> None:
    """The medians' ratio would be 20 / 20: the slow round is slow for both."""
    assert by_round([10.0, 20.0, 44.0], [20.0, 40.0, 11.0]).runs == (0.5, 0.5, 4.0)
    assert by_round([10.0, 20.0], [20.0]).runs == (0.5,), "a round that only one has"
    assert by_round([10.0, None], [0.0, 3.0]).runs == ()


@pytest.mark.parametrize(
    ("above", "below", "chance"),
    [(5, 0, 2 / 32), (4, 1, 2 * (1 + 5) / 32), (3, 3, 1.0), (0, 0, 1.0), (1, 9, 2 * (1 + 10) / 1024)],
)
def test_chances_of_coins_by_hand(above: int, below: int, chance: float) -> None:
    assert chance_by_luck(above, below) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("ratios", "told", "words"),
    [
        ((1.1, 1.2, 1.1, 1.3, 1.01), True, "faster than a in 5 of 5 rounds"),
        ((0.9,) * 9 + (1.1,), True, "slower than a in 9 of 10 rounds"),
        ((1.1, 1.2, 1.1, 1.3, 0.99), False, "not distinguishable from a (faster than a in 4 of 5 rounds)"),
        ((1.5, 1.5), False, "too few rounds to tell it from a (faster than a in 2 of 2 rounds)"),
        ((1.5,), False, "too few rounds to tell it from a (faster than a in 1 of 1 round)"),
        ((), False, "not measured beside a"),
    ],
)
def test_the_words(ratios: tuple[float, ...], told: bool, words: str) -> None:
    assert in_words(Spread(ratios), "a") == words
    assert distinguishable(Spread(ratios)) == told
