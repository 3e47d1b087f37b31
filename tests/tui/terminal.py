"""The program in a terminal of its own, for tests of what becomes of both."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from strata_tui.cli import main; main()"]


class Terminal:
    """A pseudo terminal with the program as its session's leader; `out` is what it has written.

    `close` is what closing a window does.
    """

    def __init__(self, *args: object, size: tuple[int, int] = (120, 40), **environment: str) -> None:
        self.ours, self.its = pty.openpty()
        fcntl.ioctl(self.its, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.modes: list[Any] = termios.tcgetattr(self.its)
        self.out = b""
        self.process = subprocess.Popen(
            [*PROGRAM, *map(str, args)],
            stdin=self.its,
            stdout=self.its,
            stderr=self.its,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment},
            preexec_fn=_leads_the_session,
        )

    def read_until(self, shown: bytes, timeout_s: float = 30) -> None:
        until = time.monotonic() + timeout_s
        while shown not in self.out:
            assert time.monotonic() < until and self.process.poll() is None, self.out[-400:]
            self.read(0.05)

    def read(self, wait_s: float) -> None:
        """What it draws next, within this time."""
        if select.select([self.ours], [], [], wait_s)[0]:
            self.out += os.read(self.ours, 65536)

    def type(self, keys: bytes) -> None:
        """All of them; what is drawn meanwhile is read, as a terminal does."""
        while keys:
            readable, writable, _ = select.select([self.ours], [self.ours], [], 1)
            if readable:
                self.out += os.read(self.ours, 65536)
            if writable:
                keys = keys[os.write(self.ours, keys[:512]) :]

    def close(self) -> None:
        for end in (self.ours, self.its):
            os.close(end)
        self.ours = self.its = -1

    def wait(self, timeout_s: float = 20) -> int:
        """The exit code."""
        until = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < until:
            self.read(0.02) if self.ours >= 0 else time.sleep(0.02)
        assert self.process.poll() is not None, "it did not end"
        while self.ours >= 0 and select.select([self.ours], [], [], 0.05)[0]:
            self.out += os.read(self.ours, 65536)
        return self.process.returncode

    @property
    def is_restored(self) -> bool:
        """Its modes are what they were, it is out of the other screen and the cursor is seen."""
        modes = termios.tcgetattr(self.its)[:4] == self.modes[:4]
        after = self.out.rsplit(b"\x1b[?1049l", 1)[-1]
        return modes and b"\x1b[?1049h" not in after and b"\x1b[?25h" in after


def _leads_the_session() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def terminal(*args: object, **environment: str) -> Iterator[Terminal]:
    its = Terminal(*args, **environment)
    try:
        yield its
    finally:
        if its.process.poll() is None:
            its.process.kill()
            its.process.wait()
        if its.ours >= 0:
            its.close()


def model(name: str = "micro-qwen35.gguf") -> Path:
    return Path(__file__).parents[1] / "data/oracles" / name
