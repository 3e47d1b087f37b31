"""What is open: the model's facts and what each stage holds, as plain values for the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strata_tui.terminal_text import size, span

if TYPE_CHECKING:
    from strata_tui.engine import Engine
    from strata_tui.record.recording import Recording


@dataclass(frozen=True)
class StageAbout:
    """What a stage holds, in bytes; None = a recording does not know it."""

    layers: str  # "0-5", "11"
    what: str  # "4 gdn, 2 attention; cpu 1 thread, avx2 kernels"
    weights: int | None = None
    kv: int | None = None  # K/V cells of the whole context
    states: int | None = None  # recurrent, the committed one
    snapshots: int | None = None  # the others, for windows in flight
    buffers: int | None = None


@dataclass(frozen=True)
class About:
    """Facts as name and text, then the stages."""

    facts: tuple[tuple[str, str], ...]
    stages: tuple[StageAbout, ...]


def about_engine(engine: Engine, kv: str) -> About:
    """Of an open model; reads the whole file's directory, so not on the screen's thread."""
    from strata_tui.model_summary import summary

    told = summary(engine.model)
    return About(tuple(_facts(told, engine, kv)), tuple(_stage(stage) for stage in engine.stages))


def about_recording(recording: Recording) -> About:
    """As far as a recording tells."""
    facts = (
        ("recording", recording.file_name),
        ("model", recording.name or recording.model),
        ("architecture", f"{recording.arch}, {recording.n_layers} layers"),
        ("sha256", recording.model_sha256 or "not known"),
        ("context", f"{recording.context:,} tokens"),
    )
    stages = [StageAbout(span(s.first_layer, s.last_layer), s.device) for s in recording.stages]
    return About(facts, tuple(stages))


def _facts(told: dict[str, Any], engine: Engine, kv: str) -> Iterator[tuple[str, str]]:
    licence = f" ({told['licence']})" if isinstance(told["licence"], str) else ""
    yield "file", f"{told['file']}, {size(told['size_bytes'])}"
    yield "model", f"{told['name']}{licence}"
    layers = told["layers"]
    kinds = ", ".join(
        f"{layers[kind]} {word}"
        for kind, word in (("gdn", "Gated DeltaNet"), ("attention", "attention"))
        if layers[kind]
    )
    draft = "with a draft layer" if engine.has_draft_layer else "no draft layer"
    yield "architecture", f"{told['architecture']}, {engine.n_layers} layers ({kinds}), {draft}"
    yield "parameters", f"{told['parameters']:,} in {told['tensors']:,} tensors, width {engine.native.n_embd}"
    yield "types", ", ".join(f"{name} {of['share']:.1%}" for name, of in told["types"].items())
    yield "vocabulary", f"{engine.n_vocab:,} tokens"
    of = told["context_length"]
    yield "context", f"{engine.context:,} tokens allocated" + (f" of {of:,}" if of else "") + f", K/V as {kv}"
    in_flight = engine.pipeline_max
    yield "in flight", f"{in_flight} windows at most" if in_flight > 1 else "one window at a time"


def _stage(stage: Any) -> StageAbout:
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(stage.layers).most_common())
    windows = f"{stage.slots} windows held" if stage.slots > 1 else "one window held"
    return StageAbout(
        layers=span(stage.first_layer, stage.last_layer),
        what=f"{kinds}; {stage.device}, {stage.isa} kernels, {windows}",
        weights=stage.weight_bytes,
        kv=stage.kv_bytes,
        states=stage.state_bytes - stage.snapshot_bytes,
        snapshots=stage.snapshot_bytes,
        buffers=stage.buffer_bytes,
    )
