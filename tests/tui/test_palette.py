"""The palette of commands, with keys that come faster than its list."""

from collections.abc import Sequence

import pytest
from tests.tui.console import Seat, console
from textual import events

from strata_tui.tui.palette import Palette


async def burst(seat: Seat, keys: Sequence[str]) -> None:
    """None waits for what the one before does."""
    for key in keys:
        seat.app.post_message(events.Key(key, key if len(key) == 1 else None))
    for _ in range(5):
        await seat.pilot.pause()


@pytest.mark.parametrize("enters", [2, 5])
async def test_a_command_is_run_once_however_often_enter_is_typed(enters: int) -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        await seat.press("ctrl+p", ms=300)
        assert isinstance(seat.app.screen, Palette)
        await seat.press(*"overlap", ms=300)
        await burst(seat, ["enter"] * enters)
        await seat.play(300)
        assert not isinstance(seat.app.screen, Palette) and len(seat.app.screen_stack) == 1
        assert seat.engine.switches.overlap
        assert seat.app.is_running


@pytest.mark.parametrize("key", ["pagedown", "up", "enter"])
@pytest.mark.parametrize("size", [(120, 40), (10, 3)])
async def test_keys_before_its_list_is_there_do_no_harm(key: str, size: tuple[int, int]) -> None:
    async with console(max_tokens=10_000, size=size) as seat:
        await seat.play(100)
        await burst(seat, ["ctrl+p", key, key, key])
        await seat.press("pagedown", ms=100)
        while len(seat.app.screen_stack) > 1:
            await seat.press("escape", ms=100)
        overlap = seat.engine.switches.overlap
        await seat.press("escape", "o")
        assert seat.engine.switches.overlap != overlap, "the console takes keys as before"
