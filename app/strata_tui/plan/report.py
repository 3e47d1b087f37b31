"""What a plan says: placements with their memory, predictions, what was measured after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata_tui.bench.figures import figures
from strata_tui.bench.report import Bench, aligned
from strata_tui.bench.report import json_object as bench_object
from strata_tui.bench.spread import Spread, distinguishable, in_words
from strata_tui.plan.balance import LayerTimes
from strata_tui.plan.placed import BYTES, Placed, slowest
from strata_tui.plan.proposals import Proposal

GAIN = 1.01
SHOWN = 8  # predictions, in the table
MEMORY = ("weights", "K/V", "states", "buffers", "of these snapshots", "window slots")


@dataclass
class Plan:
    """A plan, whole or as far as it came.

    Attributes:
        about: model, model_sha256, arch, numerics, emulated, version.
        placements: as asked first.
        layers: of each stage's device, where layers were timed.
        proposals: on all placements, the most tokens per second first.
        confirmed: the best beside what was asked for, in turn; its first arm is what was asked for.
        kept_as_asked: was the best no faster when it was measured?
        available_bytes: memory that was free before.
    """

    about: Mapping[str, Any]
    machine: Mapping[str, Any]
    placements: list[Placed] = field(default_factory=list)
    layers: Sequence[LayerTimes] = ()
    no_balance: str = ""
    proposals: Sequence[Proposal] = ()
    asked: Proposal | None = None
    confirmed: Bench | None = None
    available_bytes: int | None = None
    written: Path | None = None
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> Proposal | None:
        """The best modelled one; what was asked for where that is as good within a percent."""
        best = self.proposals[0] if self.proposals else None
        if best is None or self.asked is None:
            return best
        least = GAIN * self.asked.prediction.tokens_per_s
        return best if best.prediction.tokens_per_s > least else self.asked

    @property
    def recommended(self) -> Proposal | None:
        """The best, unless it was measured and not found faster than what was asked for."""
        return self.asked if self.kept_as_asked else self.best

    @property
    def kept_as_asked(self) -> bool:
        median = self._speed.median if self._speed is not None else None
        return median is not None and median <= 1

    @property
    def untold(self) -> bool:
        """The best was measured beside what was asked for, and the rounds don't agree."""
        return self._speed is not None and not distinguishable(self._speed)

    @property
    def _speed(self) -> Spread | None:
        """Of the best over what was asked for, measured."""
        if self.confirmed is None or len(self.confirmed.results.arms) < 2:
            return None
        return figures(self.confirmed.results)[1].speed


def lines(plan: Plan) -> list[str]:
    """The whole report."""
    about, machine = plan.about, plan.machine
    tag = _tag(plan)
    text = [
        f"{about['model']}, sha256 {about['model_sha256'][:16]}, strata-tui {about['version']}",
        f"{machine['cpu']}, {machine['cores']} core{'s' * (machine['cores'] != 1)}, "
        f"kernels {machine['kernels']}, {machine['system']}"
        + ("; EMULATED devices: times are not this machine's" if about["emulated"] else ""),
    ]
    for placed in plan.placements:
        text += ["", f"placement {placed.why}{tag}: {slowest(placed.window_ms())}", *_stage_table(placed)]
        rates = placed.serial.run.rates
        text.append(
            f"measured, one window at a time{tag}: {rates['ms_per_window']:.2f} ms per window, "
            f"{rates['tokens_per_window']:.2f} tokens per window, {rates['tokens_per_s']:.1f} tok/s"
        )
        free = f" of {_size(plan.available_bytes)} that are free" if plan.available_bytes else ""
        text.append(f"memory: {_size(placed.total_bytes)}{free}; draft layer {_size(placed.draft_bytes)}")
    if plan.layers:
        text += ["", *_layer_lines(plan.layers)]
    if plan.no_balance:
        text += ["", plan.no_balance]
    if plan.proposals:
        text += ["", f"modelled{tag}, not measured:", *aligned(_predictions(plan))]
        text += [f"it rests on: {line}" for line in plan.proposals[0].prediction.basis]
    if plan.confirmed is not None:
        text += ["", *_confirmation(plan, plan.confirmed)]
    if plan.written is not None:
        text.append(f"saved: strata-tui --profile {plan.written}")
    return text


def json_object(plan: Plan) -> dict[str, Any]:
    best = plan.recommended
    return {
        **plan.about,
        "machine": dict(plan.machine),
        "available_bytes": plan.available_bytes,
        "placements": [_placed_object(placed) for placed in plan.placements],
        "layers": [{"layer_ms": list(of.layer_ms), "tail_ms": of.tail_ms} for of in plan.layers] or None,
        "predictions": [_proposal_object(p) for p in plan.proposals],
        "measured": bench_object(plan.confirmed) if plan.confirmed else None,
        "recommended": _proposal_object(best) if best else None,
        "kept_as_asked": plan.kept_as_asked,
        "profile": str(plan.written) if plan.written else None,
        "notices": plan.notes,
        "interrupted": plan.interrupted,
    }


def _tag(plan: Plan) -> str:
    return " [emulated]" if plan.about["emulated"] else ""


def _stage_table(placed: Placed) -> list[str]:
    rows = [(*("stage", "device", "layers", f"ms of {placed.serial.rows} rows"), *MEMORY)]
    for i, (stage, ms) in enumerate(zip(placed.stages, placed.window_ms(), strict=True)):
        held = [_size(stage[name]) for name in BYTES]
        slots = f"{stage['slots']} x {_size(stage['slot_bytes'] / max(1, stage['slots']))}"
        layers = f"{stage['first_layer']}-{stage['last_layer']}"
        snapshots = _size(stage["snapshot_bytes"])
        rows.append((str(i), stage["device"], layers, f"{ms:.3f}", *held, snapshots, slots))
    return aligned(rows)


def _layer_lines(layers: Sequence[LayerTimes]) -> list[str]:
    found = []
    for stage, of in enumerate(layers):
        if stage and of == layers[stage - 1]:
            continue
        low, high = min(of.layer_ms), max(of.layer_ms)
        found.append(
            f"layers, timed one by one, as stage {stage} runs them: {low:.3f}-{high:.3f} ms each; "
            f"the head on the last stage takes {of.tail_ms:.3f} ms besides"
        )
    return found


def _predictions(plan: Plan) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("split", "switches", "ms per window", "tokens per window", "tok/s", "")]
    shown = list(plan.proposals[:SHOWN])
    if plan.asked is not None and plan.asked not in shown:
        shown.append(plan.asked)
    for proposal in shown:
        p = proposal.prediction
        marks = "as asked" if proposal is plan.asked else ""
        split = ",".join(map(str, proposal.split)) or "-"
        rates = (f"{p.ms_per_window:.2f}", f"{p.tokens_per_window:.2f}", f"{p.tokens_per_s:.1f}")
        rows.append((split, proposal.name, *rates, marks))
    left = len(plan.proposals) - len(shown)
    return [*rows, (f"and {left} more", "", "", "", "", "")] if left > 0 else rows


def _confirmation(plan: Plan, bench: Bench) -> list[str]:
    of_arms, tag = figures(bench.results), _tag(plan)
    rounds = len(of_arms[0].runs)
    found = [f"measured{tag}, in turn, {rounds} round{'s' * (rounds != 1)}:"]
    for of_arm in of_arms:
        r = of_arm.rates
        found.append(
            f"  {of_arm.arm.name}{tag}: {r['ms_per_window'].show('.2f')} ms per window, "
            f"{r['tokens_per_window'].show('.2f')} tokens per window, {r['tokens_per_s'].show('.1f')} tok/s"
        )
    if len(of_arms) > 1:
        best, first = of_arms[1], of_arms[0].arm.name
        got = best.rates["ms_per_window"].median
        off = ""
        if got and plan.best is not None:
            error = plan.best.prediction.ms_per_window / got - 1
            off = f"; the model was off by {error:+.1%} on ms per window"
        found.append(f"{best.arm.name}: {in_words(best.speed, first)}{off}")
    found += [f"DIFFERS: {line}" for line in bench.results.differences]
    if plan.kept_as_asked:
        found.append("what was asked for is recommended: the model's best was not faster here")
    elif plan.recommended is plan.asked:
        found.append("what was asked for is recommended: nothing that was modelled gains a percent")
    elif plan.recommended is not None:
        untold = " (by the model: the rounds don't tell it from what was asked for)" if plan.untold else ""
        found.append(f"recommended: {_whole(plan.recommended)}{untold}")
    return found


def _whole(proposal: Proposal) -> str:
    split = f"split {','.join(map(str, proposal.split))}, " if proposal.split else ""
    return split + proposal.name


def _placed_object(placed: Placed) -> dict[str, Any]:
    stages = [{**stage, "run_ms": ms} for stage, ms in zip(placed.stages, placed.window_ms(), strict=True)]
    both = {"serial": placed.serial, "pipelined": placed.pipelined}
    return {
        "why": placed.why,
        "split": list(placed.split),
        "rows": placed.serial.rows,
        "stages": stages,
        "draft_bytes": placed.draft_bytes,
        "total_bytes": placed.total_bytes,
        "measured": {
            name: {key: of.run.rates[key] for key in ("ms_per_window", "tokens_per_window", "tokens_per_s")}
            for name, of in both.items()
            if of is not None
        },
    }


def _proposal_object(proposal: Proposal) -> dict[str, Any]:
    p = proposal.prediction
    return {
        "name": proposal.name,
        "split": list(proposal.split),
        "switches": dict(proposal.switches),
        "ms_per_window": p.ms_per_window,
        "tokens_per_window": p.tokens_per_window,
        "tokens_per_s": p.tokens_per_s,
        "basis": list(p.basis),
        "modelled": True,
    }


def _size(n: float) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"
