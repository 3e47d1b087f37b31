"""The refresh rate gives way."""

import pytest

from strata_tui.tui.pace import FASTEST_S, SLOWEST_S, Pace


def settled(cost_s: float, late: float = 1.0) -> float:
    """The interval that a refresh of this cost comes to."""
    pace = Pace(budget=0.06)
    for _ in range(200):
        pace.note(cost_s, pace.interval_s * late)
    return pace.interval_s


def test_cheap_refreshes_come_twenty_times_a_second() -> None:
    assert settled(0.001) == FASTEST_S


@pytest.mark.parametrize("cost_s", [0.004, 0.006, 0.010])
def test_dear_ones_stay_within_their_share_of_a_core(cost_s: float) -> None:
    assert 0.6 * 0.06 <= cost_s / settled(cost_s) <= 1.3 * 0.06


def test_late_ones_slow_down_whatever_they_cost() -> None:
    assert settled(0.0001, late=2.0) == SLOWEST_S


def test_it_comes_back_when_the_machine_is_free_again() -> None:
    pace = Pace()
    for _ in range(50):
        pace.note(0.1, pace.interval_s)
    assert pace.interval_s == SLOWEST_S
    for _ in range(50):
        pace.note(0.0005, pace.interval_s)
    assert pace.interval_s == FASTEST_S
