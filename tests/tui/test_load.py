"""Until a model is open the screen tells what is done and how far; it can be left at any moment."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.tui.console import screen_of, until_open
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened, opening
from tests.tui.terminal import model, terminal
from textual.widget import MountError

from strata_tui.errors import BadInput
from strata_tui.options import Placement, RunOptions
from strata_tui.tui.app import Console
from strata_tui.tui.face import Face
from strata_tui.tui.glyphs import ASCII, COLOUR
from strata_tui.tui.load import STEPS, Cancelled, Load
from strata_tui.tui.load_panel import lines
from strata_tui.tui.opened import Opened
from strata_tui.tui.problem import advice

GIB = 1 << 30


class Clock:
    def __init__(self) -> None:
        self.now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


def told(load: Load, width: int = 100, glyphs=COLOUR) -> list[str]:
    return ["".join(text for _, text in line) for line in lines(load, glyphs, width)]


def test_a_line_a_step_and_the_present_one_stands_out() -> None:
    clock = Clock()
    load = Load(clock)
    load.begin("engine")
    clock.now_s += 0.25
    load.begin("header").text = "qwen35, 12 layers"
    engine, header, tokenizer, *_ = told(load)
    assert engine.startswith(" ✓ engine") and engine.endswith("0.25 s")
    assert header.startswith(" ▶ header") and "12 layers" in header
    assert tokenizer == "   tokenizer  the file's vocabulary"
    assert len(told(load)) == len(STEPS)


def test_the_bar_the_rate_and_what_is_left_are_of_the_bytes() -> None:
    clock = Clock()
    load = Load(clock)
    step = load.begin("weights")
    step.total, step.text = 4 * GIB, "stage 1"
    clock.now_s += 2
    step.done = GIB
    line = next(line for line in told(load, 90) if "weights" in line)
    bar = [character for character in line if character in "■□"]
    assert bar.count("■") == len(bar) // 4 > 0
    assert f"1.0 of 4.0 GiB, {GIB / 2e9:.2f} GB/s, 6 s left, stage 1" in line
    step.done = 4 * GIB
    assert "□" not in "".join(told(load, 90))


def test_copies_are_measured_and_then_memory_is_allocated() -> None:
    load = Load(Clock())
    held = 0
    step = load.begin("copies")
    step.total, step.measure = 900, lambda: held
    held = 400
    assert "400 of 900 B" in "".join(told(load))
    held = 1200
    copies, memory = (line for line in told(load) if line[3:].startswith(("copies", "memory")))
    assert copies.startswith(" ✓") and memory.startswith(" ▶")


@pytest.mark.parametrize("width", [20, 40, 80, 300])
@pytest.mark.parametrize("glyphs", [COLOUR, ASCII])
def test_a_failed_step_is_marked(width: int, glyphs) -> None:
    load = Load(Clock())
    load.begin("engine")
    load.begin("header")
    load.failed = True
    header = told(load, width, glyphs)[1]
    assert header.startswith(f" {glyphs.failed} header")
    load.begin("weights").total = 5
    assert all(cell_len(line) <= max(width, 70) for line in told(load, width, glyphs))


def test_cancelled_ends_at_the_next_step() -> None:
    load = Load()
    load.begin("engine")
    load.cancel()
    with pytest.raises(Cancelled):
        load.begin("header")


async def test_the_screen_follows_the_steps_and_then_shows_the_text() -> None:
    at_weights, go_on = threading.Event(), threading.Event()

    def slow(load: Load) -> Opened:
        load.what = "large.gguf"
        load.begin("engine")
        step = load.begin("weights")
        step.total, step.done, step.text = 2 * GIB, GIB, "stage 0"
        at_weights.set()
        go_on.wait(5)
        return opened(FakeEngine())

    app = Console(slow, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        at_weights.wait(5)
        app.front.look()
        await pilot.pause()
        screen = screen_of(app)
        assert "opening large.gguf" in screen and "1.0 of 2.0 GiB" in screen and "stage 0" in screen
        go_on.set()
        await until_open(app, pilot)
        shown = screen_of(app)
        assert "GiB" not in shown and "live" in shown
    app.close()


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_it_can_be_left_while_weights_are_read(key: str) -> None:
    ended = threading.Event()

    def endless(load: Load) -> Opened:
        load.begin("weights")
        try:
            while True:
                load.check()
                time.sleep(0.001)
        finally:
            ended.set()

    app = Console(endless, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert app._exit
    app.close()
    assert ended.is_set() and not app.still_opens and app.open_error is None


async def test_an_engine_in_the_middle_of_a_call_is_not_waited_for() -> None:
    release = threading.Event()

    def deaf(load: Load) -> Opened:
        release.wait(20)
        raise Cancelled

    app = Console(deaf, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("q")
    app.close()
    assert app.still_opens
    release.set()
    app._opener.join(5)
    assert not app.still_opens


async def test_what_failed_is_told_with_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("strata_tui._core")
    from strata_tui.tui.opening import open_model

    (tmp_path / "cut.gguf").write_bytes(model().read_bytes()[:5000])
    cases: list[tuple[RunOptions, str, str, str]] = [
        (RunOptions(model=tmp_path / "none.gguf"), "header", "No such file", "embedded model"),
        (RunOptions(model=tmp_path / "cut.gguf"), "header", "cut.gguf", "fetch it again"),
        (RunOptions(placement=Placement(stages=99)), "header", "--stages", "strata-tui plan"),
    ]
    for options, step, line, what_to_do in cases:
        app = Console(lambda load, options=options: open_model(options, load), auto_refresh=False)
        async with app.run_test(size=(80, 24)) as pilot:
            await until_open(app, pilot)
            screen = " ".join(screen_of(app).replace("█", " ").split())
            assert f"✕ {step}" in screen and line in screen and what_to_do in screen and "q quits" in screen
            assert "no model is open" in screen
        assert isinstance(app.open_error, BadInput)
        app.close()


def test_every_kind_of_error_has_its_advice() -> None:
    plain = advice("something else")
    for begin in ("[open]", "[gguf]", "[tokenizer]", "[chat]", "--split:", "[device]", "[engine]"):
        assert advice(f"{begin} a") != plain
    assert "--ctx" in advice("[engine] not enough memory: try")


def test_the_embedded_model_tells_its_steps() -> None:
    pytest.importorskip("strata_tui._core")
    from strata_tui.tui.opening import open_model

    load = Load()
    opening = open_model(RunOptions(placement=Placement(stages=2)), load)
    try:
        text = "\n".join(told(load))
        assert "in memory already" in text or "GB/s" in text
        assert "none are needed" in text and " tokens" in text and " tensors, " in text
        assert opening.engine.tokenizer.n_vocab == opening.engine.n_vocab
    finally:
        opening.engine.close()


def test_weights_that_the_memory_does_not_hold_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("strata_tui._core")
    from strata_tui import engine, paging
    from strata_tui.tui.opening import open_model

    def never(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(engine, "available_memory", lambda: 900)
    monkeypatch.setattr(paging, "page_in", never)
    load = Load()
    open_model(RunOptions(model=model()), load).engine.close()
    assert "900 B are available: read as they are needed" in "\n".join(told(load))


def signalled(its, act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    its.wait()
    return time.monotonic() - began


@pytest.mark.parametrize("keys", [b"q", b"\x03"])
def test_in_a_terminal_it_is_left_at_once(keys: bytes) -> None:
    pytest.importorskip("strata_tui._core")
    with terminal(model()) as its:
        its.read_until(b"tokenizer")  # the console itself, no more the line before it
        assert signalled(its, lambda: its.type(keys)) < 10
        assert its.process.returncode == 0 and its.is_restored


async def test_a_console_that_is_left_while_it_is_furnished_ends_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Console(opening(opened(FakeEngine())), auto_refresh=False)

    async def taken_down(face: Face) -> None:
        app.leave_at_once(143)
        raise MountError("Can't mount widget(s) before Container(id='middle') is mounted")

    monkeypatch.setattr(Face, "take_place", taken_down)
    async with app.run_test() as pilot:
        await pilot.pause(0.2)
    app.close()
    assert app.return_code == 143
