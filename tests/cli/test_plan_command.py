import json
import signal
from pathlib import Path

import pytest
from tests.cli.program import ORACLES, Strata, start

MODEL = ORACLES / "micro-qwen35-friendly.gguf"
TOKENS = ("--tokens", "1,5,9,200,17,5,9")
QUICK = ("plan", MODEL, *TOKENS, "-n", "16", "--runs", "1", "--threads", "1", "--ctx", "256")


def test_a_plan_and_the_profile_it_saves(strata: Strata, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    result = strata(*QUICK, "--json", "--write", file)
    assert result.code == 0, result.err
    got = json.loads(result.out)
    first = got["placements"][0]
    assert [stage["first_layer"] for stage in first["stages"]] == [0, 3]
    assert all(stage["run_ms"] > 0 and stage["weight_bytes"] > 0 for stage in first["stages"])
    assert len(got["layers"]) == 2
    assert len(got["layers"][0]["layer_ms"]) == 4
    assert all(p["modelled"] for p in got["predictions"])
    rates = [p["tokens_per_s"] for p in got["predictions"]]
    assert rates == sorted(rates, reverse=True)
    assert got["measured"]["identical"] in (True, None)
    assert got["profile"] == str(file)
    ran = json.loads(strata("run", MODEL, "--profile", file, *TOKENS, "-n", "8", "--json").out)
    assert [stage["first_layer"] for stage in ran["stages"][1:]] == got["recommended"]["split"]
    for name, value in got["recommended"]["switches"].items():
        assert ran["switches"][name] == pytest.approx(value), name


def test_emulated_stages_are_planned_by_their_times(strata: Strata) -> None:
    """Two stages of 15 ms, drafts always right: what is in flight beside another hides one of them."""
    flags = ("--device", "even:15+draft=0.5", "--stages", "2", "--draft", "replay:1", "--json")
    result = strata("plan", MODEL, *TOKENS, "-n", "8", "--runs", "1", "--ctx", "256", *flags)
    assert result.code == 0, result.err
    assert "EMULATED devices" in result.err
    assert "no other split is proposed: emulated stages" in result.err
    got = json.loads(result.out)
    assert got["emulated"]
    best = got["predictions"][0]
    assert best["switches"]["pipeline_windows"] == 2
    assert 15 < best["ms_per_window"] < 30
    serial = got["placements"][0]["measured"]["serial"]
    assert serial["ms_per_window"] > 30


def test_one_stage(strata: Strata) -> None:
    got = json.loads(strata(*QUICK, "--stages", "1", "--json").out)
    assert got["layers"] is None
    assert {p["switches"]["pipeline_windows"] for p in got["predictions"]} == {0}
    assert got["recommended"]["split"] == []


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--write", "a b"), "--write: expected a name"),
        (("--write", "x", "--device", "delayed:3"), "--write: expected cpu or even devices"),
        (("-p", "x", "--tokens", "3"), "plan: expected one of -p"),
        (("--stages", "40"), "--stages"),
        (("--split", "99"), "--split (or STRATA_LAYER_SPLIT): expected layers"),
    ],
)
def test_what_cannot_be_planned_says_why(strata: Strata, flags: tuple[str, ...], expected: str) -> None:
    assert expected in strata("plan", *flags).error


def test_ctrl_c_says_what_was_measured_until_then() -> None:
    process = start(*QUICK, "--json", "--draft-max", "2", "--runs", "9999")
    assert process.stderr
    while b"round 2/9999" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    got = json.loads(out)
    assert got["interrupted"]
    assert got["placements"]
    assert got["predictions"]
