"""A plan from what was asked for to what is recommended: measure, predict, measure the best."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from strata_tui import __version__
from strata_tui.bench.arms import Arm, sharing_engines
from strata_tui.bench.engines import KeptEngines
from strata_tui.bench.interleaved import Results, interleave
from strata_tui.bench.machine import load_average, machine
from strata_tui.bench.one_run import Request
from strata_tui.bench.report import Bench, run_line
from strata_tui.cli.headless import about
from strata_tui.cli.measuring import Asked, requests
from strata_tui.engine import Engine, available_memory
from strata_tui.errors import BadInput
from strata_tui.files import whole_file
from strata_tui.gguf_file import ModelFile, open_model_file
from strata_tui.options import DeviceChoice, Profile, RunOptions
from strata_tui.placement import place
from strata_tui.plan.balance import balanced_by_time, scaled_to, stages_ms
from strata_tui.plan.measuring import probe
from strata_tui.plan.placed import Placed, placed
from strata_tui.plan.proposals import CHOSEN, Proposal, as_asked, in_order, propose
from strata_tui.plan.report import Plan
from strata_tui.profile_text import profile_text

WORTH = 0.97  # of the slowest stage's time: a split that gains less isn't looked at


def make_plan(options: RunOptions, rounds: int, write: Path | None, log: Callable[[str], None]) -> Plan:
    """Measures and predicts; a line on `log` for each note. Ctrl-C ends it at what is whole.

    Raises:
        BadInput: options, a prompt or a profile's name that can't be used.
    """
    model = open_model_file(options.model, options.draft_model)
    available = available_memory()
    split, devices = place(options.placement, model, machine()["cores"])
    if write is not None:
        _require_lasting(devices)
    with _open(model, options, split, devices) as engine:
        request = requests(Asked([Arm("", "", options)], rounds=1), engine)[0]
        plan = Plan({**about(engine), "version": __version__}, machine(), available_bytes=available)
        plan.notes = [*options.notes, *engine.notices()]
        for note in plan.notes:
            log(note)
        try:
            why = "as asked" if options.placement.split else "by bytes (the default)"
            _say("measuring the placement")
            plan.placements.append(placed(engine, why, request))
            if len(devices) > 1 and not engine.emulated:
                _balance(plan, model, options, devices, request)
            elif engine.emulated:
                plan.no_balance = "no other split is proposed: emulated stages take the times they are given"
            _propose(plan, engine)
        except KeyboardInterrupt:
            plan.interrupted = True
    if not plan.interrupted and plan.asked is not None:
        _confirm(plan, model, options, devices, request, rounds)
    if write is not None and not plan.interrupted and plan.recommended is not None:
        _save(plan, options, devices, write)
    if plan.interrupted:
        _say("interrupted")
    return plan


def _require_lasting(devices: Sequence[DeviceChoice]) -> None:
    """What a profile can name: CPUs, fixed times, or one rig's.

    Raises:
        BadInput: devices of tests, or of several rigs.
    """
    kinds = {device.kind for device in devices}
    if "delayed" in kinds or len({device.rig for device in devices}) > 1:
        got = ", ".join(device.text for device in devices)
        raise BadInput(f"--write: expected cpu or even devices or one paced rig, got {got}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _open(
    model: ModelFile, options: RunOptions, split: Sequence[int], devices: Sequence[DeviceChoice]
) -> Engine:
    """An engine with room for as many windows in flight as there are stages."""
    placement = replace(
        options.placement,
        stages=None,
        split=tuple(split) or None,
        devices=tuple(devices),
        pipeline_max=len(devices),
    )
    if not split:
        placement = replace(placement, stages=1)
    engine = Engine(model, placement)
    try:
        engine.set_switches({**options.switches, "rate": 0.0})  # a cap is not what a plan is about
    except Exception:
        engine.close()
        raise
    return engine


def _balance(
    plan: Plan, model: ModelFile, options: RunOptions, devices: Sequence[DeviceChoice], request: Request
) -> None:
    """A second placement, if layers timed one by one promise a faster slowest stage."""
    first = plan.placements[0]
    _say("timing the layers")
    found = probe(model, options.placement, devices, request)
    plan.layers = scaled_to(found, first.split, first.serial.quick_ms)
    split = balanced_by_time(plan.layers)
    slowest_ms = max(stages_ms(split, plan.layers))
    before_ms = max(stages_ms(first.split, plan.layers))
    if split == first.split or slowest_ms > WORTH * before_ms:
        plan.no_balance = (
            "no other split is proposed: by the layers' times none makes the slowest stage "
            f"{1 - WORTH:.0%} faster ({before_ms:.2f} ms, at best {slowest_ms:.2f} ms)"
        )
        return
    _say("measuring the balanced placement")
    with _open(model, options, split, devices) as engine:
        plan.placements.append(placed(engine, "balanced by measured times", request))


def _propose(plan: Plan, engine: Engine) -> None:
    _say("predicting")
    asked = as_asked(len(engine.stages), {name: getattr(engine.switches, name) for name in CHOSEN})
    found: list[Proposal] = []
    for i, one in enumerate(plan.placements):
        proposals = propose(
            one.split, one.serial, one.pipelined, asked, engine.shared_cores, engine.hand_offs
        )
        if i == 0:
            plan.asked = next(p for p in proposals if p.switches == asked)
        found += proposals
    plan.proposals = sorted(found, key=in_order)


def _confirm(
    plan: Plan,
    model: ModelFile,
    options: RunOptions,
    devices: Sequence[DeviceChoice],
    request: Request,
    rounds: int,
) -> None:
    """What was asked for and the model's best, in turn."""
    assert plan.asked is not None and plan.best is not None
    both = [plan.asked] if plan.best is plan.asked else [plan.asked, plan.best]
    arms = sharing_engines(
        [
            _arm(name, proposal, options, devices)
            for name, proposal in zip(("as asked", "best modelled"), both, strict=False)
        ]
    )
    results = Results(arms, rounds)
    bench = Bench(plan.about, plan.machine, [request] * rounds, False, results)
    before = load_average()
    engines = KeptEngines(model, plan.notes.append)
    try:
        for i, arm, run in interleave(arms, bench.requests, engines, results):
            _say(run_line(i + 1, rounds, arm, run))
    except KeyboardInterrupt:
        plan.interrupted = True
    finally:
        engines.close()
    bench.load = before, load_average()
    if all(results.runs.values()):
        plan.confirmed = bench


def _arm(name: str, proposal: Proposal, options: RunOptions, devices: Sequence[DeviceChoice]) -> Arm:
    placement = replace(
        options.placement,
        stages=None if proposal.split else 1,
        split=proposal.split or None,
        devices=tuple(devices),
        pipeline_max=proposal.switches["pipeline_windows"],
    )
    switches = {**options.switches, "rate": 0.0, **_settable(proposal)}
    return Arm(name, proposal.name, replace(options, placement=placement, switches=switches))


def _settable(proposal: Proposal) -> dict[str, object]:
    return {name: value for name, value in proposal.switches.items() if name != "draft_max" or value}


def _save(plan: Plan, options: RunOptions, devices: Sequence[DeviceChoice], path: Path) -> None:
    best = plan.recommended
    assert best is not None
    p, model = best.prediction, f"{plan.about['model']}, sha256 {plan.about['model_sha256'][:16]}"
    measured_here: Placed = next(one for one in plan.placements if one.split == best.split)
    ms = ", ".join(f"{ms:.2f}" for ms in measured_here.window_ms())
    emulated = ", EMULATED devices" if plan.about["emulated"] else ""
    switches = {name: value for name, value in options.switches.items() if name != "rate"}
    rigs = [device.rig for device in devices]
    profile = Profile(
        path.stem,
        description=f"planned for {plan.about['model']}: {best.name}",
        context=options.placement.context,
        kv=options.placement.kv,
        chunk=options.placement.chunk,
        stages=None if best.split else 1,
        split=tuple(best.split) or None,
        devices=(DeviceChoice("paced", rig=rigs[0]),) if rigs[0] else tuple(devices),
        rig=rigs[0],
        switches={k: v for k, v in {**switches, **_settable(best)}.items() if v is not None},
    )
    comments = [
        f"By strata-tui plan {plan.about['version']} for {model}, "
        f"on {plan.machine['cpu']}, {plan.machine['cores']} cores{emulated}.",
        f"Stages, measured: {ms} ms a window of {measured_here.serial.rows} rows.",
        f"Modelled: {p.ms_per_window:.2f} ms per window, {p.tokens_per_window:.2f} tokens per window, "
        f"{p.tokens_per_s:.1f} tok/s.",
    ]
    with whole_file(path) as file:
        file.write(profile_text(profile, {"": "\n".join(comments)}).encode())
    plan.written = path
