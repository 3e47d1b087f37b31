"""strata-tui bench: arms measured in turn, and whether one is faster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.numbers import Whole
from strata_tui.cli.run_command import prompt_options, read_prompt
from strata_tui.cli.run_options import MAX_TOKENS, MODEL, run_options
from strata_tui.errors import BadInput
from strata_tui.files import regular


@click.command("bench")
@MODEL
@click.option(
    "--arm",
    "arms",
    metavar='"NAME: FLAGS"',
    multiple=True,
    help="An arm and its run options; several.  [default: serial, overlap, pipeline, both]",
)
@click.option(
    "--runs",
    metavar="N",
    type=Whole(1, 10_000),
    default=5,
    show_default=True,
    help="Rounds of all arms.",
)
@click.option("--fresh", is_flag=True, help="A process for every run.")
@click.option("--bound", is_flag=True, help="Record events: how far is each arm from its lower bound?")
@prompt_options
@click.option("--prompt-tokens", metavar="N", type=Whole(1, 1 << 24), help="Prompts of so many tokens.")
@click.option(
    "--prompt-from",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder whose text files such prompts are made of.",
)
@MAX_TOKENS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The table in Markdown.")
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The --json output of a former bench, to compare with.",
)
@click.option("--fail-above", metavar="P%", help="Exit code 1 where an arm lost more than this against it.")
@run_options
def command(
    model: Path | None,
    arms: tuple[str, ...],
    runs: int,
    fresh: bool,
    bound: bool,
    prompt: str | None,
    file: str | None,
    ids: str | None,
    prompt_tokens: int | None,
    prompt_from: Path | None,
    max_tokens: int,
    as_json: bool,
    as_markdown: bool,
    baseline: Path | None,
    fail_above: str | None,
    **options: Any,
) -> int:
    """Measure arms in turn: A B A B, medians and spread, texts compared.

    An arm is a way to compute the text: --arm "deep: --pipeline-windows 3 --overlap". Options beside --arm
    hold for all of them. Exit code 1: texts differ, or an arm lost too much against the baseline.
    """
    if as_json and as_markdown:
        raise BadInput("bench: expected one of --json and --markdown, got both")
    if fail_above is not None and baseline is None:
        raise BadInput("--fail-above: expected --baseline FILE beside it, got none")
    if (prompt_tokens is None) != (prompt_from is None):
        raise BadInput("bench: expected --prompt-tokens N and --prompt-from DIR together, got one")
    from strata_tui.bench.arms import DEFAULT_ARMS
    from strata_tui.bench.baseline import per_cent, read_baseline
    from strata_tui.bench.report import json_object, lines
    from strata_tui.cli import CHECK_FAILED, INTERRUPTED
    from strata_tui.cli.bench_arms import read_arms
    from strata_tui.cli.headless import log_lines
    from strata_tui.cli.measuring import Asked, measure

    given = [value for value in (prompt, file, ids, prompt_tokens) if value is not None]
    text = read_prompt("bench", prompt, file, ids) if given and prompt_tokens is None else {}
    if len(given) > 1:
        raise BadInput("bench: expected one of -p, -f, --tokens and --prompt-tokens, got several")
    asked = Asked(
        arms=read_arms(arms or DEFAULT_ARMS, options, model, max_tokens=max_tokens, **text),
        rounds=runs,
        fresh=fresh,
        bound=bound,
        prompt_tokens=prompt_tokens,
        prompt_from=prompt_from,
        baseline=None if baseline is None else read_baseline(regular(baseline)),
        fail_above=None if fail_above is None else per_cent(fail_above),
    )
    with log_lines(asked.arms[0].options) as log:
        bench = measure(asked, log)
    if bench is None:
        print("interrupted before the first run", file=sys.stderr)
        return INTERRUPTED
    for line in lines(bench, as_markdown):
        click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps(json_object(bench), allow_nan=False))
    if bench.results.interrupted:
        return INTERRUPTED
    return CHECK_FAILED if bench.failed else 0
