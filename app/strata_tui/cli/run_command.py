"""strata-tui run: decode a prompt without the console."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.run_options import MAX_TOKENS, MODEL, gather, parse_ids, read_text, run_options
from strata_tui.errors import BadInput


def prompt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a command with the ways to give a prompt; they arrive as `prompt`, `file` and `ids`."""
    for option in (
        click.option("--tokens", "ids", metavar="IDS", help="The prompt as token ids: 12,7,301 or @FILE."),
        click.option("-f", "file", metavar="FILE", help="The prompt from a file; - is standard input."),
        click.option("-p", "prompt", metavar="TEXT", help="The prompt."),
    ):
        command = option(command)
    return command


def read_prompt(command: str, prompt: str | None, file: str | None, ids: str | None) -> dict[str, Any]:
    """The field of RunOptions that holds the prompt; `command` names itself in the error."""
    given = [name for name, value in (("-p", prompt), ("-f", file), ("--tokens", ids)) if value is not None]
    if len(given) != 1:
        came = " and ".join(given) if given else "none"
        raise BadInput(f"{command}: expected one of -p TEXT, -f FILE or --tokens IDS, got {came}")
    if ids is not None:
        return {"tokens": parse_ids(ids)}
    if file is not None:
        prompt = read_text("-f", file)
    return {"prompt": prompt}


@click.command("run")
@MODEL
@prompt_options
@MAX_TOKENS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the text.")
@click.option(
    "--trace", type=click.Path(path_type=Path), help="Write a trace for Perfetto: .json.gz or .json."
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="Write a recording, .strata: for replay, export, compare.",
)
@run_options
def command(
    model: Path | None,
    prompt: str | None,
    file: str | None,
    ids: str | None,
    max_tokens: int,
    as_json: bool,
    trace: Path | None,
    record: Path | None,
    **options: Any,
) -> int:
    """Decode a prompt without the console.

    The text goes to standard output as it comes, a summary to standard error. Greedy unless --temp is given.
    MODEL is a .gguf file; without it the embedded model.
    """
    run = gather(options, model, max_tokens=max_tokens, **read_prompt("run", prompt, file, ids))
    from strata_tui.analysis.explained import Explained
    from strata_tui.cli import CHECK_FAILED
    from strata_tui.cli.headless import (
        about,
        decode,
        log_lines,
        open_engine,
        recording_to,
        to_stdout,
    )
    from strata_tui.cli.outputs import TRACES, apart, output_file
    from strata_tui.report import pace_lines, request_lines, run_json, summary_lines

    apart(
        {"--trace": trace, "--record": record, "--log": run.log},
        {"the model": model, "--draft-model": run.draft_model, "-f": Path(file) if file else None},
    )
    if trace is not None:
        output_file(trace, "--trace", TRACES)
    if record is not None:
        output_file(record, "--record")
    with log_lines(run) as log, open_engine(run) as engine:
        for note in (*run.notes, *engine.notices()):
            log(note)
        with recording_to(record, engine) as recorder:
            outcome = decode(engine, run, (lambda piece: None) if as_json else to_stdout, log, recorder)
        if not as_json:
            to_stdout("\n" if sys.stdout.isatty() else "")
        for line in (
            *engine.notices(),
            *request_lines(outcome.events, len(engine.stages), outcome.stats, run.reports, engine.emulated),
            *pace_lines(engine.pace_kept()),
        ):
            log(line)
        if trace is not None:
            from strata_tui.record.trace import trace_meta, write_trace

            write_trace(trace, outcome.events, trace_meta(engine))
            log(f"trace: {trace} ({len(outcome.events):,} events)")
        if recorder is not None:
            log(f"recording: {record}: {recorder.error or f'{recorder.n_events:,} events'}")
        in_force = engine.switches.in_force()
        explained = Explained(outcome.events, len(engine.stages), in_force["pipeline_windows"])
        if as_json:
            text = {"token_ids": outcome.tokens, "text": outcome.text, "finish": outcome.finish}
            result = run_json(
                about(engine),
                engine.stages,
                in_force,
                outcome.stats,
                outcome.events,
                text,
                engine.dropped_events,
                explained,
            )
            click.echo(json.dumps(result, allow_nan=False))
        else:
            summary = summary_lines(outcome.stats, outcome.finish, engine.dropped_events, engine.emulated)
            for line in (*summary, *explained.lines()):
                print(line, file=sys.stderr)
    if recorder is not None and recorder.error:
        return CHECK_FAILED
    return outcome.exit_code
