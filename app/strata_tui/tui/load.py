"""What is done until a model is open, and how far: written by the thread that opens, read by the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STEPS = {
    "engine": "the native module",
    "header": "what the file holds and where",
    "tokenizer": "the file's vocabulary",
    "weights": "into memory, stage after stage",
    "copies": "of weights that are not run as they are stored",
    "memory": "K/V cells, states and buffers of the stages",
    "prompt": "the first one, in tokens",
}
"""In their order, and what they are about."""


class Cancelled(Exception):
    """The console is left before its model is open."""


@dataclass
class Step:
    """One of STEPS.

    Attributes:
        began_s, took_s: on the monotonic clock; None = not yet.
        text: what is known of it; of a step with a bar it stands behind that.
        done, total: bytes; total 0 = it has no bar.
        measure: tells `done` where nobody counts it.
    """

    name: str
    began_s: float | None = None
    took_s: float | None = None
    text: str = ""
    done: int = 0
    total: int = 0
    measure: Callable[[], int] | None = None

    def look(self) -> int:
        """Bytes by now."""
        if self.measure is not None and self.took_s is None:
            self.done = min(max(self.done, self.measure()), self.total)
        return self.done


class Load:
    """The steps of one opening.

    Attributes:
        what: is opened, in a few words.
        at: the present step; None before the first and behind the last one.
        failed: the present step is the one that failed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.what = ""
        self.steps = tuple(Step(name) for name in STEPS)
        self.at: int | None = None
        self.failed = False
        self.clock = clock
        self._cancelled = threading.Event()

    def begin(self, name: str) -> Step:
        """The step before has ended; those in between have nothing to do.

        Raises:
            Cancelled: nobody waits for it any more.
        """
        self.check()
        self.end()
        self.at = list(STEPS).index(name)
        step = self.steps[self.at]
        step.began_s = self.clock()
        return step

    def end(self) -> None:
        """The present step has ended."""
        if self.at is not None:
            step = self.steps[self.at]
            step.took_s = self.clock() - (step.began_s or 0.0)
            self.at = None

    def check(self) -> None:
        """Raise Cancelled where the console is being left."""
        if self._cancelled.is_set():
            raise Cancelled

    def cancel(self) -> None:
        """From any thread: end at the next piece."""
        self._cancelled.set()


def anonymous_bytes() -> int:
    """What this process holds in memory beside mapped files; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if "RssAnon" in line), 0)
