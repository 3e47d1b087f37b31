"""A placement as it was measured: what each stage holds, and two texts recorded on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strata_tui.bench.one_run import Request
from strata_tui.engine import Engine
from strata_tui.plan.measuring import Measured, measured

BYTES = ("weight_bytes", "kv_bytes", "state_bytes", "buffer_bytes")
"""What adds up to a stage's memory. Snapshots are a part of the states, window slots one of the buffers."""

SERIAL = {"overlap": False, "pipeline_windows": 0}


@dataclass(frozen=True)
class Placed:
    """One split.

    Attributes:
        why: where the split comes from.
        stages: of each device, first_layer, last_layer, `BYTES`, snapshot_bytes, slot_bytes, slots, states.
        serial: a text, one window at a time.
        pipelined: the same text with guesses of all depths; None: a stage alone, or no drafts.
    """

    why: str
    split: tuple[int, ...]
    stages: tuple[dict[str, Any], ...]
    draft_bytes: int
    serial: Measured
    pipelined: Measured | None

    @property
    def total_bytes(self) -> int:
        return self.draft_bytes + sum(int(stage[name]) for stage in self.stages for name in BYTES)

    def window_ms(self) -> tuple[float, ...]:
        """Of each stage, a window of the usual size with nothing beside it."""
        return self.serial.stage_ms


def placed(engine: Engine, why: str, request: Request) -> Placed:
    """Records both texts; the switches that are asked for stand again afterwards."""
    before = {name: getattr(engine.switches, name) for name in ("overlap", "pipeline_windows", "theta")}
    n_stages = len(engine.stages)
    engine.set_switches(SERIAL)
    serial = measured(engine, request)
    pipelined = None
    if n_stages > 1 and serial.run.stats["drafted"]:
        engine.set_switches({"overlap": True, "pipeline_windows": n_stages, "theta": 0.0})
        pipelined = measured(engine, request)
    engine.set_switches(before)
    return Placed(
        why=why,
        split=tuple(stage.first_layer for stage in engine.stages[1:]),
        stages=tuple(_held(stage) for stage in engine.stages),
        draft_bytes=engine.native.draft_bytes,
        serial=serial,
        pipelined=pipelined,
    )


def _held(stage: Any) -> dict[str, Any]:
    names = ("device", "first_layer", "last_layer", *BYTES, "snapshot_bytes", "slot_bytes", "slots", "states")
    return {name: getattr(stage, name) for name in names}


def slowest(window_ms: Sequence[float]) -> str:
    """For a person."""
    stage = max(range(len(window_ms)), key=lambda i: window_ms[i])
    return f"stage {stage} is the slowest, {window_ms[stage]:.2f} of {sum(window_ms):.2f} ms"
