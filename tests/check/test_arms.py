from typing import Any

import pytest

from reference.combinations import missing
from strata_tui.check import plan
from strata_tui.check.arms import ALL_FRONT_STAGES, SWITCHES, TRIPLES, Arm, all_arms, factors, impossible
from strata_tui.errors import BadInput

WHOLE = factors(12, True, {})
PLAIN = Arm(2, False, 0, "mtp", 4, 0.2, 0, ALL_FRONT_STAGES, True, "greedy", "prose", "limit")


def test_the_matrix_is_the_one_that_is_promised() -> None:
    assert WHOLE["stages"] == (1, 2, 3, 4)
    assert set(WHOLE["overlap"]) == {False, True}
    assert WHOLE["pipeline_windows"] == (0, 1, 2, 3, 4)
    assert {"mtp", "lookup", "none"} <= set(WHOLE["draft"])
    assert set(WHOLE["theta"]) == {0, 0.2, 2}
    assert set(WHOLE["force_miss"]) == {0, 1, 3}
    assert WHOLE["prompt"] == ("prose", "code", "copy")
    assert set(WHOLE["sampling"]) == {"greedy", "sampled"}


def test_every_arm_is_another_one() -> None:
    arms = all_arms(WHOLE)
    assert len(arms) == len(set(arms)) == len({arm.name for arm in arms})
    for name, values in WHOLE.items():
        assert {getattr(arm, name) for arm in arms} == set(values)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stages": 1, "overlap": True}, "overlap"),
        ({"stages": 1, "pipeline_windows": 2}, "clamped"),
        ({"stages": 3, "pipeline_windows": 1}, "two stages"),
        ({"stages": 3, "pipeline_windows": 4}, "clamped"),
        ({"draft": "none", "draft_max": 2}, "drafts"),
        ({"theta": 2.0}, "without guesses"),
        ({"pipeline_windows": 2, "draft": "none", "force_miss": 1}, "without guesses"),
        ({"pipeline_windows": 2, "theta": 2.0, "force_miss": 1}, "gated"),
        ({"pipeline_windows": 2, "spec_depth": 1}, "held back"),
        ({"chain_ahead": False}, "no chain"),
        ({"pipeline_windows": 2, "draft": "lookup", "chain_ahead": False}, "no chain"),
        ({"pipeline_windows": 2, "chain_ahead": False}, ""),
        ({"stages": 4, "pipeline_windows": 2, "spec_depth": 2}, ""),
        ({"pipeline_windows": 1}, ""),
        ({"pipeline_windows": 2, "theta": 2.0}, ""),
    ],
    ids=str,
)
def test_what_can_be_combined(change: dict[str, Any], why: str) -> None:
    reason = impossible(PLAIN._replace(**change), WHOLE)
    assert why in reason if why else reason == ""


def test_a_model_without_a_draft_layer_and_with_few_layers() -> None:
    small = factors(2, False, {})
    assert small["stages"] == (1, 2)
    assert "mtp" not in small["draft"]
    assert small["pipeline_windows"] == (0, 1, 2)
    assert all_arms(small)


def test_a_fixed_factor_has_one_value() -> None:
    arms = all_arms(factors(12, True, {"stages": 3, "theta": 0.0}))
    assert {(arm.stages, arm.theta) for arm in arms} == {(3, 0.0)}
    assert {arm.pipeline_windows for arm in arms} == {
        0,
        2,
        3,
    }  # theta says nothing to the first, and is no reason


def test_fixed_factors_that_leave_nothing() -> None:
    with pytest.raises(BadInput, match=r"--stages 1.*--pipeline-windows 2.*clamped"):
        all_arms(factors(12, True, {"stages": 1, "pipeline_windows": 2}))


@pytest.mark.parametrize(
    ("mode", "seed", "has_draft_layer", "fixed"),
    [
        (plan.QUICK, 0, True, {}),
        (plan.QUICK, 12345, False, {"prompt": "copy"}),
        (plan.FULL, 0, True, {"prompt": "prose", "ending": "limit"}),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_plan_covers_what_it_says(
    mode: plan.Mode, seed: int, has_draft_layer: bool, fixed: dict[str, Any]
) -> None:
    arms = all_arms(factors(4, has_draft_layer, fixed))
    chosen = plan.choose(arms, mode, seed)
    assert len(set(chosen)) == len(chosen) == mode.at_most
    assert mode.at_most <= 400
    assert set(chosen) <= set(arms)
    named = [tuple(Arm._fields.index(name) for name in triple) for triple in TRIPLES]
    assert missing(chosen, arms, plan.PAIRS + named)[1] == []
    found = plan.covered_combinations(chosen, arms)
    assert found["pairs"][0] == found["pairs"][1] > 0
    assert found["named_triples"][0] == found["named_triples"][1] > 0
    if mode is plan.FULL:
        assert found["triples"][0] == found["triples"][1]
    assert plan.choose(arms, mode, seed) == chosen


def test_the_exhaustive_plan_is_everything_and_a_part_of_it_a_fair_sample() -> None:
    arms = all_arms(WHOLE)
    chosen = plan.choose(arms, plan.EXHAUSTIVE, 0)
    assert sorted(chosen, key=str) == sorted(arms, key=str)
    assert {arm.stages for arm in chosen[: plan.BLOCK]} >= {2, 3, 4}


def test_switches_of_an_arm_are_the_engine_s() -> None:
    from strata_tui.engine import Switches

    assert PLAIN._fields[1:9] == SWITCHES
    assert set(SWITCHES) <= Switches.__annotations__.keys()
