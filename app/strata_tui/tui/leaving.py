"""A console that is told to end does so soon, whatever is queued: keys, or output that nobody reads."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
from types import FrameType, TracebackType
from typing import Any, NoReturn, Protocol

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
TERMINAL = 2  # textual draws on stderr
PATIENCE_S = 1.0
RESTORES = (
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"  # no mouse
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Pastes and lines as usual, keys too, the main screen, the cursor; harmless where it is so already."""


class Leaves(Protocol):
    """A console, as far as this goes."""

    def leave_at_once(self, return_code: int) -> None:
        """Called by a signal handler: it must not wait for anything."""

    def close(self) -> None:
        """Save what is recorded, close the engine; idempotent."""


class WayOut:
    """While the app runs, a signal ends it by its own way out, with the exit code of its number.

    The handlers are Python's own: asyncio's would wait for a loop that may hang in a write. An app that has
    not left after PATIENCE_S hangs in one, or has too much to do; then a thread ends the process. Either way
    what is recorded is saved and the terminal restored, and then the process ends at once: threads that read
    and write a terminal that has gone would hold up any other end.
    """

    def __init__(self, app: Leaves) -> None:
        self._app = app
        self._code = 0  # that a signal asks for
        self._left = threading.Event()
        self._modes = termios.tcgetattr(TERMINAL) if os.isatty(TERMINAL) else None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._take)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._left.set()
        if self._code:
            self._end()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _: FrameType | None) -> None:
        if not self._code:
            self._code = 128 + number
            self._app.leave_at_once(self._code)
            threading.Thread(target=self._insist, daemon=True).start()

    def _insist(self) -> None:
        if not self._left.wait(PATIENCE_S):
            self._end()

    def _end(self) -> None:
        self._app.close()
        if self._modes is not None:
            _restore(self._modes)
        os._exit(self._code)


def end_process(code: int) -> NoReturn:
    """Now, whatever other threads are at."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _restore(modes: list[Any]) -> None:
    try:
        termios.tcsetattr(TERMINAL, termios.TCSANOW, modes)
        if select.select([], [TERMINAL], [], 0)[1]:  # nobody reads: nothing can be told
            os.write(TERMINAL, RESTORES)
    except (termios.error, OSError):
        pass  # the terminal has gone


class Audience:
    """Who looks at the console: a terminal, or the server that shows it in a browser."""

    def __init__(self) -> None:
        self._terminal = os.isatty(TERMINAL)
        self._server = os.getppid() if os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver") else 0

    @property
    def has_gone(self) -> bool:
        """Without a word: whoever closed it need not have been able to send a signal."""
        if self._server:
            return os.getppid() != self._server
        return self._terminal and not os.isatty(TERMINAL)
