"""Whatever can't be used gives one line that says what was expected and what came, and exit code 2."""

import contextlib
import os
from pathlib import Path

import pytest
from tests.cli.program import LLAMA, QWEN35, Strata

few_cores = pytest.mark.skipif((os.cpu_count() or 1) >= 64, reason="1024 threads are allowed here")
RUN = ("run", QWEN35, "--tokens", "1,2,3", "-n", "2")


@pytest.mark.parametrize(
    ("flags", "expected", "came"),
    [
        ("--split 2,2", "ascend", "2,2"),
        ("--split 3,1", "ascend", "3,1"),
        ("--split 0", "ascend from 1", "0"),
        ("--split 4", "layers 0 to 3", "4"),
        ("--split -1", "ascend from 1", "-1"),
        ("--split 99999999999999999999", "layers 0 to 3", "99999999999999999999"),
        ("--split 1,,2", "auto or layers", "1,,2"),
        ("--split half", "auto or layers", "half"),
        ("--split 1 --stages 3", "expected 2", "got 3"),
        ("--stages 5", "1 to 4", "5"),
        ("--stages 0", "1<=x<=32", "0"),
        ("--stages 33", "1<=x<=32", "33"),
        ("--stages two", "a whole number, 1<=x<=32", "two"),
        ("--stages 1_0", "a whole number, 1<=x<=32", "1_0"),
        ("--threads ٣", "a whole number, 1<=x<=1024", "٣"),
        ("--stages 2.0", "a whole number, 1<=x<=32", "2.0"),
        ("--stages " + "9" * 5000, "a whole number, 1<=x<=32", "9" * 60),
        ("--device cpu,cpu,cpu --stages 2", "1 or 2 devices", "3"),
        ("--device gpu:0", "not in this version", "gpu:0"),
        ("--device paced:a100", "expected one of laptop", "a100"),
        ("--device tpu", "expected cpu", "tpu"),
        ("--device cpu:", "expected cpu", "cpu:"),
        ("--device cpu:0", "expected cpu", "cpu:0"),
        ("--device cpu:many", "expected cpu", "cpu:many"),
        ("--device cpu:1@", "expected cpu", "cpu:1@"),
        ("--device cpu:1@3-1", "expected cpu", "3-1"),
        ("--device cpu:1@4000", "core", "4000"),
        ("--threads 0", "1<=x<=1024", "0"),
        pytest.param("--threads 1024", "16 for each usable core", "1024", marks=few_cores),
        ("--ctx 0", "1<=x", "0"),
        ("--ctx 2", "context", "3"),
        ("--kv int8", "'f32', 'f16'", "int8 is not in this version"),
        ("--kv f64", "'f32', 'f16'", "f64"),
        ("--chunk 0", "1<=x", "0"),
        ("--isa sse2", "avx2", "sse2"),
        ("--draft best", "mtp, lookup, none or replay:Q", "best"),
        ("--draft replay", "replay:Q", "replay"),
        ("--draft replay:2", "Q from 0 to 1", "replay:2"),
        ("--draft replay:nan", "Q from 0 to 1", "replay:nan"),
        ("--draft mtp --suffix-draft", "no other --draft", "mtp"),
        ("--draft-max 8", "0 to 7", "8"),
        ("--draft-max -1", "0 to 7", "-1"),
        ("--draft-min-p 1.5", "0 to 1", "1.5"),
        ("--draft-min-p nan", "0 to 1", "nan"),
        ("--theta -0.1", "from 0", "-0.1"),
        ("--short-read x", "whole number", "x"),
        ("--pipeline-windows 33", "0 to 32", "33"),
        ("--rate -1", "from 0", "-1"),
        ("--rate inf", "from 0", "inf"),
        ("--temp -1", "0 to 100", "-1"),
        ("--temp nan", "0 to 100", "nan"),
        ("--temp hot", "float", "hot"),
        ("--top-k -1", "0 (off) or a count", "-1"),
        ("--top-k 99999999999", "0 (off) or a count", "99999999999"),
        ("--top-p 0", "above 0", "0"),
        ("--top-p 1.01", "up to 1", "1.01"),
        ("--min-p 1", "below 1", "1"),
        ("--repeat-penalty 0", "above 0", "0"),
        ("--seed -1", "2^64", "-1"),
        ("--seed 18446744073709551616", "2^64", "18446744073709551616"),
        ("-n -1", "0<=x", "-1"),
        ("-n 2147483648", "2147483647", "2147483648"),
        ("--profile nowhere", "laptop", "nowhere"),
        ("--wrong 1", "No such option", "--wrong"),
        ("-p more", "one of -p TEXT", "-p and --tokens"),
        ("--log /dev/null/log", "/dev/null/log", "directory"),
        ("--trace /dev/null/trace.json", "folder", "/dev/null/trace.json"),
    ],
)
def test_a_bad_flag(strata: Strata, flags: str, expected: str, came: str) -> None:
    line = strata(*RUN, *flags.split()).error
    assert expected in line
    assert came in line


@pytest.mark.parametrize("flag", ["--split", "--device", "--isa", "--profile", "--draft"])
def test_an_empty_value_is_no_value_left_out(strata: Strata, flag: str) -> None:
    line = strata(*RUN, flag, "").error
    assert f"{flag}: expected " in line and line.endswith("got ''")
    assert "expected" in strata("bench", QWEN35, "--arm", f"a: {flag} ''").error


def test_an_empty_split_is_no_split_to_inspect(strata: Strata) -> None:
    assert "--split: expected auto or layers" in strata("inspect", QWEN35, "--split", "").error
    assert "int8 is not in this version" in strata("inspect", QWEN35, "--kv", "int8").error


def test_an_empty_variable_is_not_set(strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STRATA_LAYER_SPLIT", "STRATA_SPLIT_DEVICE", "STRATA_CPU_ISA"):
        monkeypatch.setenv(name, "")
    assert strata(*RUN).code == 0


@pytest.mark.parametrize(
    ("tokens", "expected", "came"),
    [
        ("512", "0 to 511", "512"),
        ("1,2147483647", "0 to 511", "2147483647"),
        ("2147483648", "ids like", "2147483648"),
        ("-1", "ids like", "-1"),
        ("1,two", "ids like", "1,two"),
        ("1.5", "ids like", "1.5"),
        ("", "one token", "none"),
        ("@nowhere.txt", "nowhere.txt", "No such file"),
    ],
)
def test_bad_tokens(strata: Strata, tokens: str, expected: str, came: str, tmp_path: Path) -> None:
    for command in (("run",), ("eval", "-o", tmp_path / "out.npz")):
        line = strata(*command, QWEN35, "--tokens", tokens).error
        assert expected in line
        assert came in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("STRATA_SPLIT_OVERLAP", "maybe", "0 or 1"),
        ("STRATA_LAYER_SPLIT", "3,1", "ascend"),
        ("STRATA_LAYER_SPLIT", "half", "layers"),
        ("STRATA_SPLIT_DEVICE", "gpu:0", "not in this version"),
        ("STRATA_PIPELINE_WINDOWS", "many", "0 to 32"),
        ("STRATA_CPU_ISA", "sse2", "avx2"),
    ],
)
def test_a_bad_environment(
    strata: Strata, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(name, value)
    line = strata(*RUN).error
    assert expected in line
    assert value in line


def test_the_bad_variable_is_named(strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_LAYER_SPLIT", "half")
    assert "STRATA_LAYER_SPLIT" in strata(*RUN).error


@pytest.mark.parametrize("command", ["run -p x", "eval --tokens 1 -o {}/out.npz", "inspect", "open -p x"])
def test_no_model_file(strata: Strata, tmp_path: Path, command: str) -> None:
    command, *more = command.format(tmp_path).split()
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "noise.gguf").write_bytes(os.urandom(5000))
    (tmp_path / "short.gguf").write_bytes(QWEN35.read_bytes()[:100_000])
    (tmp_path / "two\nlines.gguf").write_bytes(b"GGUF")
    for name in ("missing.gguf", "empty.gguf", "noise.gguf", "short.gguf", "two\nlines.gguf"):
        assert name.split("\n")[-1] in strata(command, tmp_path / name, *more).error
    assert "folder" in strata(command, tmp_path, *more).error
    assert not (tmp_path / "out.npz").exists()


def test_a_prompt_that_is_too_long(strata: Strata) -> None:
    line = strata("run", QWEN35, "--tokens", ",".join(["1"] * 20), "--ctx", "16").error
    assert "16" in line
    assert "20" in line


def test_an_empty_prompt_needs_a_token_to_begin_with(strata: Strata, tmp_path: Path) -> None:
    assert strata("run", LLAMA, "--raw", "-p", "", "-n", "1").code == 0
    without_bos = tmp_path / "model.gguf"
    without_bos.write_bytes(LLAMA.read_bytes().replace(b"bos_token_id", b"bos_tok_away"))
    assert "BOS" in strata("run", without_bos, "--raw", "-p", "").error


def test_a_prompt_is_asked_for(strata: Strata) -> None:
    assert "got none" in strata("run", QWEN35).error
    assert "nowhere.txt" in strata("run", QWEN35, "-f", "nowhere.txt").error


def test_a_mistyped_command_gets_a_suggestion(strata: Strata) -> None:
    assert "did you mean inspect?" in strata("inspct").error
    assert "expected one of open, web, run, eval" in strata("qqq").error


@pytest.mark.parametrize("option", ["--tokens", "-o"])
def test_eval_needs_tokens_and_a_file(strata: Strata, option: str, tmp_path: Path) -> None:
    given = {"--tokens": "1,2", "-o": str(tmp_path / "out.npz")}
    del given[option]
    assert option in strata("eval", QWEN35, *[word for pair in given.items() for word in pair]).error


@pytest.mark.parametrize("output", [".", "nowhere/out.npz"])
def test_eval_refuses_an_output_before_the_work(strata: Strata, output: str, tmp_path: Path) -> None:
    assert "-o" in strata("eval", QWEN35, "--tokens", "1,2", "-o", tmp_path / output).error


@pytest.mark.parametrize("command", [(), ("open",), ("run", "-p", "x"), ("bench",)])
def test_a_recording_where_a_model_is_expected(
    strata: Strata, command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "a.strata"
    assert strata("run", QWEN35, "--tokens", "1,2", "-n", "4", "--record", path).code == 0
    error = strata(*command[:1], path, *command[1:]).error
    assert f"got a recording: strata-tui replay {path} plays it" in error


@pytest.mark.parametrize("ids", ["1,,2", ",1", "1;2", "1_0", "٣", "-1", "2147483648", "1,x", "9" * 5000])
def test_a_list_of_tokens_is_decimal_numbers(strata: Strata, ids: str) -> None:
    error = strata("run", QWEN35, "--tokens", ids, "-n", "2").error
    assert error == f"strata-tui: --tokens: expected ids like 12,7,301 or @FILE, got {ids[:60]!r}"


def test_a_trace_has_a_name_that_tells_what_it_is(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    error = strata(*RUN, "--trace", path).error
    assert "--trace: expected a name that ends in .json.gz, .json, got trace.txt" in error
    assert not path.exists()


def test_a_folder_that_is_gone(strata: Strata, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with contextlib.chdir(gone):
        gone.rmdir()
        error = strata(*RUN, "--record", "a.strata", "--trace", "b.json").error
    assert error == "strata-tui: the working folder is gone"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("flag", ["--trace", "--log"])
def test_a_full_disk_is_told_with_the_files_name(strata: Strata, flag: str) -> None:
    done = strata("run", QWEN35, "--tokens", "1,2", "-n", "4", flag, "/dev/full")
    assert done.code == 2 and done.err.splitlines()[-1] == "strata-tui: /dev/full: No space left on device"


def test_a_pipe_or_device_is_refused_before_it_is_opened(strata: Strata, tmp_path: Path) -> None:
    """A pipe that nobody writes into would be waited for without end."""
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        for command in (
            ("run", path, "-p", "x"),
            ("run", QWEN35, "--draft-model", path, "-p", "x"),
            ("run", QWEN35, "-f", path),
            ("run", QWEN35, "--tokens", f"@{path}"),
            ("inspect", path),
            ("inspect", QWEN35, "--draft-model", path),
            ("replay", path),
            ("compare", path, path),
            ("export", path, "-o", tmp_path / "a.csv"),
            ("bench", QWEN35, "--baseline", path),
            *((command, path) for command in ("open", "check", "plan", "bench")),
            ("eval", path, "--tokens", "1", "-o", tmp_path / "a.npz"),
            *(
                (command, QWEN35, "--draft-model", path)
                for command in ("open", "web", "check", "plan", "bench")
            ),
            ("profiles", "--from", path),
        ):
            line = strata(*command).error
            assert str(path) in line and line.endswith("got a pipe or a device"), command
    profile = tmp_path / "pipe.toml"
    os.mkfifo(profile)
    named = (("profiles", profile), (*RUN, "--profile", profile), (*RUN, "--device", f"paced:{profile}"))
    for command in named:
        assert strata(*command).error.endswith(f"{profile}: expected a run profile, got a pipe or a device")


def test_a_pipe_among_the_files_of_prompts_is_passed_over(strata: Strata, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("one two three four five six seven")
    prompts = ("--prompt-tokens", "6", "--prompt-from", tmp_path, "--arm", "a:", "--runs", "1", "-n", "2")
    assert strata("bench", *prompts).code == 0
    assert "expected a folder" in strata("bench", *prompts[:3], tmp_path / "a.txt", *prompts[4:]).error


def test_what_is_too_long_is_not_read(strata: Strata, tmp_path: Path) -> None:
    prompt, profile = tmp_path / "prompt", tmp_path / "long.toml"
    for path, mib in ((prompt, 64), (profile, 1)):
        with path.open("wb") as file:
            file.truncate((mib << 20) + 1)
    for flags in (("-f", prompt), ("--tokens", f"@{prompt}")):
        assert "expected a file of at most 64 MiB, got a longer one" in strata("run", QWEN35, *flags).error
    assert "at most 1 MiB" in strata("run", QWEN35, "-p", "x", "--profile", profile).error
    profile.write_text("a=" + "[" * 100_000)
    assert "nested without end" in strata("run", QWEN35, "-p", "x", "--profile", profile).error
