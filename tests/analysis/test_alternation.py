"""Two settings by turns: whose windows a block holds, and what the rounds say."""

import numpy as np
import pytest
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.alternation import FEWEST_ROUNDS, Alternation, Block, compare
from strata_tui.analysis.view import View
from strata_tui.events import Kind


def rounds(n: int, faster: float, noise: float, seed: int = 3) -> list[tuple[Block, Block]]:
    rng = np.random.default_rng(seed)
    return [
        (
            Block(12, 30, int(120e6 * (1 + noise * rng.normal()))),
            Block(12, 30, int(120e6 / (1 + faster) * (1 + noise * rng.normal()))),
        )
        for _ in range(n)
    ]


def test_nothing_is_said_before_there_are_rounds_enough() -> None:
    assert compare(rounds(FEWEST_ROUNDS - 1, 0.2, 0)) is None
    assert compare(rounds(FEWEST_ROUNDS, 0.2, 0)) is not None


def test_without_noise_the_interval_is_the_difference() -> None:
    result = compare(rounds(8, 0.2, 0))
    assert result is not None and result.is_clear
    assert (result.gain, result.low, result.high) == pytest.approx((0.2, 0.2, 0.2), abs=1e-6)
    assert result.ms_per_window == pytest.approx((10, 10 / 1.2))
    assert result.tokens_per_s == pytest.approx((250, 300))


def test_a_difference_lost_in_noise_is_not_clear_and_a_large_one_is() -> None:
    lost, clear = compare(rounds(12, 0.0, 0.2)), compare(rounds(12, 0.5, 0.1))
    assert lost is not None and not lost.is_clear and lost.low < 0 < lost.high
    assert clear is not None and clear.is_clear and clear.low < 0.5 < clear.high


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    results = [compare(rounds(10, 0.1, 0.1, seed)) for seed in range(100)]
    held = sum(result is not None and result.low <= 0.1 <= result.high for result in results)
    assert 85 <= held <= 99


def test_blocks_hold_windows_of_their_own_setting() -> None:
    engine, view = FakeEngine(), View(2)
    engine.session().start([1, 2, 3], 100_000, None, [])
    settings: list[bool] = []

    def play(ms: float) -> None:
        for _ in range(int(ms / 20)):
            engine.clock.advance(20)
            view.take(engine.events())

    play(300)
    alternation = Alternation("overlap", (False, True), engine.now_ns(), n_windows=5)
    for _ in range(150):
        play(20)
        alternation.look(view, engine.switches.in_force()["overlap"], engine.now_ns())
        engine.switches.overlap = alternation.wanted
        settings.append(alternation.wanted)
    assert len(alternation.rounds) > 10 and {True, False} == set(settings)
    flips = [mark.at_ns for mark in view.marks if mark.kind == "toggle"]
    verdicts = view.events[view.events["kind"] == Kind.verdict]
    ends = np.sort(verdicts["start_ns"] + verdicts["dur_ns"]).astype(np.int64)
    first = ends[(ends > flips[0]) & (ends <= flips[1])]
    assert len(first) >= 5 + 2, "a block is whole before the other setting's turn"
    assert all(block.windows == 5 for pair in alternation.rounds for block in pair)
    off, on = (sum(pair[i].busy_ns for pair in alternation.rounds) for i in (0, 1))
    assert off > on, "overlapped windows of the fake engine are a little shorter"


def test_a_setting_that_is_not_in_force_is_waited_for() -> None:
    view = View(2)
    alternation = Alternation("overlap", (False, True), 0)
    alternation.look(view, True, 10)
    assert alternation.wanted is False and not alternation.rounds
