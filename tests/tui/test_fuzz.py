"""Random keys, resizes and toggles while it decodes: nothing breaks, and the text stays what it is."""

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tui.console import console, until_open
from tests.tui.fake_engine import FakeEngine
from textual.events import Key

from strata_tui.tui.app import Console

N_KEYS = int(os.environ.get("STRATA_FUZZ_KEYS", "1000"))  # make fuzz: 5,000
SIZES = [(80, 24), (120, 40), (200, 50), (40, 12), (20, 6), (110, 34)]
LEAVES = {"q", "x", "ctrl+c", "ctrl+z", "e", "r", "S"}  # these quit, or write files
CHARACTERS = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+",
    "minus": "-",
    "full_stop": ".",
    "question_mark": "?",
    "space": " ",
}


def keys_of_the_console() -> list[str]:
    keys = [key for binding in Console.BINDINGS for key in binding.key.split(",")]
    return sorted(set(keys) - LEAVES)


def post(app: Console, key: str) -> None:
    app.post_message(Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))


async def taken(app: Console) -> None:
    """All keys have been answered."""
    while not app._message_queue.empty():
        await asyncio.sleep(0)


async def test_random_keys_and_resizes() -> None:
    rng = np.random.default_rng(12)
    keys = keys_of_the_console()
    engine = FakeEngine(stage_ms=(2.0, 3.0, 2.5), acceptance=0.85)
    async with console(engine, size=(120, 40), max_tokens=400) as seat:
        for batch in range(N_KEYS // 20):
            for key in rng.choice(keys, 20):
                post(seat.app, str(key))
            if batch % 5 == 0:
                await seat.pilot.resize_terminal(*SIZES[rng.integers(len(SIZES))])
            engine.clock.advance(float(rng.integers(20, 200)))
            seat.app.refresh_view()
            await taken(seat.app)
            session = seat.app.sitting.texts._session
            text = session.tokens[-min(8, len(session.tokens)) :]
            follows = [(a + 1) % len(engine._text) == b for a, b in itertools.pairwise(text) if a and b]
            assert all(follows)
        await seat.pilot.pause()  # the last key's work is done too, not only taken
        assert seat.app.is_running and seat.app._exception is None
        assert seat.app.sitting.view.windows.decoded > N_KEYS // 25 and len(engine.switches.in_force()) > 5
        marks = {mark.text.split("=")[0] for mark in seat.app.sitting.view.marks if mark.kind == "toggle"}
        assert {"overlap", "pipeline-windows", "theta", "draft", "draft-max", "rate"} <= marks


async def test_random_keys_leave_the_real_engines_text_as_it_is() -> None:
    pytest.importorskip("strata_tui._core")
    from strata_tui.engine import Engine
    from strata_tui.options import Placement, RunOptions, Sampling
    from strata_tui.tui.opening import open_model
    from strata_tui.tui.texts import PROMPTS

    model = Path(__file__).parents[1] / "data/oracles/micro-qwen35-friendly.gguf"
    sampling = Sampling(temperature=0.7, top_p=0.95, seed=7)
    options = RunOptions(
        model=model,
        sampling=sampling,
        placement=Placement(stages=2, threads=1, pipeline_max=2),
        max_tokens=60,
        ignore_eos=True,
        chat=False,
    )
    app = Console(lambda progress: open_model(options, progress))
    texts: list[tuple[str, str]] = []
    rng = np.random.default_rng(5)
    others = {"n", "enter", "s", "h", "p", "full_stop", "c"}  # these change which texts come, or when
    keys = [key for key in keys_of_the_console() if key not in others]
    async with app.run_test(size=(120, 40)) as pilot:
        await until_open(app, pilot)
        add = app.face.text_panel.add

        def collect(text: str, style: str) -> None:
            if style == "prompt":
                texts.append((text, ""))
            elif style == "text" and texts:
                texts[-1] = (texts[-1][0], texts[-1][1] + text)
            add(text, style)

        app.face.text_panel.add = collect  # type: ignore[method-assign]
        for _ in range(40):
            for key in rng.choice(keys, 10):
                post(app, str(key))
            await taken(app)
            await asyncio.sleep(0.02)
        app.opened.engine.switches.rate = 0.0
        for _ in range(500):
            if len(texts) > 4:
                break
            await asyncio.sleep(0.02)
        assert app._exception is None and len(texts) > 4
    app.close()
    assert await asyncio.to_thread(_plain, Engine, model, sampling, PROMPTS, texts[:-1]) == texts[:-1]


def _plain(engine_of: Any, model: Path, sampling: Any, prompts: Any, like: list[tuple[str, str]]) -> Any:
    """The same texts, serial, nobody at the keys."""
    from dataclasses import replace

    from strata_tui.terminal_text import printable

    plain = []
    with engine_of.open(model, stages=2, threads=1) as engine:
        first = prompts.index(like[0][0])  # the texts before it had gone when the keys began
        for number, (prompt, _) in enumerate(like, first):
            assert prompt == prompts[number % len(prompts)]
            session, decoder = engine.session(), engine.tokenizer.decoder()
            tokens = list(
                session.generate(prompt, 60, replace(sampling, seed=sampling.seed + number), ignore_eos=True)
            )
            plain.append((prompt, printable(decoder.feed(tokens) + decoder.flush())))
    return plain
