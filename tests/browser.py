"""A headless Chromium, spoken to over its DevTools protocol; it ends with the context manager."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
           --disable-component-update --disable-sync --disable-dev-shm-usage"""


def chromium() -> str | None:
    """The browser's path, None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing(*packages: str) -> str:
    """Why a page can't be had here, "" if it can."""
    if chromium() is None:
        return "no Chromium on this machine (Debian: apt install chromium)"
    needed = [name for name in (*packages, "websockets") if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(needed)} (the test extra has them)" if needed else ""


class Page:
    """The browser's page."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._calls = 0

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited; None while the page is changing."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"in the page: {answer['exceptionDetails']}")
        return answer.get("result", {}).get("value")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(PATIENCE_S))
            if message.get("id") == self._calls:
                result: dict[str, Any] = message.get("result", {})
                return result


@contextmanager
def browser() -> Iterator[Page]:
    """An empty page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = f"{FLAGS} --remote-debugging-port=0 about:blank".split()
        process = subprocess.Popen(
            [str(chromium()), f"--user-data-dir={profile}", *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with _page(Path(profile)) as socket:
                yield Page(socket)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def _page(profile: Path) -> Iterator[Any]:
    """A connection to the browser's page."""
    from websockets.sync.client import connect

    port_file = profile / "DevToolsActivePort"
    wait_for(lambda: port_file.exists() and port_file.read_text(), "Chromium to start")
    port = port_file.read_text().split()[0]

    def pages() -> list[Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as answer:
            return [page for page in json.load(answer) if page["type"] == "page"]

    page = wait_for(pages, "a page")[0]
    with connect(page["webSocketDebuggerUrl"], max_size=None, open_timeout=PATIENCE_S, proxy=None) as socket:
        yield socket


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S:g} s for {what}")
