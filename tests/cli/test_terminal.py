"""What reaches a terminal, a pipe, and a program that waits; what Ctrl-C leaves."""

import json
import os
import pty
import select
import signal
import subprocess
import time
import tty
from pathlib import Path

import pytest
from tests.cli.program import QWEN35, start

from strata_tui.record.recording import read_recording
from strata_tui.tokenizer import printable

# Temperature 100 is nearly uniform over the tokens, every byte among them; this seed soon brings an escape.
NOISE = ("run", QWEN35, "--tokens", "1,2,3", "-n", "300", "--temp", "100", "--seed", "32", "--ignore-eos")
ENDLESS = ("run", QWEN35, "--tokens", "1,2,3", "-n", "0", "--rate", "50", "--ignore-eos")


def read_all(terminal: int, process: subprocess.Popen[bytes], timeout_s: float = 20) -> bytes:
    """What a process writes to a terminal until it ends."""
    data = b""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            data += os.read(terminal, 65536)
        elif process.poll() is not None:
            return data
    process.kill()
    raise AssertionError(f"it did not end within {timeout_s} s; it wrote {data[-500:]!r}")


def test_exact_text_into_a_pipe_and_no_escape_sequence_onto_a_terminal() -> None:
    process = start(*NOISE)
    piped, _ = process.communicate()
    process = start(*NOISE, "--json")
    text = json.loads(process.communicate()[0])["text"]
    assert piped.decode() == text
    assert "\x1b" in text

    ours, its = pty.openpty()
    tty.setraw(its)
    process = start(*NOISE, stdout=its)
    shown = read_all(ours, process).decode()
    os.close(ours)
    os.close(its)
    assert process.returncode == 0
    assert "\x1b" not in shown
    assert shown == printable(text) + "\n"


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_draw_gets_the_text(term: str) -> None:
    ours, its = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), its)
    process = start("open", QWEN35, "-p", "x", "-n", "4", **streams, env={**os.environ, "TERM": term})
    shown = read_all(ours, process).decode(errors="replace")
    os.close(ours)
    os.close(its)
    assert process.returncode == 0
    assert shown.count("no console here") == 1
    assert f"TERM is {term or 'not set'}" in shown
    assert "4 tokens (length)" in shown


def test_a_reader_that_leaves_ends_the_run() -> None:
    process = start(*ENDLESS)
    assert process.stdout and process.stderr
    assert process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read().decode()
    assert process.wait(10) == 141
    assert "Traceback" not in err
    assert "rror" not in err


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_is_an_empty_one(closed: int) -> None:
    prompt = ("-f", "-") if closed == 0 else ("-p", "x")
    process = start("run", QWEN35, "-n", "2", *prompt, preexec_fn=lambda: os.close(closed))
    out, err = process.communicate(b"")
    assert process.returncode == 0, err
    assert b"Traceback" not in err
    assert (bool(out), bool(err)) == (closed != 1, closed != 2)


def decoding(*flags: object) -> subprocess.Popen[bytes]:
    """A run that decodes: the note on a variable comes last before it."""
    process = start(*ENDLESS, *flags, env={**os.environ, "STRATA_STAGE_TRIM": "1"})
    assert process.stderr
    assert b"STRATA_STAGE_TRIM" in process.stderr.readline()
    time.sleep(0.6)
    return process


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_text_and_what_was_measured_is_printed(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = tmp_path / "a.strata"
    process = decoding("--json", "--record", path)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert process.returncode == code, err
    (text,) = read_recording(path).requests
    assert text.finish == "cancel" and text.tokens == json.loads(out)["token_ids"]
    got = json.loads(out)
    assert got["finish"] == "cancel"
    assert 0 < len(got["token_ids"]) < 500
    assert got["windows"] > 0
    assert b"Traceback" not in err


def test_ctrl_c_while_the_replayed_text_is_recorded() -> None:
    process = decoding("--json", "--draft", "replay:1", "--rate", "0", "--kv", "f32", "--stages", "4")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130, err
    assert json.loads(out)["finish"] == "cancel"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_at_once(number: signal.Signals, code: int) -> None:
    process = decoding()
    began = time.monotonic()
    process.send_signal(number)
    time.sleep(0.001)
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == code, err
    assert time.monotonic() - began < 2
    assert b"Traceback" not in err
