"""strata-tui plan: where the layers go and why, and what each switch would give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.numbers import Whole
from strata_tui.cli.run_command import prompt_options, read_prompt
from strata_tui.cli.run_options import MAX_TOKENS, MODEL, gather, run_options


@click.command("plan")
@MODEL
@prompt_options
@MAX_TOKENS
@click.option(
    "--runs",
    metavar="N",
    type=Whole(1, 10_000),
    default=5,
    show_default=True,
    help="Rounds in which the best is measured.",
)
@click.option("--write", metavar="NAME", help="Save what is recommended as the run profile NAME.toml.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@run_options
def command(
    model: Path | None,
    prompt: str | None,
    file: str | None,
    ids: str | None,
    max_tokens: int,
    runs: int,
    write: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Where the layers go and why; what each switch would give.

    Measures a short text on the placement that is asked for, times the layers, predicts other splits and
    switches from that (modelled), and measures the best beside what was asked for.
    """
    given = any(value is not None for value in (prompt, file, ids))
    text = read_prompt("plan", prompt, file, ids) if given else {}
    run = gather(options, model, max_tokens=max_tokens, **text)
    from strata_tui.cli import CHECK_FAILED, INTERRUPTED
    from strata_tui.cli.headless import log_lines
    from strata_tui.cli.planning import make_plan
    from strata_tui.plan.report import json_object, lines
    from strata_tui.profile_text import profile_path

    path = None if write is None else profile_path(write)
    with log_lines(run) as log:
        plan = make_plan(run, runs, path, log)
    for line in lines(plan):
        click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps(json_object(plan), allow_nan=False))
    if plan.interrupted:
        return INTERRUPTED
    differs = plan.confirmed is not None and plan.confirmed.results.identical is False
    return CHECK_FAILED if differs else 0
