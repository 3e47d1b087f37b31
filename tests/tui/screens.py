"""Every screen, of fixed recordings: the pictures of the manual, and what the tests compare them with.

    make pictures

writes them anew. A replay's clock stands still while it is looked at, so that a screen hangs on nothing but
the recording, the size and the theme.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from tests.tui.console import laid_out, until_open
from tests.tui.fake_engine import Clock
from tests.tui.live_pictures import LIVE
from tests.tui.picture import still, svg
from textual.pilot import Pilot

from strata_tui.record.compare import compare
from strata_tui.record.playback import Playback
from strata_tui.record.reading import open_recording
from strata_tui.tui.aligned import Aligned
from strata_tui.tui.app import Console
from strata_tui.tui.load import Load
from strata_tui.tui.opened import Opened
from strata_tui.tui.opening import open_tape
from strata_tui.tui.side_by_side import SideBySide
from strata_tui.tui.themed import Themed

TREE = Path(__file__).resolve().parents[2]
RECORDINGS = TREE / "tests/data/recordings"
MANUAL = TREE / "docs/images/screens"
OTHERS = TREE / "tests/tui/pictures"  # sizes that the manual does not show
DARK, LIGHT = "strata-dark", "strata-light"
SIZES = ((80, 24), (120, 40), (200, 50))
LARGEST = (300, 80)

Size = tuple[int, int]


class Picture(NamedTuple):
    """Of a screen."""

    name: str
    size: Size
    theme: str
    svg: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        folder = OTHERS if self.size == LARGEST else MANUAL
        width, height = self.size
        return folder / f"{self.name}-{width}x{height}-{self.theme.removeprefix('strata-')}.svg"


# -- a replay at a moment


@asynccontextmanager
async def replayed(recording: str, to_s: float) -> AsyncIterator[tuple[Console, Pilot[None]]]:
    """A console on a recording, played up to there; for the last half second the log was looked at."""
    clock = Clock()
    tape = Playback(open_recording(RECORDINGS / recording), 1.0, clock)
    app = Console(lambda load: open_tape(tape), auto_refresh=False)
    async with app.run_test(size=SIZES[1]) as pilot:
        await until_open(app, pilot)
        for ms, key in ((1000 * to_s - 500, "l"), (500, "l")):
            for _ in range(10):
                clock.advance(ms / 10)
                app.refresh_view()
            await pilot.press(key)
        app.refresh_view()
        yield app, pilot
    app.close()


IN_FLIGHT = {
    "text": ((), ()),
    "why": (("y",), ("y",)),
    "windows": (("v",), ("v",)),
    "log": (("l",), ("l",)),
    "model": (("a",), ("a",)),
    "help": (("question_mark",), ("escape",)),
    "palette": (("ctrl+p",), ("escape",)),
    "gap": (("u",), ()),
    "path": (("escape", "k"), ("k",)),
}
"""Screens of the recording with windows in flight, in this order: the keys that go there, and back."""

IN_FLIGHT_S, IN_TURN_S = 1.6, 6.0  # played up to there

IN_TURN = {"flip": (("y",), ("y",))}
"""Of the recording whose hand-off was overlapped from the middle on."""


async def of_replay(
    recording: str,
    to_s: float,
    screens: dict[str, tuple[tuple[str, ...], tuple[str, ...]]],
    theme: str,
    sizes,
) -> AsyncIterator[Picture]:
    async with replayed(recording, to_s) as (app, pilot):
        app.theme = theme
        for name, (there, back) in screens.items():
            await press(app, pilot, there)
            for size in sizes:
                yield await picture(app, pilot, name, size)
            await press(app, pilot, back)


async def press(app: Console, pilot: Pilot[None], keys: tuple[str, ...]) -> None:
    for key in keys:
        await pilot.press(key)
    await pilot.pause()
    if app.is_open:
        for thread in app._threads:  # facts of the model are read in one
            thread.join()
        await pilot.pause()
        app.refresh_view()


async def picture(app: Themed, pilot: Pilot[None], name: str, size: Size) -> Picture:
    await pilot.resize_terminal(*size)
    await pilot.pause()
    if isinstance(app, Console) and app.is_open:
        app.refresh_view()
    await laid_out(app, pilot)
    if isinstance(app, Console) and app.is_open:
        app.refresh_view()
    await still(app, pilot)
    return Picture(name, size, app.theme, svg(app))


# -- screens without a replay


async def side_by_side(theme: str, sizes) -> AsyncIterator[Picture]:
    a, b = (open_recording(RECORDINGS / f"{name}.strata") for name in ("in-turn", "in-flight"))
    app = SideBySide(Aligned(compare(a, b)))
    async with app.run_test(size=SIZES[1]) as pilot:
        app.theme = theme
        await pilot.press("u", "right")
        for size in sizes:
            yield await picture(app, pilot, "side-by-side", size)


class _Still:
    """A clock that a picture is taken by."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def posed() -> tuple[Load, _Still]:
    """A large model, a third of which is in memory."""
    clock = _Still()
    load = Load(clock)
    load.what = "Qwen3-30B-A3B-Q4_K_M.gguf"
    told = {
        "engine": (0.31, ""),
        "header": (0.02, "qwen3moe, 48 layers, 579 tensors, 17.3 GiB"),
        "tokenizer": (0.24, "151,936 tokens"),
    }
    for name, (took_s, text) in told.items():
        load.begin(name).text = text
        clock.now_s += took_s
    step = load.begin("weights")
    step.total, step.done, step.text = int(17.2 * 2**30), int(6.1 * 2**30), "stage 1"
    clock.now_s += 3.9
    return load, clock


async def opening(theme: str, sizes) -> AsyncIterator[Picture]:
    """While a model opens, and where it can't be opened."""

    def fail(load: Load) -> Opened:
        raise ValueError(
            "[gguf] Qwen3-30B-A3B-Q4_K_M.gguf: tensor blk.31.ffn_down_exps.weight at offset 11811160064 "
            "needs 176160768 bytes, file has 94371840 left"
        )

    app = Console(fail, auto_refresh=False)
    app.load, _ = posed()
    app._start_to_open = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=SIZES[1]) as pilot:
        app.theme = theme
        for size in sizes:
            yield await picture(app, pilot, "opening", size)
        app._open()
        await pilot.pause()
        for size in sizes:
            yield await picture(app, pilot, "problem", size)
    app.close()


async def pictures(theme: str, sizes) -> AsyncIterator[Picture]:
    """All of them."""
    for found in (
        of_replay("in-flight.strata", IN_FLIGHT_S, IN_FLIGHT, theme, sizes),
        of_replay("in-turn.strata", IN_TURN_S, IN_TURN, theme, sizes),
        side_by_side(theme, sizes),
        opening(theme, sizes),
    ):
        async for one in found:
            yield one


def words_of(picture: str) -> Iterator[str]:
    """The runs of a picture in their order, without their colours."""
    yield from re.findall(r'x="\d+" y="\d+" textLength="\d+">[^<]*<', picture)


async def write() -> None:
    """All pictures, and nothing beside them."""
    for folder in (MANUAL, OTHERS):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.svg"):
            path.unlink()
    for theme, sizes in ((DARK, (*SIZES, LARGEST)), (LIGHT, SIZES)):
        async for one in pictures(theme, sizes):
            keep(one.path, one.svg)
    for taken in LIVE.values():
        with without_colour() if "without_colour" in taken.__name__ else nullcontext():
            async for live in taken():
                keep(live.path, live.svg)


def keep(path: Path, picture: str) -> None:
    path.write_text(picture)
    print(path.relative_to(TREE), len(picture))


@contextmanager
def without_colour() -> Iterator[None]:
    """As long as this lasts."""
    os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NO_COLOR", None)


if __name__ == "__main__":
    asyncio.run(write())
