"""The console in a browser on this machine, through textual-serve: a process of its own for each page."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve import server
from textual_serve.app_service import AppService

HOST = "127.0.0.1"
COOKIE = "strata-token"
PATIENCE_S = 3.0  # for a console to end by itself
_PROGRAM = "from strata_tui.cli import main; main()"


class Service(AppService):
    """A console behind a page. It ends with the page, even where it hangs in a write that nobody reads."""

    async def stop(self) -> None:
        await super().stop()
        process = self._process
        if process is None:
            return
        try:
            await asyncio.wait_for(process.wait(), PATIENCE_S)
        except TimeoutError:
            process.send_signal(signal.SIGHUP)  # the one that is the console's own: see leaving.py
            await process.wait()


server.AppService = Service  # type: ignore[attr-defined]  # which the server makes for each page


class WebServer(server.Server):
    """Serves to whoever has the address that it printed, and to no page of another site.

    A page anywhere may open a WebSocket to the loopback, and so may other people of this machine; either
    would hold the keys of a program that writes files. So each request has to carry the token of the address
    or the cookie that it was changed for, name this host, and come from this origin.

    Args:
        command: the arguments of `strata-tui open`.
        port: 0 takes one that is free.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, command: Sequence[str], port: int) -> None:
        port = _free_port(port)
        program = [sys.executable, "-c", _PROGRAM, "open", *command]
        super().__init__(
            f"exec {shlex.join(program)}",
            host=HOST,
            port=port,
            title="strata",
            templates_path=Path(__file__).parent / "web_page",
        )
        self.token = secrets.token_urlsafe(24)
        self._cookie = f"{COOKIE}-{port}"  # ports of one host share their cookies

    @property
    def address(self) -> str:
        """What to open."""
        return f"{self.public_url}/?token={self.token}"

    def initialize_logging(self) -> None:
        """None: its lines go to standard output."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard())
        return app

    async def on_startup(self, app: web.Application) -> None:
        self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """Where it is, once it is there."""
        while True:
            try:
                _, writer = await asyncio.open_connection(HOST, self.port)
                break
            except OSError:
                await asyncio.sleep(0.02)
        writer.close()
        print(f"the console is at {self.address}; Ctrl-C ends it", file=sys.stderr, flush=True)

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.host != f"{HOST}:{self.port}":
                raise web.HTTPForbidden(text=f"expected host {HOST}:{self.port}")
            if request.headers.get("Origin", self.public_url) != self.public_url:
                raise web.HTTPForbidden(text=f"expected a page of {self.public_url}")
            given = request.query.get("token")
            if given is not None and secrets.compare_digest(given.encode(), self.token.encode()):
                entered = web.HTTPFound("/")  # so that the token is in no history and no Referer
                entered.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict")
                return entered
            held = request.cookies.get(self._cookie, "")
            if not secrets.compare_digest(held.encode(), self.token.encode()):
                raise web.HTTPForbidden(text="expected the address that strata-tui web printed")
            answer = await handler(request)
            if request.path == "/":  # a page that the browser keeps for its back button keeps its console
                answer.headers["Cache-Control"] = "no-store"
            return answer

        return guard


def serve(command: Sequence[str], port: int) -> None:
    """Until it is interrupted; then no console is left.

    Raises:
        OSError: the port is taken.
    """
    WebServer(command, port).serve()


def _free_port(port: int) -> int:
    """This one, or any; asked before an address is told that nobody serves."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])
