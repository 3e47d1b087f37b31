"""strata-tui check: the proof that the switches don't change the text."""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.run_options import MODEL, gather, run_options
from strata_tui.errors import BadInput
from strata_tui.options import MAX_STAGES, RunOptions

FIXABLE = (
    "stages",
    "overlap",
    "pipeline_windows",
    "draft",
    "draft_max",
    "theta",
    "force_miss",
    "spec_depth",
    "chain_ahead",
)
"""Factors that an option, a variable or a profile holds at one value."""


@click.command("check")
@MODEL
@click.option("--quick", is_flag=True, help="Up to 64 arms of 32 tokens (the default).")
@click.option("--full", is_flag=True, help="Up to 400 arms of 64 tokens: minutes.")
@click.option("--exhaustive", is_flag=True, help="Every arm of 64 tokens: hours.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@run_options
def command(
    model: Path | None, quick: bool, full: bool, exhaustive: bool, as_json: bool, **options: Any
) -> int:
    """The proof that the switches don't change the text.

    Arms differ in stages, overlap, windows in flight, drafts, gate and forced misses; tokens and state of
    each are compared with plain decoding. An option that is given here holds for every arm. Exit code 1: a
    difference, or the arms did not do what they are for.
    """
    mode = _mode({"quick": quick, "full": full, "exhaustive": exhaustive})
    if options["pipeline_max"] is None:
        options["pipeline_max"] = MAX_STAGES  # as many windows in flight as each placement has stages
    run = gather(options, model)
    from strata_tui.cli import CHECK_FAILED, INTERRUPTED
    from strata_tui.cli.headless import log_lines

    with log_lines(run) as log:
        for note in run.notes:
            log(note)
        summary = _check(run, mode, _fixed(options, run), options["seed"])
    from strata_tui.check.report import json_object, verdict_lines

    for line in verdict_lines(summary):
        click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps(json_object(summary), allow_nan=False))
    if summary.interrupted:
        return INTERRUPTED
    return 0 if summary.identical and not summary.uncovered else CHECK_FAILED


def _mode(flags: dict[str, bool]) -> str:
    """Raises BadInput if more than one is set."""
    given = [name for name, is_set in flags.items() if is_set] or ["quick"]
    if len(given) > 1:
        came = " and ".join(f"--{name}" for name in given)
        raise BadInput(f"check: expected one of --quick, --full or --exhaustive, got {came}")
    return given[0]


def _fixed(options: dict[str, Any], run: RunOptions) -> dict[str, Any]:
    """Factors that were asked for at one value, whichever way."""
    from strata_tui.switches import BY_NAME

    placement = run.placement
    several = len(placement.devices or ()) > 1
    stages = placement.stages or (len(placement.devices or ()) if several else None)
    if placement.split is not None:
        stages = len(placement.split) + 1
    fixed: dict[str, Any] = {} if stages is None else {"stages": stages}
    for name in FIXABLE[1:]:
        value = run.switches.get(name)
        if options.get(name) is not None or (name in BY_NAME and value != BY_NAME[name].default):
            fixed[name] = value
    return fixed


def _check(run: RunOptions, mode_name: str, fixed: dict[str, Any], seed: int | None) -> Any:
    """Runs the arms, a line each on stderr; Ctrl-C ends it at an arm."""
    from dataclasses import replace

    from strata_tui.check import plan
    from strata_tui.check.arms import all_arms, factors
    from strata_tui.check.report import Summary, arm_line
    from strata_tui.check.run import Check
    from strata_tui.check.texts import samplings
    from strata_tui.cli.headless import about
    from strata_tui.engine import Engine
    from strata_tui.gguf_file import open_model_file
    from strata_tui.options import GREEDY

    begin = time.monotonic()
    mode = {m.name: m for m in (plan.QUICK, plan.FULL, plan.EXHAUSTIVE)}[mode_name]
    file = open_model_file(run.model, run.draft_model)

    def open_engine(stages: int) -> Engine:
        placement = replace(run.placement, stages=stages)
        engine = Engine(file, placement)
        engine.set_switches({"draft_min_p": run.switches["draft_min_p"]})
        return engine

    asked_for = replace(run.sampling, seed=0) != GREEDY
    named = samplings(seed, run.sampling if asked_for else None)
    first = fixed.get("stages", 1)
    with open_engine(first) as engine:
        matrix = dict(factors(engine.n_layers, engine.has_draft_layer, fixed))
        described = {**about(engine), "device": engine.stages[0].device}
    matrix["sampling"] = tuple(named)
    arms = all_arms(matrix)
    planned = plan.choose(arms, mode, seed or 0)
    check = Check(open_engine, named, mode.n_tokens)
    references, results, serial_differences = {}, [], []
    try:
        texts = list(itertools.product(matrix["prompt"], named, matrix["ending"]))
        for text, outcome, difference in check.refer(first, texts):
            references[text] = outcome
            if difference:
                serial_differences.append(f"the serial arm, {', '.join(text)}: {difference}")
        for result in check.run([] if serial_differences else planned):
            results.append(result)
            print(arm_line(len(results), len(planned), result), file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return Summary(
        described,
        mode,
        seed or 0,
        arms,
        planned,
        references,
        serial_differences,
        results,
        time.monotonic() - begin,
    )
