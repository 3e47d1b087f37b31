"""However a console is ended, it ends soon: saved, its terminal restored, with the exit code of its end."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.tui.terminal import Terminal, model, terminal

pytest.importorskip("strata_tui._core")

from strata_tui.record.reading import open_recording

QUEUES = {"typed": b"x" * 20_000, "flips": b"o" * 5_000, "nothing": b""}


def opened(its: Terminal) -> None:
    its.read_until(b"live")


def queued(its: Terminal, queue: str) -> None:
    if queue == "typed":
        in_the_prompt(its)
    its.type(QUEUES[queue])


def in_the_prompt(its: Terminal) -> None:
    its.type(b"n")
    time.sleep(0.3)
    its.type(b"yes")
    its.read_until(b"yes")


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_ends_it_whatever_is_queued(queue: str, number: signal.Signals) -> None:
    with terminal(model()) as its:
        opened(its)
        queued(its, queue)
        its.process.send_signal(number)
        began = time.monotonic()
        assert its.wait() == 128 + number
        assert time.monotonic() - began < 10, "it took minutes"
        assert its.is_restored
        assert b"Traceback" not in its.out


@pytest.mark.parametrize("queue", QUEUES)
def test_a_closed_terminal_ends_it(queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with terminal(model()) as its:
        opened(its)
        its.type(b"r")
        its.read_until(b"rec")
        queued(its, queue)
        its.close()
        assert its.wait() == 128 + signal.SIGHUP
    (path,) = tmp_path.glob("*.strata")
    assert open_recording(path).note == "", "the recording is whole"


def test_a_terminal_that_nobody_reads_does_not_hold_it_up() -> None:
    with terminal(model()) as its:
        opened(its)
        time.sleep(2)  # not a byte of what is drawn is read
        its.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 15
        while its.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert its.process.poll() == 128 + signal.SIGTERM


def test_a_terminal_that_goes_without_a_word_ends_it() -> None:
    """It is not the controlling terminal: nobody sends SIGHUP."""
    with terminal(model()) as its:
        opened(its)
        os.kill(its.process.pid, signal.SIGSTOP)
        its.close()
        time.sleep(0.1)
        os.kill(its.process.pid, signal.SIGCONT)
        assert its.wait() != 0


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.3, 0.5])
def test_ctrl_c_while_it_starts_is_a_clean_exit(after_s: float) -> None:
    with terminal(model()) as its:
        time.sleep(after_s)
        if b"1049h" not in its.out:
            its.process.send_signal(signal.SIGINT)
        assert its.wait() in (130, -signal.SIGINT)
        lines = its.out.split(b"Traceback")
        assert len(lines) == 1 or b"strata_tui" not in lines[1], (
            "before our first line it is the interpreter's"
        )


def test_a_prompt_has_its_longest_and_says_so_once() -> None:
    with terminal(model()) as its:
        opened(its)
        in_the_prompt(its)
        its.type(b"x" * 2_100)
        its.read_until(b"2,000")
        its.process.send_signal(signal.SIGTERM)
        its.wait()
