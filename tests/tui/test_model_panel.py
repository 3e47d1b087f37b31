"""Model and stages on the screen, and the switches in force as a profile."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.tui.console import console, until_open
from tests.tui.terminal import model

from strata_tui.options import Placement, RunOptions
from strata_tui.profile import load_profile
from strata_tui.terminal_text import size
from strata_tui.tui.about import About, StageAbout
from strata_tui.tui.app import Console
from strata_tui.tui.model_panel import lines
from strata_tui.tui.opening import open_model

STAGES = (
    StageAbout("0-5", "4 gdn, 2 attention; cpu 1 thread", 3_000_000, 2_000_000, 40_000, 0, 100),
    StageAbout("6-11", "6 attention; cpu 1 thread", 1_000_000, 500_000, 0, 0, 900),
)


def plain(about: About, width: int) -> list[str]:
    return ["".join(text for _, text in line) for line in lines(about, width)]


def test_what_the_stages_hold_is_summed() -> None:
    told = plain(About((("model", "Pebble"),), STAGES), 80)
    (total,) = [line for line in told if line.startswith(" all")]
    assert total.split()[1:] == ["3.8", "MiB", "2.4", "MiB", "39", "KiB", "0", "B", "1", "KiB"]
    assert "4 gdn, 2 attention" in "\n".join(told) and told[-1].split() == ["model", "Pebble"]


def test_what_a_recording_does_not_know_is_a_dash() -> None:
    told = plain(About((), (StageAbout("0-5", "cpu"), StageAbout("6-11", "cpu"))), 80)
    assert told[1].split() == ["0", "0-5", "-", "-", "-", "-", "-"]
    assert told[5].split() == ["all", "-", "-", "-", "-", "-"]


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 B"), (999, "999 B"), (2048, "2 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")]
)
def test_sizes(n: int, text: str) -> None:
    assert size(n) == text


def test_a_hostile_name_moves_nothing() -> None:
    about = About((("model", "a\x1b[2J\u202eb" + "c" * 300),), (replace(STAGES[0], what="x\x07\ny"),))
    told = plain(about, 80)
    assert all(cell_len(line) <= 82 and line.isprintable() for line in told)


async def test_a_shows_the_model_in_place_of_the_text() -> None:
    about = About((("model", "Pebble"),), STAGES)
    async with console(about=lambda: about) as seat:
        await seat.press("a", ms=0)
        for thread in seat.app._threads:
            await asyncio.to_thread(thread.join)
        await seat.play(100)
        assert "stage, layers" in seat.screen and "Pebble" in seat.screen
        await seat.press("a")
        assert "stage, layers" not in seat.screen


async def test_s_saves_what_a_run_with_that_profile_has_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("strata_tui._core")
    monkeypatch.chdir(tmp_path)
    options = RunOptions(model=model(), placement=Placement(stages=2, threads=1, pipeline_max=2, kv="f32"))
    app = Console(lambda progress: open_model(options, progress), auto_refresh=False)
    async with app.run_test(size=(100, 30)) as pilot:
        await until_open(app, pilot)
        await pilot.press("o", "w", "minus")
        for _ in range(200):
            app.refresh_view()
            await asyncio.sleep(0.02)
            if app.sitting.switches.in_force()["pipeline_windows"] == 2:
                break
        await pilot.press("S")
        await pilot.press("a")
        for thread in app._threads:
            await asyncio.to_thread(thread.join)
        await pilot.pause()
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "attention" in text and "micro-qwen35.gguf" in text
    app.close()
    (path,) = tmp_path.glob("strata-*.toml")
    profile = load_profile(str(path))
    assert profile.switches["overlap"] is True and profile.switches["pipeline_windows"] == 2
    assert profile.switches["draft_max"] == 3
    assert profile.split is not None and len(profile.split) == 1 and profile.kv == "f32"


async def test_nowhere_to_write_a_profile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    async with console(size=(200, 50), profile=full) as seat:
        await seat.press("S")
        assert "no profile was written" in seat.notes
