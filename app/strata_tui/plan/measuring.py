"""Short runs: what each stage of a placement takes, and what each layer does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strata_tui.bench.one_run import Request, Run, run_and_record, run_once
from strata_tui.engine import Engine
from strata_tui.events import Events, Kind, WindowFate
from strata_tui.gguf_file import ModelFile
from strata_tui.options import MAX_STAGES, DeviceChoice, Placement
from strata_tui.placement import balanced_split
from strata_tui.plan.balance import LayerTimes, layer_times

PROBE_TOKENS = 48
TEXTS = 3


@dataclass(frozen=True)
class Measured:
    """A run with its events.

    Attributes:
        rows: of most windows.
        stage_ms: median of a window of so many rows, on each stage; 0 where there was none.
        quick_ms: the lower quartile: what others did on the machine in the meantime is rarely in it.
    """

    run: Run
    events: Events
    rows: int
    stage_ms: tuple[float, ...]
    quick_ms: tuple[float, ...]


def measured(engine: Engine, request: Request) -> Measured:
    """The fastest of a few runs on a warm engine, switches as they stand: a passing load is left out."""
    run_once(engine, replace(request, max_tokens=min(32, request.max_tokens or 32)))
    runs = [run_and_record(engine, request) for _ in range(TEXTS)]
    run, events = min(runs, key=lambda one: one[0].stats["window_ns"])
    rows = common_rows(events)
    stages = len(engine.stages)
    return Measured(
        run, events, rows, stage_ms(events, stages, rows, 0.5), stage_ms(events, stages, rows, 0.25)
    )


def common_rows(events: Events) -> int:
    """Rows of most decode windows; 0 without any."""
    built = events[(events["kind"] == Kind.window) & (events["b"] != WindowFate.prompt)]
    counts = Counter(built["rows"].tolist()).most_common(1)
    return int(counts[0][0]) if counts else 0


def stage_ms(events: Events, n_stages: int, rows: int, quantile: float) -> tuple[float, ...]:
    """A quantile of the times of the programs of decode windows with so many rows, on each stage."""
    runs = events[(events["kind"] == Kind.run) & (events["b"] == 0) & (events["rows"] == rows)]
    of_stages = (runs["dur_ns"][runs["stage"] == stage] for stage in range(n_stages))
    return tuple(float(np.quantile(ns, quantile)) / 1e6 if len(ns) else 0.0 for ns in of_stages)


def probe(
    model: ModelFile, placement: Placement, devices: Sequence[DeviceChoice], request: Request
) -> list[LayerTimes]:
    """Times of layers on each of these devices: the model in a stage a layer, all on one device.

    Weights are mapped, not copied: such an engine costs its K/V cells and buffers.
    """
    groups = min(model.n_layers, MAX_STAGES)
    split = balanced_split(model.layer_reads, 0, groups)
    found: dict[DeviceChoice, LayerTimes] = {}
    for device in devices:
        if device in found:
            continue
        fine = replace(placement, stages=None, split=split, devices=(device,) * groups, pipeline_max=0)
        with Engine(model, fine) as engine:
            short = replace(request, max_tokens=min(PROBE_TOKENS, request.max_tokens or PROBE_TOKENS))
            times = measured(engine, short).quick_ms
        found[device] = layer_times(times, split, model.layer_reads)
    return [found[device] for device in devices]
