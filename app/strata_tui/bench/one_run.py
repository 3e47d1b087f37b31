"""One run of one arm: an engine decodes a prompt, and what it did is kept in plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strata_tui.analysis.explained import Explained
from strata_tui.analysis.passages import last_text
from strata_tui.engine import Engine
from strata_tui.errors import StrataError
from strata_tui.events import Events
from strata_tui.options import GREEDY, Sampling
from strata_tui.report import rates
from strata_tui.switches import SWITCHES

WARM_UP_TOKENS = 32
LISTEN_S = 0.05  # rings hold far more than is recorded in this time


@dataclass(frozen=True)
class Request:
    """What is to be computed: the same for every arm of a round."""

    tokens: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = GREEDY
    end_tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """What a run gave.

    Attributes:
        context: tokens that the engine had room for, the prompt among them.
        stats: the engine's counters.
        backend: the kernels of each layer; texts of different ones need not be equal.
        stages: of each device, first_layer, last_layer.
        notices: what the engine said, one line each.
        programs, overruns: of emulated devices: held, and those of them that took longer to compute than they
            should have lasted.
        bound: actual_ms, same_depth_ms and full_depth_ms where events were recorded.
    """

    tokens: tuple[int, ...]
    finish: str
    context: int
    stats: Mapping[str, Any]
    in_force: Mapping[str, Any] = field(default_factory=dict)
    backend: tuple[str, ...] = ()
    stages: tuple[Mapping[str, Any], ...] = ()
    emulated: bool = False
    notices: tuple[str, ...] = ()
    programs: int = 0
    overruns: int = 0
    bound: Mapping[str, float] | None = None

    @property
    def rates(self) -> dict[str, Any]:
        return rates(dict(self.stats))

    def is_cut_short_of(self, other: Run) -> bool:
        """Did it end because its context was full, and had the other one more room and more text?"""
        full = self.finish == "context" and self.context < other.context
        return full and len(self.tokens) < len(other.tokens)

    def over_bound(self, depth: str) -> float | None:
        """Actual time / the lower bound at this depth: same_depth or full_depth."""
        return self.bound["actual_ms"] / self.bound[f"{depth}_ms"] if self.bound else None


def standing_switches(engine: Engine) -> dict[str, Any]:
    """What each switch stands at: of a new engine, its defaults for this file."""
    return {switch.name: getattr(engine.switches, switch.name) for switch in SWITCHES}


def run_and_record(engine: Engine, request: Request, replay: Sequence[int] = ()) -> tuple[Run, Events]:
    """`run_once` on an engine that records events: its lower bound is told, the events come beside it."""
    engine.events()
    parts: list[Events] = []
    run = run_once(engine, request, replay, listen=lambda: parts.append(engine.events()))
    events = last_text(np.concatenate(parts))  # a text that was recorded for `replay` came before
    flight = run.in_force["pipeline_windows"]
    return replace(run, bound=Explained(events, len(run.stages), flight).bound()), events


def run_once(
    engine: Engine,
    request: Request,
    replay: Sequence[int] = (),
    listen: Callable[[], None] | None = None,
) -> Run:
    """Decode one prompt in a new session, switches as they stand.

    Args:
        replay: the text that `replay:Q` drafts from; without it it is recorded first.
        listen: is called while it decodes and at its end, often enough to drain the events.

    Raises:
        BadInput: a prompt that can't be used.
        StrataError: a stage failed.
    """
    session = engine.session()
    asked: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "sampling": request.sampling,
        "end_tokens": request.end_tokens,
    }
    if engine.switches.draft.startswith("replay") and not replay:
        replay = session.record_plain(request.tokens, **asked)
    programs, overruns = _paced(engine)
    tokens: list[int] = []
    try:
        session.start(request.tokens, replay=replay, **asked)
        while session.running:
            session.wait(0.5 if listen is None else LISTEN_S)
            tokens += session.read()
            if listen is not None:
                listen()
        tokens += session.read()
        if listen is not None:
            listen()
    finally:  # Ctrl-C
        if session.running:
            session.cancel()
            session.to_the_end()
    if session.finish == "error":
        raise StrataError(session.error)
    programs, overruns = (now - then for now, then in zip(_paced(engine), (programs, overruns), strict=True))
    return Run(
        tokens=tuple(tokens),
        finish=session.finish,
        context=engine.context,
        stats=session.stats(),
        in_force=engine.switches.in_force(),
        backend=tuple(
            stage.numerics for stage in engine.stages for _ in range(stage.first_layer, stage.last_layer + 1)
        ),
        stages=tuple(
            {"device": s.device, "first_layer": s.first_layer, "last_layer": s.last_layer}
            for s in engine.stages
        ),
        emulated=engine.emulated,
        notices=tuple(engine.notices()),
        programs=programs,
        overruns=overruns,
    )


def _paced(engine: Engine) -> tuple[int, int]:
    """Programs that were held to their times so far, and those that could not be."""
    kept = engine.pace_kept()
    return sum(one["programs"] for one in kept), sum(one["overruns"] for one in kept)
