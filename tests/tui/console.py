"""A console on the fake engine, for tests: time passes only by `play`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened, opening
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import COLOUR, Glyphs


def screen_of(app: App[Any]) -> str:
    """The screen as plain text."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


@dataclass
class Seat:
    """Who sits before the screen."""

    app: Console
    pilot: Pilot[None]
    engine: FakeEngine

    async def play(self, ms: float, step_ms: float = 100) -> None:
        """Let time pass, a refresh a step."""
        for _ in range(int(ms / step_ms)):
            self.engine.clock.advance(step_ms)
            if self.app.is_running:
                self.app.refresh_view()
                await laid_out(self.app, self.pilot)
        await self.pilot.pause()

    async def press(self, *keys: str, ms: float = 100) -> None:
        """Press keys, then let the next refreshes show what they did."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        await self.play(ms)

    async def export(self) -> None:
        """A while of decoding, exported: the file is there and told of."""
        await self.play(500)
        await self.press("e", ms=0)
        for thread in self.app._threads:
            await asyncio.to_thread(thread.join)
        await self.play(100)

    @property
    def screen(self) -> str:
        """The screen as plain text."""
        return screen_of(self.app)

    @property
    def notes(self) -> str:
        """What the console has told."""
        return "\n".join(note.message for note in self.app._notifications)

    @property
    def text(self) -> str:
        return self.app.face.text_panel.text

    @property
    def prompt(self) -> Input:
        return self.app.face.prompt


async def until_open(app: Console, pilot: Pilot[None]) -> None:
    """The model is opened in a thread."""
    for _ in range(500):
        if app.is_open or app.open_error:
            break
        await asyncio.sleep(0.005)
    await pilot.pause()
    await laid_out(app, pilot)


async def laid_out(app: Console, pilot: Pilot[None]) -> None:
    """Every widget has the size that its contents ask for, whatever the machine has been busy with.

    Textual lays out when it is idle, and where the text panel's lines stand depends on when they came:
    without this a picture depends on the load.
    """
    screen = app.screen
    for _ in range(20):
        sizes = [widget.size for widget in screen.walk_children()]
        screen._refresh_layout()
        await pilot._wait_for_screen()  # each widget has been told of its size
        if sizes == [widget.size for widget in screen.walk_children()]:
            return


@asynccontextmanager
async def console(
    engine: FakeEngine | None = None, size: tuple[int, int] = (120, 40), glyphs: Glyphs = COLOUR, **model: Any
) -> AsyncIterator[Seat]:
    """A console that has just opened its model; `model` changes fields of `Opened`."""
    engine = engine or FakeEngine()
    app = Console(opening(opened(engine, **model)), glyphs, auto_refresh=False)
    async with app.run_test(size=size) as pilot:
        await until_open(app, pilot)
        yield Seat(app, pilot, engine)
    app.close()
    assert engine.closed
