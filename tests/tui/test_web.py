"""strata-tui web: the console in a browser, for whoever has the address and nobody else."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.program import start
from tests.tui.terminal import model

from browser import browser, missing, wait_for

pytest.importorskip("textual_serve", reason="not installed: textual-serve (the extra web has it)")
pytest.importorskip("strata_tui._core")

# Notes what the page's WebSocket brings: the terminal in it draws on a canvas.
LISTENS = """window.seen = ''; const Plain = WebSocket;
window.WebSocket = class extends Plain {
  constructor(...args) {
    super(...args);
    this.addEventListener('message', async (event) => {
      window.seen += typeof event.data == 'string' ? event.data : await new Response(event.data).text();
    });
  }
};"""

ELSEWHERE = """performance.getEntriesByType('resource').map((entry) => entry.name).filter(
  (name) => !name.startsWith(location.origin) && !name.startsWith('data:'))"""


@contextmanager
def served(*flags: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    process = start("web", "--port", "0", model(), "--stages", "2", *flags)
    assert process.stderr
    try:
        line = process.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+(?=;)", line)
        assert found, line
        yield process, found.group()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def status(url: str, **headers: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def consoles(server: int) -> list[int]:
    """Processes that the server has started."""
    with open(f"/proc/{server}/task/{server}/children") as file:
        return [int(pid) for pid in file.read().split()]


def test_nobody_else_gets_in() -> None:
    with served() as (_, address):
        base, token = address.split("/?token=")
        assert status(f"{base}/") == status(f"{base}/ws") == status(f"{base}/?token=guess") == 403
        assert status(f"{base}/static/js/textual.js") == 403
        assert status(address, Host="elsewhere.example") == 403
        assert status(address, Origin="http://elsewhere.example") == 403
        cookie = f"strata-token-{base.rsplit(':', 1)[1]}={token}"
        assert status(f"{base}/", Cookie=cookie) == 200
        assert status(f"{base}/ws", Cookie=cookie, Origin="http://elsewhere.example") == 403


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_console_in_a_browser() -> None:
    with served() as (process, address), browser() as page:

        def seen(text: str) -> bool:
            return bool(page.evaluate(f"(window.seen ?? '').includes({json.dumps(text)})"))

        def press(text: str) -> None:
            page.evaluate("document.querySelector('.xterm-helper-textarea')?.focus()")
            page.call("Input.insertText", text=text)

        page.call("Page.enable")
        page.call("Page.addScriptToEvaluateOnNewDocument", source=LISTENS)
        page.call("Page.navigate", url=address)
        wait_for(lambda: seen("live"), "the console")
        assert page.evaluate("location.href") == address.split("?")[0], "the token is gone from the address"
        assert page.evaluate("document.title") == "strata"
        assert page.evaluate(ELSEWHERE) == [], "nothing is fetched from another machine"
        press("p")
        wait_for(lambda: seen("decoding paused"), "a key to act")
        (console,) = consoles(process.pid)
        page.call("Page.navigate", url="about:blank")
        wait_for(lambda: not consoles(process.pid), "the console to end with its page")
        assert not os.path.exists(f"/proc/{console}") or console not in consoles(process.pid)


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_console_ends_with_its_server() -> None:
    with served() as (process, address), browser() as page:
        page.call("Page.navigate", url=address)
        (console,) = wait_for(lambda: consoles(process.pid), "the console")
        time.sleep(3)
        process.kill()
        wait_for(lambda: not os.path.exists(f"/proc/{console}") or is_zombie(console), "the console to end")


def is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "Z"
