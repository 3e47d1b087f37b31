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
    after_ms: float = 150,
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
            await seat.play(after_ms)

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


def in_flight(n_stages: int = 2) -> FakeEngine:
    engine = FakeEngine(stage_ms=(3.0,) * n_stages, acceptance=0.85)
    engine.switches.pipeline_windows = n_stages
    return engine


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_two_windows_in_flight(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, in_flight(), size)


@pytest.mark.parametrize("theme", ["strata-dark", "strata-light", "strata-ansi"])
def test_four_windows_in_flight(snap_compare: Compare, theme: str) -> None:
    assert pictured(snap_compare, in_flight(4), (120, 40), theme=theme)


@pytest.mark.parametrize("glyphs", [ASCII, MONO], ids=["ascii", "mono"])
def test_windows_in_flight_without_colour(
    snap_compare: Compare, glyphs: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert pictured(snap_compare, in_flight(3), (80, 24), glyphs=glyphs)


def test_windows_in_flight_flipped_on(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(acceptance=0.85), (120, 40), "w", "down", "down", "space")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_why_two_serial_stages_are_slow(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, FakeEngine(), size, "y", after_ms=600)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_why_four_windows_in_flight_wait_for_one_stage(snap_compare: Compare, size: tuple[int, int]) -> None:
    engine = FakeEngine(stage_ms=(2.0, 2.5, 2.0, 5.0), acceptance=0.85)
    engine.switches.pipeline_windows = 4
    assert pictured(snap_compare, engine, size, "y", after_ms=600)


@pytest.mark.parametrize("glyphs", [ASCII, MONO], ids=["ascii", "mono"])
def test_why_without_colour(snap_compare: Compare, glyphs: Glyphs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert pictured(snap_compare, in_flight(3), (80, 24), "y", glyphs=glyphs, after_ms=600)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_windows_as_a_table(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, in_flight(), size, "v")


@pytest.mark.parametrize("glyphs", [ASCII, MONO], ids=["ascii", "mono"])
def test_the_table_without_colour(
    snap_compare: Compare, glyphs: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert pictured(snap_compare, in_flight(3), (80, 24), "v", glyphs=glyphs)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_what_a_flip_gave(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert pictured(snap_compare, FakeEngine(acceptance=0.85), size, "w", "y", after_ms=1500)


def test_two_settings_by_turns(snap_compare: Compare) -> None:
    assert pictured(snap_compare, FakeEngine(acceptance=0.85), (120, 40), "w", "b", after_ms=4000)


@pytest.mark.parametrize(
    "keys", [("u",), ("space", "k"), ("space", "i", "right")], ids=["gap", "path", "span"]
)
@pytest.mark.parametrize("glyphs", [COLOUR, ASCII], ids=["colour", "ascii"])
def test_looking_closer(snap_compare: Compare, keys: tuple[str, ...], glyphs: Glyphs) -> None:
    assert pictured(snap_compare, in_flight(3), (120, 40), *keys, glyphs=glyphs, after_ms=200)


def test_the_log(snap_compare: Compare) -> None:
    assert pictured(snap_compare, in_flight(), (120, 40), "l", ms=600, after_ms=400)


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
