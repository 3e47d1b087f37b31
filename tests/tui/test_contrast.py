"""Every word on every screen is told apart from what is behind it, in every theme whose colours are known."""

from collections.abc import Iterator

import pytest
from rich.segment import Segment
from tests.tui.console import Seat, console
from tests.tui.fake_engine import FakeEngine
from textual.app import App
from textual.command import CommandPalette

from strata_tui.tui.app import Console
from strata_tui.tui.contrast import contrast
from strata_tui.tui.load import Load
from strata_tui.tui.opened import Opened
from strata_tui.tui.themes import THEMES

TEXT, LARGE = 4.5, 7.0
KNOWN = [theme.name for theme in THEMES if not theme.ansi]


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        ((0, 0, 0), (255, 255, 255), 21.0),
        ((255, 255, 255), (255, 255, 255), 1.0),
        ((119, 119, 119), (255, 255, 255), 4.48),
        ((255, 0, 0), (255, 255, 255), 4.0),
    ],
)
def test_the_ratio_is_that_of_wcag(a, b, ratio: float) -> None:
    assert contrast(a, b) == contrast(b, a) == pytest.approx(ratio, abs=0.005)


def words(app: App) -> Iterator[Segment]:
    """Of what is looked at: behind the palette the screen is dimmed on purpose."""
    strips = app.screen._compositor.render_strips()
    if isinstance(app.screen, CommandPalette):
        at = app.screen.query_one("#--container").region
        strips = [strip.crop(at.x, at.right) for strip in strips[at.y : at.bottom]]
    for strip in strips:
        yield from (segment for segment in strip if any(c.isalnum() for c in segment.text))


def faint(app: App, least: float) -> list[str]:
    """Words that are not told apart."""
    found = []
    for text, style, _ in words(app):
        assert style is not None and style.color is not None and style.bgcolor is not None, text
        assert not style.dim, text
        ratio = contrast(style.color.triplet, style.bgcolor.triplet)
        if ratio < least:
            found.append(f"{text.strip()!r} {style.color.name} on {style.bgcolor.name}: {ratio:.2f}")
    return found


async def screens(seat: Seat) -> Iterator[str]:
    """One after another, each as it is looked at."""
    for keys in ("", "y", "v", "l", "a", "k", "u", "i"):
        await seat.press(*keys, ms=300)
        yield keys or "text"
    await seat.press("escape", "f", "n", ms=300)
    yield "the prompt, empty"
    await seat.press(*"some", "escape", "h", "C", "b", "e" if not seat.notes else "b", ms=300)
    yield "notes"
    await seat.press("question_mark", ms=0)
    yield "help"
    await seat.press("escape", "ctrl+p", ms=0)
    await seat.pilot.pause(0.3)
    yield "palette"
    await seat.press("escape", "p", "r", ms=200)
    yield "paused"


@pytest.mark.parametrize("theme", KNOWN)
async def test_every_word_is_legible(theme: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = FakeEngine(stage_ms=(2.0, 2.5, 2.0), acceptance=0.85)
    engine.switches.pipeline_windows = 3
    engine.emulated = True
    least = LARGE if theme == "strata-contrast" else TEXT
    async with console(engine, size=(160, 44), chat_prompts=("Tell me",), chat=True) as seat:
        seat.app.theme = theme
        await seat.play(1500)
        await seat.press("o", ms=600)
        async for screen in screens(seat):
            assert faint(seat.app, least) == [], screen


@pytest.mark.parametrize("theme", KNOWN)
async def test_so_is_what_stands_there_before_a_model_does(theme: str) -> None:
    def broken(load: Load) -> Opened:
        load.begin("weights")
        raise ValueError("[gguf] cut")

    app = Console(broken, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        app.theme = theme
        for _ in range(100):
            await pilot.pause(0.01)
            if app.open_error is not None:
                break
        await pilot.pause()
        assert faint(app, TEXT) == []
    app.close()


@pytest.mark.parametrize("name", ["lane-run-even", "lane-run-odd", "lane-wait", "lane-lost", "lane-commit"])
@pytest.mark.parametrize("theme", THEMES[:3], ids=lambda theme: theme.name)
def test_shapes_of_work_are_seen(theme, name: str) -> None:
    def triplet(colour: str):
        return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))

    assert contrast(triplet(theme.variables[name]), triplet(theme.background)) >= 3
