import itertools
import random

import pytest

from strata_tui.plan.balance import LayerTimes, balanced_by_time, layer_times, scaled_to, stages_ms


def test_stages_by_hand() -> None:
    times = LayerTimes((1.0, 2.0, 3.0, 4.0), tail_ms=5.0)
    assert stages_ms((2,), [times] * 2) == [3.0, 12.0]
    twice = LayerTimes((2.0, 4.0, 6.0, 8.0), tail_ms=10.0)
    assert stages_ms((1, 3), [times, twice, times]) == [1.0, 10.0, 9.0]


def test_the_tail_and_the_verdict_push_layers_forward() -> None:
    even = LayerTimes((1.0,) * 12, tail_ms=0.0)
    assert balanced_by_time([even] * 2) == (6,)
    assert balanced_by_time([LayerTimes((1.0,) * 12, tail_ms=4.0)] * 2) == (8,)
    assert balanced_by_time([even] * 2, last_ms=4.0) == (8,)
    assert balanced_by_time([even]) == ()
    assert balanced_by_time([even] * 12) == tuple(range(1, 12))


def test_a_slower_device_gets_fewer_layers() -> None:
    fast, slow = LayerTimes((1.0,) * 9, 0.0), LayerTimes((2.0,) * 9, 0.0)
    assert balanced_by_time([fast, slow]) == (6,)
    assert balanced_by_time([slow, fast]) == (3,)


@pytest.mark.parametrize("seed", range(60))
def test_against_every_split(seed: int) -> None:
    rng = random.Random(seed)
    n, n_stages = rng.randint(3, 9), rng.randint(1, 3)
    times = [
        LayerTimes(tuple(rng.choice((1.0, 1.5, 3.0)) for _ in range(n)), rng.random() * 3)
        for _ in range(n_stages)
    ]
    last = rng.random()

    def cost(split: tuple[int, ...]) -> tuple[float, float]:
        ms = stages_ms(split, times)
        ms[-1] += last
        return max(ms), sum(ms)

    every = itertools.combinations(range(1, n), n_stages - 1)
    assert cost(balanced_by_time(times, last)) == pytest.approx(min(map(cost, every)))


def test_groups_are_shared_out_by_bytes_and_the_rest_is_the_tail() -> None:
    times = layer_times([3.0, 6.0, 8.0], [2, 4], [10, 20, 30, 30, 20, 10])
    assert times.layer_ms == pytest.approx((1.0, 2.0, 3.0, 3.0, 2.0, 1.0))
    assert times.tail_ms == pytest.approx(5.0)
    quick = layer_times([3.0, 6.0, 2.0], [2, 4], [10, 20, 30, 30, 20, 10])
    assert sum(quick.layer_ms[4:]) == pytest.approx(2.0), "the last group can't have less than nothing left"
    assert quick.tail_ms == 0.0


def test_layers_without_bytes() -> None:
    assert layer_times([1.0, 1.0], [1], [0, 0]) == LayerTimes((1.0, 1.0), 0.0)


def test_shares_are_scaled_to_what_a_stage_was_measured_to_take() -> None:
    times = LayerTimes((1.0, 1.0, 2.0, 2.0), tail_ms=2.0)
    alike = scaled_to([times] * 2, (2,), [3.0, 1.0])
    assert stages_ms((2,), alike) == [1.0, 3.0], "equal devices share what was measured: half of 2 and 6"
    other = LayerTimes((1.0,) * 4, tail_ms=2.0)
    assert stages_ms((2,), scaled_to([times, other], (2,), [3.0, 8.0])) == [3.0, 8.0]
    assert scaled_to([times, other], (2,), [0.0, 4.0]) == [times, other]
