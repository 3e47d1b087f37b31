"""The console on the native engine and the embedded model."""

import asyncio
import threading
from pathlib import Path

import pytest

pytest.importorskip("strata_tui._core")

from tests.tui.console import until_open

from strata_tui.errors import BadInput
from strata_tui.options import Placement, RunOptions, Sampling
from strata_tui.tui.app import Console
from strata_tui.tui.opening import open_model


def of_model(**changes: object) -> Console:
    options = RunOptions(
        sampling=Sampling(temperature=0.7, top_p=0.95, seed=7),
        placement=Placement(stages=2, threads=1),
        max_tokens=64,
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
        await until(lambda: app.texts.n_started >= 2 and app.view.windows.decoded > 20)
        assert len(app.text_panel.text) > 100
        await pilot.press("o")
        await until(lambda: any(mark.text == "overlap=1" for mark in app.view.marks))
        decoded = app.view.windows.decoded
        await until(lambda: app.view.windows.decoded > decoded + 10)
        rates = app.view.rates(app.opened.engine.now_ns())
        assert rates.dropped == 0 and rates.tokens_per_s_session > 1
        assert rates.tokens == app.view.tokens.n_tokens > 64
        await pilot.press("q")
    app.close()
    assert set(threading.enumerate()) - before == set()


async def test_counters_are_those_of_the_engine() -> None:
    app = of_model()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.view.windows.decoded > 5)
        await pilot.press("x")
        await until(lambda: not app.texts.running)
        app.refresh_view()
        stats = app.texts._session.stats()
        if app.texts.n_started == 1:
            log = app.view.windows
            assert (log.decoded, log.drafted, log.accepted) == (
                stats["windows"],
                stats["drafted"],
                stats["accepted"],
            )
            assert app.view.tokens.n_request == stats["generated"]
    app.close()


async def test_an_error_in_a_stage_is_told_and_a_new_text_goes_on() -> None:
    app = of_model()
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        await until(lambda: app.view.windows.decoded > 3)
        app.opened.engine.native.inject_error(1, 0)
        await until(lambda: app.texts.error != "")
        assert "\n" not in app.texts.error
        await pilot.press("n", "A", "enter")
        decoded = app.view.windows.decoded
        await until(lambda: app.view.windows.decoded > decoded + 3)
        assert not app.texts.error
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
        await until(lambda: app.view.windows.decoded > 10)
    begin = asyncio.get_running_loop().time()
    app.close()
    assert asyncio.get_running_loop().time() - begin < 5
