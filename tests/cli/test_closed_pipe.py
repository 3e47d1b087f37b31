"""A reader that goes away, as `| head` does: the exit code of SIGPIPE, and no word of it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.program import QWEN35, Strata, start

RUN = ("run", QWEN35, "--tokens", "1,2,3", "-n", "8", "--ignore-eos")


@pytest.fixture
def recording(strata: Strata, tmp_path: Path) -> Path:
    path = tmp_path / "a.strata"
    assert strata(*RUN, "--record", path).code == 0
    return path


def without_a_reader(*args: object, also_stderr: bool = False) -> tuple[int, str]:
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": writing} | ({"stderr": writing} if also_stderr else {})
    try:
        process = start(*args, stdin=subprocess.DEVNULL, **streams)
    finally:
        os.close(writing)
    _, err = process.communicate(timeout=60)
    return process.returncode, (err or b"").decode()


COMMANDS = {
    "help": ("--help",),
    "help of a command": ("compare", "--help"),
    "version": ("--version",),
    "run": RUN,
    "run --json": (*RUN, "--json"),
    "bench": ("bench", QWEN35, "--tokens", "1,2", "-n", "2", "--arm", "a:", "--runs", "1"),
    "inspect": ("inspect", QWEN35),
    "devices": ("devices", "--json"),
    "profiles": ("profiles",),
    "compare": ("compare", "RECORDING", "RECORDING"),
    "compare --json": ("compare", "RECORDING", "RECORDING", "--json"),
    "profiles --from": ("profiles", "--from", "RECORDING"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_is_no_failed_check(command: str, request: pytest.FixtureRequest) -> None:
    args = COMMANDS[command]
    if "RECORDING" in args:
        path = request.getfixturevalue("recording")
        args = tuple(path if word == "RECORDING" else word for word in args)
    code, err = without_a_reader(*args)
    assert code == 141
    assert "Traceback" not in err and "Exception ignored" not in err and "strata-tui:" not in err


@pytest.mark.parametrize("args", [RUN, ("run", QWEN35), ("inspect", "nowhere.gguf")])
def test_nobody_reads_what_is_wrong_either(args: tuple[object, ...]) -> None:
    assert without_a_reader(*args, also_stderr=True)[0] == 141


def test_a_recording_is_whole_whose_text_nobody_read(tmp_path: Path, strata: Strata) -> None:
    path = tmp_path / "a.strata"
    assert without_a_reader(*RUN, "--record", path)[0] == 141
    done = strata("export", path, "-o", tmp_path / "a.csv")
    assert done.code == 0 and "cut off" not in done.err and "not closed" not in done.err
