"""Pictures of live consoles on the fake engine: what a replay of a recording does not show."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.tui.console import Seat, console, laid_out
from tests.tui.fake_engine import FakeEngine
from tests.tui.picture import still, svg

from strata_tui.tui.glyphs import ASCII, COLOUR, MONO, Glyphs

FOLDER = Path(__file__).parent / "pictures"
SIZES = ((80, 24), (120, 40), (200, 50))


class Live(NamedTuple):
    """A picture, under its name."""

    name: str
    svg: str

    @property
    def path(self) -> Path:
        return FOLDER / f"live-{self.name}.svg"


@asynccontextmanager
async def played(
    engine: FakeEngine,
    ms: float = 1500,
    size: tuple[int, int] = (120, 40),
    glyphs: Glyphs = COLOUR,
    **model: Any,
) -> AsyncIterator[Seat]:
    async with console(engine, size, glyphs, **model) as seat:
        await seat.play(ms)
        yield seat


async def taken(seat: Seat, name: str, *keys: str, ms: float = 0) -> Live:
    """Behind keys and some time."""
    await seat.press(*keys, ms=0)
    await seat.play(ms)
    await laid_out(seat.app, seat.pilot)
    seat.app.refresh_view()
    await still(seat.app, seat.pilot)
    return Live(name, svg(seat.app))


def in_flight(n_stages: int) -> FakeEngine:
    engine = FakeEngine(stage_ms=(3.0,) * n_stages, acceptance=0.85)
    engine.switches.pipeline_windows = n_stages
    return engine


async def serial() -> AsyncIterator[Live]:
    async with played(FakeEngine(), chat=True, chat_prompts=("Tell me of the sea.",)) as seat:
        for width, height in SIZES:
            await seat.pilot.resize_terminal(width, height)
            yield await taken(seat, f"serial-{width}x{height}", ms=100)
        await seat.pilot.resize_terminal(120, 40)
        yield await taken(seat, "typed", "n", *"a prompt of mine", ms=100)
        yield await taken(seat, "frozen-after-a-flip", "escape", "o", "down", "space", ms=150)


async def overlapped() -> AsyncIterator[Live]:
    engine = FakeEngine(stage_ms=(2.0, 2.5, 2.0, 3.0))
    engine.switches.overlap = True
    async with played(engine, size=(80, 24)) as seat:
        yield await taken(seat, "overlapped")


async def themes() -> AsyncIterator[Live]:
    async with played(in_flight(4)) as seat:
        for theme in ("strata-light", "strata-contrast", "strata-ansi"):
            seat.app.theme = theme
            yield await taken(seat, f"four-in-flight-{theme.removeprefix('strata-')}")


async def measured() -> AsyncIterator[Live]:
    async with played(FakeEngine(acceptance=0.85), ms=2000) as seat:
        yield await taken(seat, "flipped-on", "w", "down", "down", ms=150)
        yield await taken(seat, "what-a-flip-gave", "f", "y", ms=1500)
        yield await taken(seat, "by-turns", "b", ms=4000)


async def held_back() -> AsyncIterator[Live]:
    engine = FakeEngine()
    engine.switches.rate = 40
    async with played(engine) as seat:
        yield await taken(seat, "throttled")


async def failed() -> AsyncIterator[Live]:
    async with played(FakeEngine(fail_at=30), size=(80, 24)) as seat:
        yield await taken(seat, "an-error-in-a-stage")


async def _by_shape(glyphs: Glyphs, name: str) -> AsyncIterator[Live]:
    async with played(in_flight(3), size=(80, 24), glyphs=glyphs) as seat:
        yield await taken(seat, name)
        yield await taken(seat, f"{name}-why", "y", ms=300)
        yield await taken(seat, f"{name}-windows", "v")
        yield await taken(seat, f"{name}-gap", "v", "u")
        yield await taken(seat, f"{name}-span", "f", "space", "i", "right")
        yield await taken(seat, f"{name}-help", "escape", "question_mark")


async def ascii_without_colour() -> AsyncIterator[Live]:
    async for one in _by_shape(ASCII, "ascii"):
        yield one


async def mono_without_colour() -> AsyncIterator[Live]:
    async for one in _by_shape(MONO, "mono"):
        yield one


LIVE: dict[str, Callable[[], AsyncIterator[Live]]] = {
    "serial": serial,
    "overlapped": overlapped,
    "themes": themes,
    "measured": measured,
    "held-back": held_back,
    "failed": failed,
    "ascii": ascii_without_colour,
    "mono": mono_without_colour,
}
