import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import LLAMA, QWEN35, Strata, start

TOKENS = "1,2,3,4,5,6,7,8"

# The contract of run --json. More may be added; none of these goes away.
CONTRACT = """
model model_sha256 arch devices emulated stages switches prompt_tokens token_ids text finish
prefill_tokens_per_s time_to_first_token_ms tokens_per_s ms_per_window tokens_per_window windows drafted
accepted accepted_per_position guesses ms_fresh ms_kept_after_fresh ms_kept_after_kept
windows_overlapped stages_busy_mean cached_tokens bound wasted_ms dropped_events
"""
KEYS = set(CONTRACT.split())
STAGE_KEYS = {"device", "first_layer", "last_layer", "run_ms", "wait_ms", "idle"}
OF_KEPT = {"ms_kept_after_fresh", "ms_kept_after_kept"}
GUESSES = """
built gated late launched kept rolled_back ended bonus_wrong draft_wrong forced second_choice_right
"""


@pytest.fixture
def run_json(strata: Strata) -> Any:
    def run(*args: object, tokens: str = TOKENS) -> dict[str, Any]:
        result = strata("run", QWEN35, "--tokens", tokens, "-n", "24", "--ignore-eos", "--json", *args)
        assert result.code == 0, result.err
        return dict(json.loads(result.out))

    return run


def test_every_key_of_the_contract(run_json: Any) -> None:
    got = run_json("--overlap")
    assert got.keys() >= KEYS
    assert {key for key in KEYS if got[key] is None} == OF_KEPT
    assert set(got["guesses"]) == set(GUESSES.split()) and not any(got["guesses"].values())
    assert got["wasted_ms"] == 0 and got["ms_fresh"] == got["ms_per_window"]
    assert [stage.keys() for stage in got["stages"]] == [STAGE_KEYS] * 2
    assert [(s["first_layer"], s["last_layer"]) for s in got["stages"]] == [(0, 2), (3, 3)]
    assert (got["arch"], got["emulated"]) == ("qwen35", False)
    assert (got["finish"], got["prompt_tokens"]) == ("length", 8)
    assert len(got["model_sha256"]) == 64
    assert len(got["token_ids"]) == 24
    assert got["windows_overlapped"] == got["windows"] > 0
    assert got["switches"]["overlap"] is True
    assert 0 < got["stages_busy_mean"] <= 2
    rate = got["tokens_per_window"] / got["ms_per_window"] * 1e3
    assert got["tokens_per_s"] == pytest.approx(rate)
    assert 0 < got["bound"]["full_depth_ms"] <= got["bound"]["same_depth_ms"] <= got["bound"]["actual_ms"]
    idle = sum(sum(stage["idle"].values()) for stage in got["stages"])
    assert idle + got["stages_busy_mean"] == pytest.approx(2)  # of 2 stages
    for stage in got["stages"]:
        assert stage["run_ms"] / got["text_ms"] + sum(stage["idle"].values()) == pytest.approx(1)


def test_an_emulated_run_says_so(run_json: Any) -> None:
    got = run_json("--device", "even:1,cpu:1")
    assert got["emulated"] is True
    assert got["devices"] == ["even 1 ms (emulated), cpu 1 thread", "cpu 1 thread"]
    assert got["token_ids"] == run_json("--device", "delayed:1")["token_ids"]


@pytest.mark.parametrize(("device", "marked"), [("even:1", True), ("cpu:1", False)])
def test_every_line_with_a_time_says_whether_it_is_emulated(
    strata: Strata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str, marked: bool
) -> None:
    for name in ("PIPELINE_DEBUG", "PIPELINE_LOG", "DECODE_TIMING", "SPLIT_TIMING", "VERIFY_PROFILE"):
        monkeypatch.setenv(f"STRATA_{name}", "1")
    log = tmp_path / "log"
    flags = ("--device", device, "--draft", "mtp", "--pipeline-windows", "2", "--log", log)
    assert strata("run", QWEN35, "--tokens", TOKENS, "-n", "16", *flags).code == 0
    timed = [line for line in log.read_text().splitlines() if re.search(r"\bms\b.*\d|\d ms", line)]
    begins = ("strata pipeline: chain", "strata pipeline: windows", "strata timing:", "strata profile:")
    assert all(any(line.startswith(begin) for line in timed) for begin in begins)
    for line in timed:
        if not line.startswith("strata pace: longer than emulated"):
            assert line.endswith((" [emulated]", " [computed here]")) == marked, line


def test_guesses_are_counted_and_add_up(run_json: Any) -> None:
    got = run_json("--pipeline-windows", "2", "--draft", "replay:0.9", "-n", "200", "--theta", "0")
    g = got["guesses"]
    assert got["switches"]["pipeline_windows"] == 2
    assert g["built"] == g["gated"] + g["late"] + g["launched"]
    assert g["launched"] == g["kept"] + g["rolled_back"] + g["ended"]
    assert g["kept"] > 0 and g["rolled_back"] > 0
    assert g["draft_wrong"] + g["bonus_wrong"] + g["forced"] == g["rolled_back"], "one guess in flight"
    assert got["wasted_ms"] > 0 and got["ms_kept_after_fresh"] > 0 and got["ms_fresh"] > 0


def test_nothing_generated_has_no_rates(strata: Strata) -> None:
    got = json.loads(strata("run", QWEN35, "--tokens", "1", "--ctx", "1", "--json").out)
    assert got.keys() >= KEYS
    assert (got["finish"], len(got["token_ids"])) == ("context", 1)


def test_the_text_is_the_same_whatever_the_switches(run_json: Any) -> None:
    plain = run_json("--stages", "1", "--draft", "none")["token_ids"]
    for flags in (
        "--stages 4 --overlap",
        "--stages 2 --threads 2 --draft lookup",
        "--split 1,2 --draft-max 7",
        "--draft replay:0.7 --overlap",
        "--chunk 3 --short-read 0 --rate 5000",
        "--device cpu:1,cpu:2",
        "--profile laptop --temp 0 --no-overlap",
        "--pipeline-windows 2 --theta 0",
        "--stages 4 --pipeline-windows 4 --overlap --draft replay:0.8",
    ):
        assert run_json(*flags.split())["token_ids"] == plain, flags


def test_the_end_token_is_in_the_ids_and_not_in_the_text(strata: Strata) -> None:
    flags = ("run", QWEN35, "--tokens", TOKENS, "-n", "0", "--temp", "100", "--seed", "3", "--json")
    got = json.loads(strata(*flags).out)
    assert got["finish"] == "stop"
    assert got["token_ids"][-1] in (508, 509, 510, 511)
    assert "<|" not in got["text"]
    longer = json.loads(strata(*flags, "-n", len(got["token_ids"]) + 5, "--ignore-eos").out)
    assert longer["finish"] == "length"
    assert longer["token_ids"][: len(got["token_ids"])] == got["token_ids"]


def test_a_flag_beats_the_environment_and_that_a_profile(
    run_json: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(
        '[placement]\nsplit = [1, 2]\ndevice = ["cpu:2"]\n[switches]\noverlap = true\ndraft = "none"\n'
    )
    got = run_json("--profile", profile)
    assert (got["switches"]["overlap"], got["switches"]["draft"], len(got["stages"])) == (True, "none", 3)
    assert got["devices"] == ["cpu 2 threads"] * 3
    monkeypatch.setenv("STRATA_SPLIT_OVERLAP", "0")
    monkeypatch.setenv("STRATA_LAYER_SPLIT", "3")
    monkeypatch.setenv("STRATA_SPLIT_DEVICE", "cpu:1")
    got = run_json("--profile", profile)
    assert got["switches"]["overlap"] is False
    assert got["devices"] == ["cpu 1 thread"] * 2
    assert got["stages"][1]["first_layer"] == 3
    got = run_json("--profile", profile, "--overlap", "--split", "2", "--device", "cpu:2,cpu:1")
    assert got["switches"]["overlap"] is True
    assert got["devices"] == ["cpu 2 threads", "cpu 1 thread"]
    assert got["stages"][1]["first_layer"] == 2
    assert len(run_json("--profile", profile, "--stages", "1")["stages"]) == 1


def test_a_variable_without_counterpart_gives_one_line(
    strata: Strata, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("STRATA_STAGE_TRIM", "STRATA_PF_GEMM", "STRATA_PIPELINE_FORCE_MISS")
    for name in names:
        monkeypatch.setenv(name, "1")
    result = strata("run", QWEN35, "--tokens", TOKENS, "-n", "2", "--adapt-every", "64")
    assert result.code == 0
    for name in (*names, "--adapt-every"):
        assert len([line for line in result.err.splitlines() if name in line]) == 1, result.err


def test_kernels_are_timed_where_that_is_asked_for(strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    def profile() -> list[str]:
        result = strata("run", QWEN35, "--tokens", TOKENS, "-n", "8", "--stages", "2")
        assert result.code == 0
        return [line for line in result.err.splitlines() if line.startswith("strata profile: ")]

    assert profile() == []
    monkeypatch.setenv("STRATA_VERIFY_PROFILE", "1")
    lines = profile()
    for lane, kernels in (
        ("stage 0", ("delta", "norm", "embed")),
        ("stage 1", ("attention", "head", "pick")),
        ("draft layer", ("attention", "head", "pick")),
    ):
        told = "\n".join(line for line in lines if line.startswith(f"strata profile: {lane}, "))
        for kernel in kernels:
            assert f" {kernel} " in told, (lane, kernel)
    assert any(line.startswith("strata profile: stage 0, commits, ") for line in lines)
    assert not any(" head " in line for line in lines if "stage 0" in line)


def test_test_switches_and_reports_of_the_environment(
    strata: Strata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DEBUG", "FORCE_MISS", "LOG"):
        monkeypatch.setenv(f"STRATA_PIPELINE_{name}", "1")
    monkeypatch.setenv("STRATA_PIPELINE_THETA", "0")
    monkeypatch.setenv("STRATA_DECODE_TIMING", "1")
    monkeypatch.setenv("STRATA_SPLIT_TIMING", "1")
    log = tmp_path / "log"
    flags = (
        "-n",
        "60",
        "--ignore-eos",
        "--pipeline-windows",
        "2",
        "--draft",
        "replay:1",
        "--json",
        "--log",
        log,
    )
    result = strata("run", QWEN35, "--tokens", TOKENS, *flags)
    got = json.loads(result.out)
    assert got["switches"]["force_miss"] == 1 and got["switches"]["theta"] == 0
    assert got["guesses"]["kept"] == 0 and got["guesses"]["forced"] == got["guesses"]["rolled_back"] > 0
    lines = log.read_text().splitlines()
    assert sum(line.startswith("strata pipeline: verdict") for line in lines) == got["windows"]
    assert sum("rolled back" in line and "(forced)" in line for line in lines) == got["guesses"]["forced"]
    assert sum(line.startswith("strata timing: ms per window") for line in lines) == 1
    assert sum(line.startswith("strata timing: stage") for line in lines) == 2
    monkeypatch.setenv("STRATA_PIPELINE_FORCE_MISS", "x")
    assert strata("run", QWEN35, "--tokens", TOKENS).code == 2


def test_more_windows_in_flight_than_stages_are_clamped_with_a_line(strata: Strata) -> None:
    result = strata("run", QWEN35, "--tokens", TOKENS, "-n", "8", "--json", "--pipeline-windows", "7")
    assert json.loads(result.out)["switches"]["pipeline_windows"] == 2
    lines = [line for line in result.err.splitlines() if "WINDOWS=7" in line]
    assert len(lines) == 1 and "running with 2" in lines[0], result.err


def test_a_switch_that_cannot_apply_is_said_once_and_the_run_goes_on(strata: Strata) -> None:
    flags = ("run", LLAMA, "--tokens", TOKENS, "-n", "8", "--json", "--draft", "mtp")
    result = strata(*flags, "--pipeline-windows", "2", "--stages", "1")
    got = json.loads(result.out)
    assert (got["switches"]["pipeline_windows"], got["switches"]["draft"]) == (0, "lookup")
    for words in ("STRATA_PIPELINE_WINDOWS=2 needs two stages", "--draft mtp needs a draft layer"):
        assert sum(words in line for line in result.err.splitlines()) == 1, result.err


def test_a_draft_layer_that_is_asked_for_and_not_there_is_said(strata: Strata) -> None:
    result = strata("run", LLAMA, "--tokens", TOKENS, "-n", "8", "--draft", "mtp")
    assert result.err.count("--draft mtp needs a draft layer, which this model file lacks") == 1, result.err
    assert "needs a draft layer" not in strata("run", LLAMA, "--tokens", TOKENS, "-n", "8").err


def test_log_lines_go_to_a_file(strata: Strata, tmp_path: Path) -> None:
    log = tmp_path / "log"
    flags = ("run", QWEN35, "--tokens", TOKENS, "-n", "9", "--overlap", "--stages", "3")
    aloud = strata(*flags)
    quiet = strata(*flags, "--log", log)
    assert quiet.out == aloud.out
    written = log.read_text().splitlines()
    assert [line.split(":")[0] for line in written] == [
        "strata",
        "strata",
        "strata pipeline",
    ]
    assert "stage 0 -> 1: overlapped" in written[0]
    assert "strata" not in quiet.err
    assert "tok/s" in quiet.err
    assert all(line.split(":")[0] in aloud.err for line in written)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_is_written(strata: Strata, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert strata("run", QWEN35, "--tokens", TOKENS, "-n", "9", "--trace", path).code == 0
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert json.loads(text)["traceEvents"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_prompt_from_a_file_or_standard_input(strata: Strata, tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes("Zwei Stufen \N{GREEK SMALL LETTER ALPHA}\n".encode() + b"\xff")
    from_file = strata("run", LLAMA, "-f", file, "-n", "8").out
    process = start("run", LLAMA, "-f", "-", "-n", "8")
    out, err = process.communicate(file.read_bytes())
    assert (process.returncode, out.decode()) == (0, from_file), err
    assert strata("run", LLAMA, "-p", file.read_text(errors="replace"), "-n", "8").out == from_file


def test_tokens_from_a_file(strata: Strata, tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text("1, 2\n3 4,5\n6 7 8\n")
    flags = ("run", QWEN35, "-n", "8", "--tokens")
    assert strata(*flags, f"@{file}").out == strata(*flags, TOKENS).out


def test_ids_run_on_a_file_whose_tokenizer_is_unknown(strata: Strata, tmp_path: Path) -> None:
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(QWEN35.read_bytes().replace(b"tokenizer.ggml.model", b"tokenizer.ggml.mode_"))
    got = json.loads(strata("run", odd, "--tokens", TOKENS, "-n", "8", "--json").out)
    assert (got["text"], len(got["token_ids"])) == ("", 8)
    assert "tokenizer" in strata("run", odd, "-p", "x").error


def test_flags_of_a_draft_model_and_of_thinking(strata: Strata) -> None:
    friendly = QWEN35.with_name("micro-qwen35-friendly.gguf")
    run = ("run", QWEN35, "-p", "abc", "-n", "16", "--ignore-eos", "--json", "--no-thinking")
    plain, drafted = strata(*run), strata(*run, "--draft-model", friendly)
    assert plain.code == drafted.code == 0, drafted.err
    assert "[chat] micro-qwen35.gguf: its template has no switch for thinking" in plain.err
    before, after = json.loads(plain.out), json.loads(drafted.out)
    assert (before["draft_model"], after["draft_model"]) == (None, friendly.name)
    assert after["token_ids"] == before["token_ids"]
    assert strata(*run, "--draft-model", LLAMA).error.endswith(
        "micro-llama.gguf: has the architecture llama, expected qwen35 as in micro-qwen35.gguf"
    )
