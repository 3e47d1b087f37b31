from types import SimpleNamespace

import pytest
from tests.bench.fake_runs import run
from tests.bench.test_bench_report import a_bench

from strata_tui.plan.report import Plan, lines

BEST, ASKED = (
    SimpleNamespace(
        name=name,
        split=split,
        switches={},
        prediction=SimpleNamespace(
            ms_per_window=ms, tokens_per_window=2.0, tokens_per_s=2e3 / ms, basis=("a text",)
        ),
    )
    for name, split, ms in (("two in flight", (9,), 8.0), ("serial", (6,), 10.0))
)
ABOUT = {"model": "m", "model_sha256": "ab" * 32, "version": "1", "emulated": False}
MACHINE = {"cpu": "c", "cores": 2, "kernels": "avx2", "system": "Linux"}


def a_plan(best_ms: float | None, rounds: int = 5) -> Plan:
    def give(arm, n):
        return run(10.0 if arm.name == "as asked" else best_ms)

    bench = a_bench(give, rounds, ("as asked", "best modelled")) if best_ms else None
    return Plan(ABOUT, MACHINE, proposals=[BEST, ASKED], asked=ASKED, confirmed=bench)


def test_the_best_is_recommended_when_it_was_faster() -> None:
    plan = a_plan(7.5)
    assert plan.recommended is BEST
    text = "\n".join(lines(plan))
    assert "best modelled: faster than as asked in 5 of 5 rounds; the model was off by +6.7%" in text
    assert "recommended: split 9, two in flight" in text


def test_what_was_asked_for_stays_when_the_best_was_slower() -> None:
    plan = a_plan(12.0)
    assert plan.kept_as_asked
    assert plan.recommended is ASKED
    text = "\n".join(lines(plan))
    assert "what was asked for is recommended: the model's best was not faster here" in text


def test_a_gain_of_less_than_a_percent_is_none() -> None:
    near = SimpleNamespace(**{**vars(BEST), "prediction": SimpleNamespace(**vars(BEST.prediction))})
    near.prediction.tokens_per_s = ASKED.prediction.tokens_per_s * 1.005
    plan = a_plan(None)
    plan.proposals = [near, ASKED]
    assert plan.recommended is ASKED
    plan.confirmed = a_bench(lambda arm, n: run(10.0), 2, ("as asked",))
    assert "nothing that was modelled gains a percent" in "\n".join(lines(plan))


def test_without_a_measurement_it_is_the_models_word() -> None:
    plan = a_plan(None)
    assert plan.recommended is BEST
    assert any("modelled, not measured" in line for line in lines(plan))


@pytest.mark.parametrize("best_ms", [7.5, 12.0])
def test_emulated_devices_are_named(best_ms: float) -> None:
    plan = a_plan(best_ms)
    plan.about = {**ABOUT, "emulated": True}
    text = [line for line in lines(plan) if "modelled" in line or "tok/s" in line]
    figures = [line for line in text if "ms per window," in line or line.startswith("modelled")]
    assert figures
    assert all("[emulated]" in line for line in figures)
