"""Every screen equals its picture, dark at four sizes; the light ones of the manual are the same words.

Where one has changed on purpose: make pictures, and look at them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tui import screens
from tests.tui.live_pictures import Live
from tests.tui.screens import (
    DARK,
    IN_FLIGHT,
    IN_TURN,
    LARGEST,
    LIGHT,
    MANUAL,
    OTHERS,
    SIZES,
    Picture,
    words_of,
)

from strata_tui.tui.commands import COMMANDS

ALL = (*SIZES, LARGEST)
NAMES = {*IN_FLIGHT, *IN_TURN, "side-by-side", "opening", "problem"}


def differs(picture: Picture | Live, folder: Path) -> str:
    """Where to look; "" = it is as it was."""
    kept = picture.path.read_text() if picture.path.exists() else ""
    if kept == picture.svg:
        return ""
    now = folder / picture.path.name
    now.write_text(picture.svg)
    was, words = set(words_of(kept)), list(words_of(picture.svg))
    new = [word.split(">")[1].rstrip("<") for word in words if word not in was]
    return f"{now} is not {picture.path}; new in it: {new[:8]}"


@pytest.mark.parametrize(
    "taken",
    [
        lambda: screens.of_replay("in-flight.strata", screens.IN_FLIGHT_S, IN_FLIGHT, DARK, ALL),
        lambda: screens.of_replay("in-turn.strata", screens.IN_TURN_S, IN_TURN, DARK, ALL),
        lambda: screens.side_by_side(DARK, ALL),
        lambda: screens.opening(DARK, ALL),
        lambda: screens.of_replay("in-turn.strata", screens.IN_TURN_S, IN_TURN, LIGHT, SIZES),
    ],
    ids=["in-flight", "in-turn", "side-by-side", "opening", "light"],
)
async def test_every_screen_is_as_it_was(taken: Callable, tmp_path: Path) -> None:
    different = [told async for picture in taken() if (told := differs(picture, tmp_path))]
    assert different == []


def test_there_is_a_picture_of_each_screen_size_and_theme_and_no_other() -> None:
    dark = {f"{name}-{w}x{h}-dark.svg" for name in NAMES for w, h in SIZES}
    light = {f"{name}-{w}x{h}-light.svg" for name in NAMES for w, h in SIZES}
    assert {path.name for path in MANUAL.iterdir()} == dark | light
    largest = {f"{name}-{LARGEST[0]}x{LARGEST[1]}-dark.svg" for name in NAMES}
    others = {path.name for path in OTHERS.iterdir()}
    assert largest == {name for name in others if not name.startswith("live-")}


def test_the_light_ones_say_the_same() -> None:
    for dark in MANUAL.glob("*-dark.svg"):
        light = dark.with_name(dark.name.replace("-dark", "-light"))
        assert list(words_of(light.read_text())) == list(words_of(dark.read_text())), dark.name


def test_they_stay_small() -> None:
    pictures = [*MANUAL.iterdir(), *OTHERS.iterdir()]
    assert sum(path.stat().st_size for path in pictures) < 3_000_000


def test_each_panel_that_a_key_opens_is_among_the_screens() -> None:
    keys = {key for there, _ in (*IN_FLIGHT.values(), *IN_TURN.values()) for key in there}
    panels = {
        command.keys for command in COMMANDS if command.name in ("why", "windows", "log", "model", "help")
    }
    assert panels <= keys
