"""SVG snapshots of the fake engine's console at three sizes."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.tui.console import Seat, until_open
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened, opening
from textual.pilot import Pilot

from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO, Glyphs

SIZES = [(80, 24), (120, 40), (200, 50)]
Compare = Callable[..., bool]


def pictured(
    compare: Compare,
    engine: FakeEngine,
    size: tuple[int, int],
    *keys: str,
    glyphs: Glyphs = COLOUR,
    theme: str = "strata-dark",
    ms: float = 2000,
    **model: Any,
) -> bool:
    app = Console(opening(opened(engine, **model)), glyphs, auto_refresh=False)

    async def before(pilot: Pilot[None]) -> None:
        await until_open(app, pilot)
        app.theme = theme
        seat = Seat(app, pilot, engine)
        await seat.play(ms)
        if keys:
            await seat.press(*keys, ms=0)
            await seat.play(150)

    same = compare(app, terminal_size=size, run_before=before)
    app.close()
    return same


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_two_stages_serial(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, FakeEngine(), size)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_four_stages_overlapped(snap_compare: Compare, size: tuple[int, int]) -> None:
    engine = FakeEngine(stage_ms=(2.0, 2.5, 2.0, 3.0))
    engine.switches.overlap = True
    assert pictured(snap_compare, engine, size)


def test_frozen_after_a_flip(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(), (120, 40), "o", "down", "space")


def test_throttled(snap_compare: Compare) -> None:
    engine = FakeEngine()
    engine.switches.rate = 40
    assert pictured(snap_compare, engine, (120, 40))


def test_an_error_in_a_stage(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(fail_at=30), (80, 24))


def test_help(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(), (120, 40), "question_mark")


def test_light_theme(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(stage_ms=(2.0, 2.0, 2.0)), (120, 40), theme="strata-light")


def test_ascii(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(), (80, 24), glyphs=ASCII)


def test_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert pictured(snap_compare, FakeEngine(), (80, 24), glyphs=MONO)
