"""The comparison and the coverage, on a fake engine whose faults are planted."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.check.fake_engine import FakeEngine, FakeSession, Fault

from strata_tui.check import plan
from strata_tui.check.arms import Arm, all_arms, factors
from strata_tui.check.coverage import EFFECTS, uncovered
from strata_tui.check.report import Summary, json_object, verdict_lines
from strata_tui.check.run import Check
from strata_tui.check.texts import PROMPTS, samplings
from strata_tui.errors import StrataError

TEXTS = list(itertools.product(PROMPTS, samplings(), ("limit", "token")))
ABOUT = {
    "model": "fake.gguf",
    "model_sha256": "0",
    "arch": "fake",
    "numerics": "fma16",
    "emulated": False,
    "device": "cpu",
}
ARMS = all_arms(factors(6, True, {}))
PLANNED = plan.choose(ARMS, plan.QUICK, 0)


def check(fault: Fault | None = None, planned: list[Arm] = PLANNED) -> Summary:
    """A whole check; the fault is in arms only, unless it looks at the switches itself."""

    def open_engine(stages: int) -> Any:
        return FakeEngine(stages, fault)

    run = Check(open_engine, samplings(), 16)
    references, serial = {}, []
    for text, outcome, difference in run.refer(1, TEXTS):
        references[text] = outcome
        serial += [difference] * bool(difference)
    results = list(run.run(planned))
    return Summary(ABOUT, plan.QUICK, 0, PLANNED, planned, references, serial, results, 1.0)


def in_arm(which: Callable[[FakeEngine], bool], change: Callable[[FakeSession], None]) -> Fault:
    def fault(engine: FakeEngine, session: FakeSession) -> None:
        if which(engine):
            change(session)

    return fault


def overlapped_and_deep(engine: FakeEngine) -> bool:
    return bool(engine.switches.overlap and engine.switches.pipeline_windows == 4)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    summary = check()
    assert summary.identical
    assert summary.uncovered == []
    assert not summary.interrupted
    assert "are those of plain decoding" in verdict_lines(summary)[-1]
    result = json_object(summary)
    assert (result["identical"], result["covered"]) == (True, True)
    assert len(result["arms"]) == len(PLANNED)
    assert {arm["tokens_sha256"] for arm in result["arms"]} == {
        reference["tokens_sha256"] for reference in result["references"]
    }
    assert all(result["coverage"]["met"].values())


def change_token(session: FakeSession) -> None:
    session.text[7] += 1


def change_layer(session: FakeSession) -> None:
    session.layers[4] += 1


def drop_tokens(session: FakeSession) -> None:
    del session.text[-1]


def shorten(session: FakeSession) -> None:
    session.length -= 1


def end_otherwise(session: FakeSession) -> None:
    session.finish = "context"


def fail(session: FakeSession) -> None:
    session.finish, session.error = "error", "[stage 1] window 7: word 3, wanted 4"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_token, "token 7 is"),
        (change_layer, "layer 4 differs (1 of 6 layers do)"),
        (drop_tokens, "tokens, plain decoding has"),
        (shorten, "rows, plain decoding's"),
        (end_otherwise, "the text ended by context, plain decoding's by "),
        (fail, "[stage 1] window 7: word 3, wanted 4"),
    ],
)
def test_a_planted_difference_is_found_in_each_arm_that_has_it_and_in_no_other(
    change: Callable[[FakeSession], None], expected: str
) -> None:
    summary = check(in_arm(overlapped_and_deep, change))
    assert not summary.identical
    for result in summary.results:
        has_it = result.arm.overlap and result.arm.pipeline_windows == 4
        assert result.identical != has_it, result.arm
    differing = [line for line in verdict_lines(summary) if line.startswith("DIFFERS")]
    assert len(differing) == sum(arm.overlap and arm.pipeline_windows == 4 for arm in PLANNED) > 0
    for line in differing:
        assert expected in line
        assert "4 stages, overlap, 4 in flight" in line  # the arm, and at its end sampling and prompt
        assert any(f", {name}" in line for name in PROMPTS)
    assert json_object(summary)["identical"] is False


def test_draft_cells_are_compared_between_arms_of_one_drafter() -> None:
    def change(session: FakeSession) -> None:
        session.draft_cells += 1

    summary = check(in_arm(lambda engine: engine.switches.theta == 0, change))
    assert summary.differences
    assert all("draft layer's" in line and "differ from those of: " in line for line in summary.differences)
    assert all("mtp" in line for line in summary.differences)

    def other_length(session: FakeSession) -> None:
        change(session)
        session.draft_length += 1

    assert check(in_arm(lambda engine: engine.switches.theta == 0, other_length)).identical


def test_a_serial_arm_that_differs_from_itself() -> None:
    turns = iter(range(10_000))

    def change(session: FakeSession) -> None:
        session.text[3] = next(turns) % 2

    summary = check(in_arm(lambda engine: engine.switches.draft == "none", change), planned=PLANNED[:1])
    assert not summary.identical
    assert len(summary.serial_differences) == len(TEXTS)
    assert "differs from itself" in verdict_lines(summary)[-1]


def no_fate(name: str) -> Fault:
    """That fate is never met: its guesses count as another one."""
    other = {"kept": "rolled_back", "rolled_back": "ended", "gated": "late"}

    def fault(engine: FakeEngine, session: FakeSession) -> None:
        guesses = session.counters["guesses"]
        moved, guesses[name] = guesses[name], 0
        if name in other:
            guesses[other[name]] += moved
        if name == "kept":
            session.kept_on_stages = []

    return fault


def no_counter(name: str, value: Any) -> Fault:
    return lambda engine, session: session.counters.update({name: value})


def never_cut(engine: FakeEngine, session: FakeSession) -> None:
    session.cut_short = False


def always(reached: int | None) -> Fault:
    """Every kept guess had reached so many front stages (None: all of them)."""

    def fault(engine: FakeEngine, session: FakeSession) -> None:
        n = len(engine.stages) - 1 if reached is None else reached
        session.kept_on_stages = [n] * len(session.kept_on_stages)

    return fault


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (never_cut, "no windows cut short by an end token"),
        (no_fate("kept"), "no guesses kept"),
        (no_fate("rolled_back"), "no guesses rolled back"),
        (no_fate("gated"), "no guesses gated"),
        (no_fate("forced"), "no guesses forced to miss"),
        (no_counter("kept_at_depth", [0, 9]), "no guesses kept behind a guess"),
        (no_counter("windows_by_class", [9, 0, 0]), "no windows kept after kept ones"),
        (no_counter("windows_overlapped", 0), "no windows overlapped"),
        (no_counter("undone", 0), "no commits undone"),
        (no_counter("accepted", 0), "no drafts accepted"),
        (no_counter("accepted", 12), "no drafts rejected"),
        (always(None), "no guesses kept on a part of the front stages"),
        (always(0), "no guesses kept with all front stages done"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_that_did_not_do_what_it_is_for(fault: Fault, line: str) -> None:
    summary = check(fault)
    assert summary.identical
    assert line in summary.uncovered
    shown = verdict_lines(summary)
    assert f"NOT COVERED: {line}" in shown
    assert "does not cover what it claims" in shown[-1]
    assert json_object(summary)["covered"] is False


def test_guesses_must_be_kept_on_every_number_of_stages() -> None:
    only_two = no_fate("kept")

    def fault(engine: FakeEngine, session: FakeSession) -> None:
        if len(engine.stages) == 3:
            only_two(engine, session)

    assert "no guesses kept on 3 stages" in check(fault).uncovered


def test_a_switch_that_is_not_in_force() -> None:
    def in_force(engine: FakeEngine, session: FakeSession) -> None:
        engine.switches.in_force = lambda: {**vars(engine.switches), "pipeline_windows": 0}

    lines = [line for line in check(in_force).uncovered if "was asked for" in line]
    assert len(lines) == 4  # one for each value
    assert "pipeline_windows 2 was asked for, 0 was in force" in lines[0]


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("built", 1, "6 guesses built, but"),
        ("ended", 1, "guesses launched, but"),
    ],
)
def test_fates_that_do_not_add_up(name: str, more: int, expected: str) -> None:
    def fault(engine: FakeEngine, session: FakeSession) -> None:
        if engine.switches.pipeline_windows == 3 and engine.switches.draft == "mtp":
            session.counters["guesses"][name] += more

    assert any(expected in line for line in check(fault).uncovered)


def test_a_forced_miss_that_was_kept() -> None:
    def fault(engine: FakeEngine, session: FakeSession) -> None:
        guesses = session.counters["guesses"]
        if engine.switches.force_miss == 1 and guesses["rolled_back"]:
            guesses["kept"], guesses["rolled_back"] = 1, guesses["rolled_back"] - 1

    assert any("all were forced to miss" in line for line in check(fault).uncovered)


def test_effects_are_expected_only_of_arms_that_can_have_them() -> None:
    serial = [arm for arm in ARMS if arm.pipeline_windows == 0 and not arm.overlap][:40]
    summary = check(planned=serial)
    assert summary.uncovered == []
    assert set(json_object(summary)["coverage"]["met"]) == {"drafts accepted", "drafts rejected"}
    assert list(uncovered([])) == []
    assert len({effect.name for effect in EFFECTS}) == len(EFFECTS)


def test_an_interrupted_run_says_what_was_measured() -> None:
    whole = check()
    part = Summary(**{**vars(whole), "results": whole.results[:10]})
    assert part.interrupted
    assert part.uncovered[0] == f"interrupted after 10 of {len(PLANNED)} arms"
    result = json_object(part)
    assert (len(result["arms"]), result["interrupted"], result["covered"]) == (10, True, False)


def test_placements_of_different_kernels_are_not_compared() -> None:
    run = Check(
        lambda stages: FakeEngine(stages, numerics="fma16" if stages == 1 else "other"), samplings(), 4
    )  # type: ignore[arg-type,return-value]
    list(run.refer(1, [("prose", "greedy", "limit")]))
    with pytest.raises(StrataError, match="differ in their kernels"):
        list(run.run([arm for arm in ARMS if arm.stages == 2][:1]))


def test_a_long_prompt_keeps_its_end() -> None:
    seen = []

    def fault(engine: FakeEngine, session: FakeSession) -> None:
        seen.append(session.prompt)

    def open_engine(stages: int) -> Any:
        engine = FakeEngine(stages, fault)
        engine.context = 40
        return engine

    list(Check(open_engine, samplings(), 16).refer(1, [("copy", "greedy", "limit")]))
    assert seen == [list(PROMPTS["copy"].encode())[-24:]] * 2
