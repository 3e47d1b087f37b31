"""What the console tells for some seconds: it covers nothing that is acted on, and says what can be done."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.tui.console import Seat, console, laid_out, until_open
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened, opening
from textual.widgets._toast import Toast

from strata_tui.tui.app import Console
from strata_tui.tui.commands import COMMANDS


@asynccontextmanager
async def with_toasts(size: tuple[int, int]) -> AsyncIterator[Seat]:
    engine = FakeEngine(acceptance=0.85)
    app = Console(opening(opened(engine)), auto_refresh=False)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until_open(app, pilot)
        yield Seat(app, pilot, engine)
    app.close()


@pytest.mark.parametrize("size", [(80, 24), (109, 33), (110, 34), (200, 50)])
async def test_what_is_told_lies_above_the_prompt_the_flip_the_switches_and_the_keys(
    size: tuple[int, int],
) -> None:
    async with with_toasts(size) as seat:
        await seat.play(1000)
        await seat.press("w", ms=2000)
        for line in ("short", "a path that goes on and on " * 6):
            seat.app.tell(line)
        await seat.play(100)
        await laid_out(seat.app, seat.pilot)
        toasts = [toast.region for toast in seat.app.screen.query(Toast)]
        face = seat.app.face
        assert len(toasts) == 2 and face.flip_line.display
        for below in (face.asking, face.flip_line, face.switch_bar, seat.app.front.key_bar):
            assert below.region.height
            assert max(toast.bottom for toast in toasts) <= below.region.y, below


async def test_no_file_where_there_is_nothing_to_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with console() as seat:
        assert not len(seat.app.sitting.view.events)
        await seat.press("e", ms=0)
        assert seat.notes == "nothing to export yet: there are no events so far"
        assert not list(tmp_path.iterdir()) and not seat.app.face.log_panel.text


async def test_where_a_file_is_stays_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with console(size=(200, 50)) as seat:
        await seat.export()
        (path,) = tmp_path.iterdir()
        assert "opens in ui.perfetto.dev or any Chrome trace viewer" in seat.notes

        def log() -> str:
            return "".join(seat.app.face.log_panel.text.split())

        assert str(path) in log()
        seat.app.face.begin_anew(seat.app._kept)
        assert str(path) in log(), "a replay that goes back keeps it"


async def test_a_command_keeps_its_capitals_in_the_palette() -> None:
    async with console() as seat:
        titles = [command.title for command in seat.app.get_system_commands(seat.app.screen)]
        assert "A/B: the last flip's two settings by turns" in titles
        for command in COMMANDS:
            if command.listed:
                assert any(title[1:] == command.words[1:] for title in titles), command.name
