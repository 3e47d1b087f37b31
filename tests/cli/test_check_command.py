"""The real command, on a model of 4 layers with random weights."""

import json
import signal
import time
from typing import Any

import pytest
from tests.cli.program import LLAMA, ORACLES, Strata, start

FRIENDLY = ORACLES / "micro-qwen35-friendly.gguf"  # a draft layer that is right part of the time
CONTRACT = {"identical", "covered", "reference_sha256", "arms"}
ARM = {"name", "switches", "tokens_sha256", "windows", "launched", "kept", "rolled_back", "identical"}
SERIAL = ("--pipeline-windows", "0")


def check(strata: Strata, *args: object, code: int = 0) -> dict[str, Any]:
    result = strata("check", *args, "--threads", "1", "--json")
    assert result.code == code, result.err
    return dict(json.loads(result.out))


def test_a_small_matrix_is_identical_and_covered(strata: Strata) -> None:
    got = check(strata, FRIENDLY, "--stages", "2", *SERIAL)
    assert got.keys() >= CONTRACT
    assert (got["identical"], got["covered"], got["numerics"]) == (True, True, "fma16")
    assert (got["mode"], got["tokens_per_arm"], got["differences"]) == ("quick", 32, [])
    assert all(arm.keys() >= ARM and arm["identical"] for arm in got["arms"])
    assert {arm["stages"] for arm in got["arms"]} == {2}
    assert {arm["switches"]["draft"] for arm in got["arms"]} == {"mtp", "lookup", "none", "replay:0.8"}
    texts = {(t["prompt"], t["sampling"], t["ending"]): t["tokens_sha256"] for t in got["references"]}
    assert len(texts) == 12
    assert len({sha256 for (_, _, ending), sha256 in texts.items() if ending == "limit"}) == 6
    for arm in got["arms"]:
        assert arm["tokens_sha256"] == texts[arm["prompt"], arm["sampling"], arm["ending"]]
        assert arm["tokens"] == 32 if arm["ending"] == "limit" else 1 <= arm["tokens"] <= 32
    met = got["coverage"]["met"]
    assert met["windows overlapped"] > 0 < met["drafts accepted"]
    assert (
        got["coverage"]["combinations"]["pairs"]["covered"] == got["coverage"]["combinations"]["pairs"]["of"]
    )


def test_the_quick_matrix_is_identical_and_covered(strata: Strata) -> None:
    got = check(strata, FRIENDLY, "--device", "delayed:1+max=0.3")
    assert (got["identical"], got["covered"]) == (True, True)
    assert "delayed by seed 1 (test)" in got["device"]
    assert (got["mode"], len(got["arms"])) == ("quick", 64)
    assert {arm["stages"] for arm in got["arms"]} == {1, 2, 3, 4}
    for fate in ("launched", "kept", "rolled_back"):
        assert sum(arm[fate] for arm in got["arms"]) == sum(arm["guesses"][fate] for arm in got["arms"]) > 0


def test_what_is_said_as_it_goes_and_at_the_end(strata: Strata) -> None:
    result = strata("check", LLAMA, *SERIAL, "--draft", "lookup", "--overlap", "--stages", "3")
    assert result.code in (0, 1)  # random weights may leave nothing to look up
    lines = result.err.splitlines()
    assert all(line.endswith(": identical") for line in lines)
    assert lines[-1].split()[0] == f"{len(lines)}/{len(lines)}"
    assert f"{len(lines)} texts and states are those of plain decoding" in result.out


def test_the_seed_is_the_sampling_s_and_the_choice_s(strata: Strata) -> None:
    flags = (FRIENDLY, "--stages", "2", *SERIAL, "--overlap", "--draft", "mtp", "--draft-max", "2")
    one, again, other = (check(strata, *flags, "--seed", seed) for seed in (1, 1, 2))
    for unlike in (one, again, other):
        unlike["seconds"] = 0
        for arm in unlike["arms"]:
            arm["seconds"] = 0
    assert again == one
    assert other["reference_sha256"] != one["reference_sha256"]


def test_a_sampling_of_one_s_own(strata: Strata) -> None:
    got = check(
        strata, FRIENDLY, "--stages", "2", *SERIAL, "--draft", "mtp", "--temp", "1.1", "--top-k", "40"
    )
    assert {arm["sampling"] for arm in got["arms"]} == {"sampled"}


def test_one_stage_and_one_device_a_stage(strata: Strata) -> None:
    got = check(strata, FRIENDLY, "--stages", "1", "--threads", "1", "--draft", "mtp", "--draft-max", "2")
    assert {arm["stages"] for arm in got["arms"]} == {1}
    got = check(strata, FRIENDLY, "--device", "cpu:1,cpu:1", *SERIAL, "--draft", "mtp", "--draft-max", "2")
    assert {arm["stages"] for arm in got["arms"]} == {2}


def test_portable_kernels_are_named(strata: Strata) -> None:
    flags = (
        "check",
        FRIENDLY,
        "--isa",
        "portable",
        "--stages",
        "1",
        "--threads",
        "1",
        "--draft",
        "mtp",
        "--draft-max",
        "4",
    )
    result = strata(*flags, "--json")
    assert result.code == 0
    assert "numerics portable" in result.err
    assert json.loads(result.out)["numerics"] == "portable"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--stages", "1", "--pipeline-windows", "2"), "expected options that leave an arm"),
        (("--stages", "1", "--overlap"), "no hand-off"),
        (("--stages", "9"), "expected 1 to 4"),
        (("--draft", "best"), "best"),
    ],
)
def test_what_cannot_be_checked_says_why(strata: Strata, flags: tuple[str, ...], expected: str) -> None:
    assert expected in strata("check", FRIENDLY, *flags).error


def test_ctrl_c_says_what_was_measured_until_then() -> None:
    process = start("check", FRIENDLY, "--exhaustive", "--json", "--stages", "2", *SERIAL)
    assert process.stderr
    for _ in range(3):
        assert b"identical" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    got = json.loads(out)
    assert got["interrupted"]
    assert not got["covered"]
    assert got["identical"]
    assert 3 <= len(got["arms"]) < got["coverage"]["arms_planned"]


def test_ctrl_c_before_the_first_arm() -> None:
    process = start("check", "--full", "--json", "--rate", "20")
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert not out or json.loads(out)["interrupted"]
