"""strata-tui open: the console."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.run_options import gather, run_options


def _no_screen() -> str:
    """Why the console can't be shown here; empty if it can. Textual draws on stderr and reads stdin."""
    if not sys.stdin.isatty() or not sys.stdout.isatty() or not sys.stderr.isatty():
        return "standard input, output and error are not all a terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    return ""


@click.command("open")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("-p", "prompt", metavar="TEXT", help="The first prompt.")
@click.option("-n", "max_tokens", type=click.IntRange(0), default=256, show_default=True, help="Tokens of a text at most; 0: no limit.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@run_options
def command(model: Path | None, prompt: str | None, max_tokens: int, ascii_only: bool, **options: Any) -> int:
    """Open a model in the console; without MODEL the embedded default model.

    Texts follow one another until stopped. Press ? in the console for its keys.
    """
    run = gather(
        options, model, prompt=prompt, max_tokens=max_tokens, ascii=ascii_only, pleasant=model is None
    )
    reason = _no_screen()
    if not reason:
        from strata_tui.tui.console import run_console

        return run_console(run)

    from strata_tui.cli import INTERRUPTED
    from strata_tui.cli.headless import decode, log_lines, open_engine, to_stdout
    from strata_tui.report import summary_lines
    from strata_tui.tui.texts import PROMPTS

    with log_lines(run) as log, open_engine(run) as engine:
        log(f"no console here ({reason}): running headless; see strata-tui run --help")
        for note in run.notes:
            log(note)
        if run.prompt is None:
            run = replace(run, prompt=PROMPTS[0])
        outcome = decode(engine, run, to_stdout)
        for line in [*engine.switches.notices(), *summary_lines(outcome.stats, outcome.finish, engine.dropped_events)]:
            log(line)
    return INTERRUPTED if outcome.interrupted else 0
