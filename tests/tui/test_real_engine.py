"""The console on the native engine and the embedded model."""

import asyncio
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("strata_tui._core")

from tests.tui.console import until_open

from strata_tui.analysis.fate import KEPT, Fate
from strata_tui.analysis.lane_state import SHARE_COLUMNS, LaneState
from strata_tui.errors import BadInput
from strata_tui.options import Placement, RunOptions, Sampling
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import COLOUR
from strata_tui.tui.opening import open_model

LOST_COLUMN = [name for name, _ in SHARE_COLUMNS].index("lost")


def of_model(max_tokens: int = 64, **changes: object) -> Console:
    options = RunOptions(
        sampling=Sampling(temperature=0.7, top_p=0.95, seed=7),
        placement=Placement(stages=2, threads=1, pipeline_max=2),
        max_tokens=max_tokens,
        **changes,  # type: ignore[arg-type]
    )
    return Console(lambda progress: open_model(options, progress))


async def until(holds, seconds: float = 20) -> None:
    """Wait for a condition; the engine runs by itself."""
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to that")


async def test_text_flows_switches_act_and_nothing_is_left_behind() -> None:
    before = set(threading.enumerate())
    app = of_model(switches={"overlap": False})
    async with app.run_test(size=(120, 40)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.sitting.texts.n_started >= 2 and app.sitting.view.windows.decoded > 20)
        assert len(app.face.text_panel.text) > 100
        await pilot.press("o")
        await until(lambda: any(mark.text == "overlap=1" for mark in app.sitting.view.marks))
        decoded = app.sitting.view.windows.decoded
        await until(lambda: app.sitting.view.windows.decoded > decoded + 10)
        rates = app.sitting.view.rates(app.opened.engine.now_ns())
        assert rates.dropped == 0 and rates.tokens_per_s_session > 1
        assert rates.tokens == app.sitting.view.tokens.n_tokens > 64
        await pilot.press("q")
    app.close()
    assert set(threading.enumerate()) - before == set()


async def test_counters_are_those_of_the_engine() -> None:
    app = of_model()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.sitting.view.windows.decoded > 5)
        await pilot.press("x")
        await until(lambda: not app.sitting.texts.running)
        app.refresh_view()
        stats = app.sitting.texts._session.stats()
        if app.sitting.texts.n_started == 1:
            log = app.sitting.view.windows
            assert (log.decoded, log.drafted, log.accepted) == (
                stats["windows"],
                stats["drafted"],
                stats["accepted"],
            )
            assert app.sitting.view.tokens.n_request == stats["generated"]
    app.close()


def strip_of(app: Console) -> str:
    return app.face.strip.render_line(0).text


async def test_w_and_o_while_it_decodes_and_guesses_are_kept_and_lost_on_the_screen() -> None:
    """Every flip is a mark and takes effect; what the screen counts is what the engine counts."""
    app = of_model(switches={"theta": 0.0})
    async with app.run_test(size=(160, 50)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.sitting.view.windows.decoded > 10)
        await pilot.press("w")
        kept = [COLOUR.fates[fate] for fate in KEPT]
        seen = {"kept": False, "lost": False}

        def both() -> bool:
            strip = strip_of(app)
            seen["kept"] |= any(sign in strip for sign in kept)
            seen["lost"] |= COLOUR.fates[Fate.ROLLED_BACK] in strip
            return all(seen.values())

        await until(both, seconds=60)
        await pilot.press("o")
        await until(lambda: app.opened.engine.switches.in_force()["overlap"])
        guesses = app.sitting.view.windows.guesses
        await until(lambda: app.sitting.view.windows.guesses.kept > guesses.kept + 3, seconds=60)
        await pilot.press("space", "down", "down", "down")
        await pilot.pause(0.3)
        drawn = {run.state for run in app.framing.picture.lanes[0].runs}
        assert LaneState.LOST in drawn and app.framing.picture.lanes[0].shares[LOST_COLUMN] > 0
        marks = [mark.text for mark in app.sitting.view.marks if mark.kind == "toggle"]
        assert marks[-2:] == ["pipeline-windows=2", "overlap=1"]
        assert "STRATA_PIPELINE_WINDOWS=2" in app.face.switch_bar.render_line(0).text
        await pilot.press("f", "w")
        await until(lambda: app.opened.engine.switches.in_force()["pipeline_windows"] == 0)
        await pilot.press("x")
        await until(lambda: not app.sitting.texts.running)
        app.refresh_view()
        log = app.sitting.view.windows
        assert log.guesses.built == log.guesses.gated + log.guesses.late + log.guesses.launched
        assert log.guesses.launched == log.guesses.kept + log.guesses.rolled_back + log.guesses.ended
        assert log.guesses.kept == log.decoded_by_class[1:].sum() and 0 < log.wasted_ns < log.run_ns
        assert app.sitting.view.dropped == 0
    app.close()


async def test_one_text_of_guesses_is_counted_as_the_engine_counts_it() -> None:
    app = of_model(max_tokens=200, switches={"theta": 0.0, "pipeline_windows": 2, "overlap": True})
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        app.sitting.texts.stopped = True  # no text after the first
        await until(lambda: not app.sitting.texts.running)
        app.refresh_view()
        stats, log = app.sitting.texts._session.stats(), app.sitting.view.windows
        assert stats["guesses"]["launched"]
        assert asdict(log.guesses) == stats["guesses"]
        assert log.decoded_by_class.tolist() == stats["windows_by_class"]
        ms = [ns / 1e6 for ns in stats["window_ns_by_class"]]
        assert (log.busy_ns_by_class / 1e6).tolist() == pytest.approx(ms, rel=0.1, abs=1)
    app.close()


async def test_an_error_in_a_stage_is_told_and_a_new_text_goes_on() -> None:
    app = of_model()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.sitting.view.windows.decoded > 3)
        app.opened.engine.native.inject_error(1, 0)
        await until(lambda: app.sitting.texts.error != "")
        assert "\n" not in app.sitting.texts.error
        await pilot.press("n", "A", "enter")
        decoded = app.sitting.view.windows.decoded
        await until(lambda: app.sitting.view.windows.decoded > decoded + 3)
        assert not app.sitting.texts.error
    app.close()


async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    app = of_model(model=path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        assert isinstance(app.open_error, BadInput)
    app.close()


async def test_closing_amid_overlapped_windows() -> None:
    app = of_model(switches={"overlap": True})
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.sitting.view.windows.decoded > 10)
    begin = asyncio.get_running_loop().time()
    app.close()
    assert asyncio.get_running_loop().time() - begin < 5
