from pathlib import Path

import pytest

from strata_tui.engine import Engine, Switches
from strata_tui.errors import BadInput
from strata_tui.switches import BY_NAME, SWITCHES, as_they_can_be, from_environment, reports, resolve

ORACLES = Path(__file__).parent / "data" / "oracles"


def test_the_engine_has_every_switch_of_the_table() -> None:
    assert set(Switches.__annotations__) == {*BY_NAME, "paused", "keep_drafting", "kernel_times"}


def test_flag_over_environment_over_profile_over_default() -> None:
    environment = {"STRATA_SPLIT_OVERLAP": "1", "STRATA_PIPELINE_WINDOWS": "3"}
    profile = {"overlap": False, "draft_max": 2, "draft": "none"}
    flags = {"draft": "lookup", "pipeline_windows": 0, "rate": None}
    values, notes = resolve(flags, profile, environment)
    assert notes == []
    assert values == {
        "overlap": True,  # environment over profile
        "pipeline_windows": 0,  # flag over environment, though 0
        "draft": "lookup",
        "draft_max": 2,
        "draft_min_p": 0.0,
        "theta": 0.2,
        "short_read": 64,
        "rate": 0.0,
        "force_miss": None,  # the engine's
        "spec_depth": None,
        "chain_ahead": None,
    }


def test_nothing_set_is_the_default() -> None:
    assert resolve({}, {}, {}) == ({switch.name: switch.default for switch in SWITCHES}, [])


def test_an_empty_variable_is_not_set() -> None:
    assert from_environment({"STRATA_SPLIT_OVERLAP": "", "STRATA_STAGE_TRIM": ""}) == ({}, [])


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("overlap", "1", True),
        ("overlap", "off", False),
        ("pipeline_windows", "2", 2),
        ("draft", "mtp", "mtp"),
        ("draft", "replay:0.50", "replay:0.5"),
        ("draft_max", "7", 7),
        ("draft_min_p", "1", 1.0),
        ("theta", "2", 2.0),
        ("rate", "1e3", 1000.0),
        ("force_miss", "3", 3),
        ("spec_depth", "0", 0),
        ("chain_ahead", "1", True),
    ],
)
def test_a_value_is_read(name: str, text: str, value: object) -> None:
    assert BY_NAME[name].read(text, name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("overlap", "yes"),
        ("overlap", "2"),
        ("pipeline_windows", "-1"),
        ("pipeline_windows", "1.0"),
        ("draft", "MTP"),
        ("draft", "replay:"),
        ("draft", "replay:1.1"),
        ("draft", "replay:nan"),
        ("draft", "lookup:0.5"),
        ("draft_max", "8"),
        ("draft_min_p", "nan"),
        ("theta", "inf"),
        ("rate", ""),
        ("force_miss", "-1"),
        ("spec_depth", "33"),
        ("chain_ahead", "2"),
    ],
)
def test_a_bad_value_says_what_was_expected_and_what_came(name: str, text: str) -> None:
    with pytest.raises(BadInput) as refused:
        BY_NAME[name].read(text, "--here")
    assert str(refused.value) == f"--here: expected {BY_NAME[name].accepts.what}, got {text!r}"


def test_the_test_switches_are_read_only_with_debug() -> None:
    theta = {"STRATA_PIPELINE_THETA": "0.5"}
    values, notes = from_environment(theta)
    assert values == {}
    assert len(notes) == 1
    assert "STRATA_PIPELINE_DEBUG=1" in notes[0]
    assert from_environment({**theta, "STRATA_PIPELINE_DEBUG": "1"}) == ({"theta": 0.5}, [])
    tests = {"STRATA_PIPELINE_FORCE_MISS": "3", "STRATA_PIPELINE_SPEC_DEPTH": "1"}
    values, notes = from_environment(tests)
    assert values == {} and sorted(note.split()[0] for note in notes) == sorted(tests)
    assert "--theta" not in " ".join(notes)
    with_debug = from_environment({**tests, "STRATA_PIPELINE_DEBUG": "1"})
    assert with_debug == ({"force_miss": 3, "spec_depth": 1}, [])
    # A value that is not read can't be wrong.
    assert from_environment({"STRATA_PIPELINE_THETA": "x"})[0] == {}


def test_the_windows_in_flight_are_no_test_switch() -> None:
    assert from_environment({"STRATA_PIPELINE_WINDOWS": "2"}) == ({"pipeline_windows": 2}, [])


def test_each_variable_that_means_nothing_here_gives_one_line() -> None:
    names = (
        "STRATA_IQ_MT_MIN",
        "STRATA_PF_ANYTHING",
        "STRATA_PF_GEMM",
        "STRATA_SPLIT_OWN",
        "STRATA_STAGE_TRIM",
    )
    _, notes = from_environment(dict.fromkeys(names, "1"))
    assert sorted(note.split()[0] for note in notes) == list(names)
    assert from_environment({"STRATA_SPLIT_OWNER": "1"}) == ({}, [])


def test_reports_are_asked_for_by_variables() -> None:
    assert reports({}) == (frozenset(), [])
    timing = {"STRATA_DECODE_TIMING": "1", "STRATA_SPLIT_TIMING": "0"}
    assert reports(timing) == ({"decode_timing"}, [])
    assert reports({"STRATA_VERIFY_PROFILE": "1"}) == ({"verify_profile"}, [])
    with pytest.raises(BadInput, match="STRATA_SPLIT_TIMING: expected 0 or 1, got 'yes'"):
        reports({"STRATA_SPLIT_TIMING": "yes"})


def test_the_log_of_verdicts_is_a_test_switch() -> None:
    asked, notes = reports({"STRATA_PIPELINE_LOG": "1"})
    assert not asked and "STRATA_PIPELINE_DEBUG=1" in notes[0]
    assert reports({"STRATA_PIPELINE_LOG": "1", "STRATA_PIPELINE_DEBUG": "1"}) == ({"pipeline_log"}, [])


@pytest.mark.parametrize("model", ["micro-llama", "micro-qwen35"])  # without and with a draft layer
@pytest.mark.parametrize("allocated", [0, 2, 3])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_what_can_not_apply_is_known_before_the_engine_says_so(
    model: str, stages: int, allocated: int
) -> None:
    with Engine.open(ORACLES / f"{model}.gguf", stages=stages, pipeline_max=allocated) as engine:
        session = engine.session()
        for windows, overlap, draft in (
            (0, True, "none"),
            (1, False, "mtp"),
            (2, True, "lookup"),
            (4, True, "mtp"),
        ):
            asked = {"pipeline_windows": windows, "overlap": overlap, "draft": draft}
            engine.set_switches(asked)
            session.start([1, 2, 3], max_tokens=3)
            session.to_the_end()
            told = as_they_can_be(asked, stages, engine.pipeline_max, engine.has_draft_layer)
            assert told == {name: engine.switches.in_force()[name] for name in asked}, asked
    assert as_they_can_be({}, 1, 0, False) == {}
