import json
import signal
import time
from pathlib import Path

import pytest
from tests.cli.program import QWEN35, Strata, start

TOKENS = ("--tokens", "1,2,3,4,5,6,7,8", "--ignore-eos")
QUICK = ("bench", "-n", "12", "--runs", "2", "--threads", "1", "--ctx", "256")
SMALL = ("bench", QWEN35, *TOKENS, *QUICK[1:])


def test_default_arms(strata: Strata) -> None:
    result = strata(*QUICK, "--json")
    assert result.code == 0
    got = json.loads(result.out)
    assert [arm["name"] for arm in got["arms"]] == ["serial", "overlap", "pipeline", "overlap + pipeline"]
    in_force = [(a["switches"]["overlap"], a["switches"]["pipeline_windows"]) for a in got["arms"]]
    assert in_force == [(False, 0), (True, 0), (False, 2), (True, 2)]
    assert got["identical"] is True
    assert got["emulated"] is False
    assert len({sha for arm in got["arms"] for sha in arm["tokens_sha256"]}) == 1
    assert all(len(arm["ms_per_window"]["runs"]) == 2 for arm in got["arms"])
    assert "8 texts identical" in result.err, "the table goes beside the object"


def test_arms_take_their_flags_over_those_of_all(strata: Strata) -> None:
    flags = ("--draft", "lookup", "--stages", "3", "--arm", "a:", "--arm", "b: --draft none --split 5")
    got = json.loads(strata(*QUICK, *flags, "--json").out)
    assert [arm["switches"]["draft"] for arm in got["arms"]] == ["lookup", "none"]
    assert [len(arm["stages"]) for arm in got["arms"]] == [3, 2]
    assert got["arms"][1]["stages"][1]["first_layer"] == 5


def test_emulated_devices_are_named(strata: Strata) -> None:
    result = strata(
        *QUICK, "--arm", "real:", "--arm", "even: --device even:3,even:3", "--markdown", "--bound"
    )
    assert result.code == 0
    assert "| even [emulated] |" in result.out
    assert "| real |" in result.out
    assert "even [emulated]: actual / lower bound 1." in result.out
    assert "even [emulated]: 3 ms" not in result.err


def test_a_context_that_is_full_makes_no_text_differ(strata: Strata) -> None:
    arms = ("--arm", "small: --ctx 12", "--arm", "large: --ctx 64", "--arm", "larger: --ctx 80")
    result = strata("bench", QWEN35, "--tokens", "1,2,3,4", "-n", "20", "--ignore-eos", "--runs", "1", *arms)
    assert result.code == 0, result.err
    assert "3 texts identical; with --ctx 12 a text ends after" in result.out


def test_prompts_of_a_size(strata: Strata, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("It was a cold night in November, and the train was late. " * 30)
    flags = ("--prompt-tokens", "100", "--prompt-from", str(tmp_path), "--arm", "a:", "--arm", "b: --overlap")
    got = json.loads(strata(*QUICK, *flags, "--json").out)
    assert got["prompt"]["tokens"] == 100
    assert got["identical"] is True
    assert all(arm["prefill_tokens_per_s"]["median"] > 0 for arm in got["arms"])


def test_a_baseline(strata: Strata, tmp_path: Path) -> None:
    flags = (*SMALL, "--arm", "a:", "--arm", "b: --overlap", "--json")
    first = strata(*flags)
    assert first.code == 0
    file = tmp_path / "former.json"
    former = json.loads(first.out)
    former["arms"][1]["tokens_per_s"]["median"] = 1e9
    file.write_text(json.dumps(former))
    again = strata(*flags, "--baseline", str(file))
    assert again.code == 0, "without --fail-above nothing fails"
    assert [change["name"] for change in json.loads(again.out)["baseline"]] == ["a", "b"]
    failed = strata(*flags, "--baseline", str(file), "--fail-above", "90%")
    assert failed.code == 1
    assert "TOO SLOW: b" in failed.err
    other = strata(*flags, "--baseline", str(file), "--draft-max", "2")
    assert other.code == 2
    assert "arm a had other options: draft_max 2 here, got 4" in other.err


def test_a_process_a_run(strata: Strata) -> None:
    arms = ("--arm", "a:", "--arm", "b: --overlap")
    result = strata("bench", QWEN35, *TOKENS, "-n", "8", "--runs", "1", "--fresh", *arms, "--json")
    assert result.code == 0
    got = json.loads(result.out)
    assert got["fresh"]
    assert got["identical"] is True


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--arm", "overlap"), "--arm: expected NAME: flags"),
        (("--arm", "a: --overlap", "--arm", "a:"), "names that differ"),
        (("--arm", "a: --frobnicate"), "--arm a: expected run options"),
        (("--arm", "a: --overlap 'x"), "--arm a: No closing quotation"),
        (("--arm", "a: --temp 0.5"), "--arm a: expected --temp for all arms"),
        (("--arm", "a: --raw"), "--arm a: expected --chat/--raw for all arms"),
        (("--arm", "a: --theta x"), "--arm a: --theta: expected"),
        (("--arm", "a: --stages 3 --split 4"), "--arm a: --stages: expected 2 as --split has it"),
        (("--fail-above", "3%"), "expected --baseline"),
        (("--prompt-tokens", "9"), "together"),
        (("--json", "--markdown"), "got both"),
        (("-p", "x", "--tokens", "3"), "expected one of -p TEXT"),
        (("--baseline", "pyproject.toml"), "expected the output of bench --json"),
        (("--baseline", "no-such-file"), "no-such-file"),
        (("extra.gguf", "--runs", "0"), "--runs"),
    ],
)
def test_what_cannot_be_measured_says_why(strata: Strata, flags: tuple[str, ...], expected: str) -> None:
    assert expected in strata("bench", *flags).error


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds children through /proc")
def test_a_killed_bench_leaves_no_process_behind() -> None:
    process = start("bench", "-n", "3000", "--ctx", "4000", "--runs", "9", "--fresh")
    children: list[int] = []
    while len(children) < 2:  # the resource tracker and the run
        time.sleep(0.05)
        assert process.poll() is None
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        children = [int(pid) for pid in listed]
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60  # the run would take longer
    while any(Path(f"/proc/{pid}/exe").exists() for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
def test_ctrl_c_says_what_was_measured_until_then(fresh: tuple[str, ...]) -> None:
    arms = ("--arm", "a:", "--arm", "b: --overlap")
    process = start("bench", QWEN35, *TOKENS, "-n", "16", "--runs", "9999", *arms, "--json", *fresh)
    assert process.stderr
    for _ in range(3):
        while b"round " not in process.stderr.readline():
            pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    got = json.loads(out)
    assert got["interrupted"]
    assert len(got["arms"][0]["tokens_per_s"]["runs"]) >= 2
    assert got["identical"] is True
