"""An open model for the console's tests: the fake engine, and words for its tokens."""

from collections.abc import Callable
from typing import Any

from tests.tui.fake_engine import FakeEngine

from strata_tui.record.trace import TraceMeta
from strata_tui.tui.frame import ModelLabel, StageLabel
from strata_tui.tui.opened import Opened
from strata_tui.tui.texts import PROMPTS

STORY = (
    "had been built long before the road, and nobody could say who had lived there first. The windows "
    "looked towards the sea, and on a clear night the lamp could be seen from the other side of the bay. "
    "When the wind turned to the north the old man would close the shutters, one after another, and sit "
    "down by the fire with his pipe, his dog and his book, and wait for the morning.\n"
)


class Words:
    """Token i is word i of a text."""

    def __init__(self, text: str) -> None:
        self.words = [word + " " for word in text.split(" ")]

    def feed(self, tokens: list[int]) -> str:
        return "".join(self.words[token % len(self.words)] for token in tokens)

    def flush(self) -> str:
        return ""


def opened(
    engine: FakeEngine, text: str = STORY, prompts: tuple[str, ...] = PROMPTS, **changes: Any
) -> Opened:
    """`engine` as the console sees it; `changes` replace fields of `Opened`."""
    words = Words(text)
    engine._text = tuple(range(len(words.words)))
    fields: dict[str, Any] = {
        "engine": engine,
        "label": ModelLabel(
            name="Strata Pebble",
            arch="qwen35",
            n_layers=engine.n_layers,
            context=engine.context,
            stages=tuple(StageLabel(s.index, s.device, s.first_layer, s.last_layer) for s in engine.stages),
            has_draft_layer=True,
            emulated=engine.emulated,
            pipeline_max=engine.pipeline_max,
        ),
        "encode": lambda prompt, chat: list(range(len(prompt) // 4 + 1)),
        "decoder": lambda: Words(text),
        "sampling": lambda request: {"temperature": 0.7, "top_p": 0.95, "seed": 7 + request},
        "end_tokens": [0],
        "max_tokens": 200,
        "prompts": prompts,
        "chat_prompts": (),
        "chat": False,
        "piece": lambda token: words.words[token % len(words.words)],
        "trace_meta": lambda: TraceMeta(
            model="fake.gguf",
            model_sha256="",
            arch="qwen35",
            stages=tuple((s.device, s.first_layer, s.last_layer) for s in engine.stages),
        ),
    }
    return Opened(**{**fields, **changes})


def opening(model: Opened) -> Callable[[Any], Opened]:
    """What the console calls in its thread."""
    return lambda progress: model
