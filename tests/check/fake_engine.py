"""An engine that computes nothing: a text by formula, counters as asked, faults where they are planted."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from strata_tui.events import EVENT_DTYPE, HOST_LANE, Kind
from strata_tui.options import Sampling

Fault = Callable[["FakeEngine", "FakeSession"], None]
N_LAYERS = 6


class FakeEngine:
    """`fault` is called at the end of each request and may change what it left."""

    context = 4096
    has_draft_layer = True

    def __init__(self, stages: int, fault: Fault | None = None, numerics: str = "fma16") -> None:
        self.switches = FakeSwitches()
        self.fault = fault
        bounds = [N_LAYERS * i // stages for i in range(stages + 1)]
        self.stages = [
            SimpleNamespace(first_layer=first, last_layer=end - 1, numerics=numerics)
            for first, end in itertools.pairwise(bounds)
        ]
        self.recorded = np.empty(0, EVENT_DTYPE)

    def tokens_of(self, prompt: str) -> list[int]:
        return list(prompt.encode())

    def session(self) -> FakeSession:
        return FakeSession(self)

    def events(self) -> Any:
        events, self.recorded = self.recorded, self.recorded[:0]
        return events

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeSwitches(SimpleNamespace):
    def in_force(self) -> dict[str, Any]:
        return dict(vars(self))


class FakeSession:
    """A request that is over as soon as it was started."""

    running = False
    error = ""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def start(
        self,
        tokens: Sequence[int],
        max_tokens: int,
        sampling: Sampling,
        end_tokens: Sequence[int] = (),
        replay: Sequence[int] = (),
    ) -> None:
        seed = zlib.crc32(repr((list(tokens), sampling)).encode())
        self.prompt = list(tokens)
        self.text = [zlib.crc32(b"%d %d" % (seed, i)) % 512 for i in range(max_tokens)]
        ends = [i for i, token in enumerate(self.text) if token in end_tokens]
        self.text = self.text[: ends[0] + 1] if ends else self.text
        self.finish = "stop" if ends else "length"
        self.cut_short = bool(ends)
        self.layers = [seed + layer for layer in range(N_LAYERS)]
        self.length = len(tokens) + len(self.text) - 1
        self.draft_cells, self.draft_length = seed, self.length - 3
        self.kept_on_stages: list[int] = []
        self.counters = counters(self.engine)
        self.kept_on_stages = [self._reached()] * self.counters["guesses"]["kept"]
        if self.engine.fault:
            self.engine.fault(self.engine, self)
        self.engine.recorded = np.concatenate(
            [
                moments(Kind.guess_kept, self.kept_on_stages),
                moments(Kind.guess_rolled_back, [self._reached()] * self.counters["guesses"]["rolled_back"]),
                moments(Kind.verdict, [3, 0], [4 - 2 * self.cut_short, 1]),
            ]
        )

    def _reached(self) -> int:
        return int(min(len(self.engine.stages) - 1, self.engine.switches.spec_depth))

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.text

    def fingerprint(self) -> dict[str, Any]:
        state: dict[str, Any] = {"length": self.length, "layers": self.layers}
        if self.engine.switches.draft == "mtp":
            state |= {"draft": self.draft_cells, "draft_length": self.draft_length}
        return state

    def stats(self) -> dict[str, Any]:
        return self.counters


def counters(engine: FakeEngine) -> dict[str, Any]:
    """As a request that meets everything that its switches let it meet."""
    s = engine.switches
    guesses = dict.fromkeys(
        ("built", "gated", "late", "launched", "kept", "rolled_back", "ended", "forced"), 0
    )
    if s.pipeline_windows >= 2 and s.draft != "none":
        gated = s.theta > 1
        launched = 0 if gated or s.spec_depth == 0 else 4
        kept = 0 if s.force_miss == 1 else min(launched, 2)
        guesses |= {
            "built": 5,
            "gated": 5 if gated else 0,
            "late": 0 if gated else 5 - launched,
            "launched": launched,
            "kept": kept,
            "rolled_back": launched - kept,
            "forced": int(s.force_miss > 0),
        }
    kept = guesses["kept"]
    return {
        "windows": 9,
        "windows_overlapped": 9 if s.overlap else 0,
        "prompt_windows": 3,
        "drafted": 12,
        "accepted": 7,
        "guesses": guesses,
        "kept_at_depth": [0, kept, kept if s.pipeline_windows > 2 else 0],
        "windows_by_class": [9 - kept, kept - kept // 2, kept // 2],
        "undone": guesses["rolled_back"],
    }


def moments(kind: Kind, a: Sequence[int], b: Sequence[int] | int = 0) -> Any:
    events = np.zeros(len(a), EVENT_DTYPE)
    events["kind"], events["stage"], events["a"], events["b"] = kind, HOST_LANE, a, b
    return events
