"""The line of keys shows whole items, and the help that has the rest."""

import pytest
from tests.tui.console import console

from strata_tui.tui.key_bar import KeyBar

ITEMS = [("y", "why", "why"), ("v", "windows", "windows"), ("?", "help", "help"), ("q", "quit", "quit")]


def words(width: int) -> list[str]:
    return [word for _, word, _ in KeyBar(ITEMS, ("quit", "help")).shown(width)]


def test_as_many_as_fit_whole() -> None:
    assert words(100) == ["why", "windows", "help", "quit"]
    whole = sum(len(key) + len(word) + 3 for key, word, _ in ITEMS)
    assert words(whole) == ["why", "windows", "help", "quit"]
    assert words(whole - 1) == ["why", "quit", "more"]
    assert words(5) == ["quit", "more"]


@pytest.mark.parametrize("width", range(80, 200, 8))
async def test_no_item_is_cut(width: int) -> None:
    async with console(size=(width, 24)) as seat:
        line = seat.screen.split("\n")[-1]
        bar = seat.app.screen.query_one(KeyBar)
        shown = bar.shown(width)
        assert line.split() == " ".join(f"{key} {word}" for key, word, _ in shown).split()
        assert ("? more" in line) == (len(shown) < len(bar._items))
        assert "q quit" in line


async def test_a_click_on_more_opens_the_help() -> None:
    async with console(size=(80, 24)) as seat:
        line = seat.screen.split("\n")[-1]
        await seat.pilot.click(KeyBar, offset=(line.index("more"), 0))
        await seat.pilot.pause()
        assert "Help" in type(seat.app.screen).__name__
