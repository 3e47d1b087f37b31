"""strata-tui open: the console."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.first_line import first_line
from strata_tui.cli.run_options import MAX_TOKENS, MODEL, PLEASANT, gather, run_options
from strata_tui.options import GREEDY, RunOptions


def no_screen() -> str:
    """Why the console can't be shown here; empty if it can. Textual draws on stderr and reads stdin."""
    if os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver"):  # strata-tui web has started us
        return ""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return "standard input, output and error are not all a terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    return ""


@click.command("open")
@MODEL
@click.option("-p", "prompt", metavar="TEXT", help="The first prompt.")
@MAX_TOKENS
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@run_options
def command(model: Path | None, prompt: str | None, max_tokens: int, ascii_only: bool, **options: Any) -> int:
    """Open a model in the console; without MODEL the embedded default model.

    Texts follow one another until stopped. Press ? in the console for its keys.
    """
    sampling = PLEASANT if model is None else GREEDY
    reason = no_screen()
    text = {"prompt": prompt, "max_tokens": max_tokens, "ascii": ascii_only}
    run = gather(options, model, sampling, for_console=not reason, **text)
    if reason:
        return _headless(run, reason)
    gc.disable()  # nothing is garbage yet; run_console turns it on behind the first paint
    with first_line("the embedded model" if model is None else model.name):
        from strata_tui.tui.console import run_console
    return run_console(run)


def _headless(run: RunOptions, reason: str) -> int:
    from strata_tui.cli.headless import decode, log_lines, open_engine, to_stdout, uses_chat
    from strata_tui.report import pace_lines, summary_lines
    from strata_tui.tui.texts import CHAT_PROMPTS, PROMPTS

    with log_lines(run) as log, open_engine(run) as engine:
        print(f"no console here ({reason}): running headless; see strata-tui run --help", file=sys.stderr)
        for note in (*run.notes, *engine.notices()):
            log(note)
        if run.prompt is None:
            run = replace(run, prompt=(CHAT_PROMPTS if uses_chat(engine, run) else PROMPTS)[0])
        outcome = decode(engine, run, to_stdout, log)
        to_stdout("\n" if sys.stdout.isatty() else "")
        for notice in (*engine.notices(), *pace_lines(engine.pace_kept())):
            log(notice)
        stats, dropped = outcome.stats, engine.dropped_events
        for line in summary_lines(stats, outcome.finish, dropped, engine.emulated):
            print(line, file=sys.stderr)
    return outcome.exit_code
