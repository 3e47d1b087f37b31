"""A bench from what was asked for to what was measured; Ctrl-C ends it at what is whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strata_tui import __version__
from strata_tui.bench.arms import Arm
from strata_tui.bench.baseline import changes, refuse_unlike
from strata_tui.bench.engines import FreshProcesses, KeptEngines, Runner
from strata_tui.bench.figures import figures
from strata_tui.bench.interleaved import Results, interleave
from strata_tui.bench.machine import load_average, machine
from strata_tui.bench.one_run import Request
from strata_tui.bench.prompts import prompts_of_size
from strata_tui.bench.report import Bench, run_line, settings
from strata_tui.check.texts import PROMPTS
from strata_tui.cli.headless import about, end_tokens, prompt_tokens
from strata_tui.engine import Engine
from strata_tui.errors import BadInput
from strata_tui.gguf_file import open_model_file
from strata_tui.placement import place


@dataclass(frozen=True)
class Asked:
    """A bench as the command line asks for it.

    Attributes:
        baseline: the object of a former one.
        fail_above: the loss against it that is too much, as a share.
    """

    arms: Sequence[Arm]
    rounds: int
    fresh: bool = False
    bound: bool = False
    prompt_tokens: int | None = None
    prompt_from: Path | None = None
    baseline: Mapping[str, Any] | None = None
    fail_above: float | None = None


def measure(asked: Asked, log: Callable[[str], None]) -> Bench | None:
    """Runs everything, a line on `log` for each note and run; None: interrupted before a run was whole."""
    begin, load_before = time.monotonic(), load_average()
    first = asked.arms[0]
    notes = list(dict.fromkeys(note for arm in asked.arms for note in arm.options.notes))
    for note in notes:
        log(note)
    model = open_model_file(first.options.model, first.options.draft_model)
    for arm in asked.arms:
        if arm.options.draft_model != first.options.draft_model:
            raise BadInput(f"--arm {arm.name}: expected the --draft-model of the other arms, got another")
    for arm in asked.arms:
        try:
            place(arm.placement, model, machine()["cores"])
        except BadInput as error:
            raise BadInput(f"--arm {arm.name}: {error}") from None
    results = Results(asked.arms, asked.rounds)

    def said(line: str) -> None:
        notes.append(line)
        log(line)

    engines = KeptEngines(model, said, asked.bound)
    runner: Runner = FreshProcesses(model, asked.bound) if asked.fresh else engines
    try:
        engine = engines.engine(first.placement)
        bench = Bench(
            about={**about(engine), "version": __version__},
            machine=machine(),
            requests=requests(asked, engine),
            fresh=asked.fresh,
            bound=asked.bound,
            results=results,
            fail_above=asked.fail_above,
            notes=notes,
        )
        if asked.baseline is not None:
            refuse_unlike(asked.baseline, settings(bench))
        if asked.fresh:
            engines.close()
        heard: set[str] = set()
        for i, arm, run in interleave(asked.arms, bench.requests, runner, results):
            print(run_line(i + 1, asked.rounds, arm, run), file=sys.stderr)
            for line in run.notices:
                if line not in heard:
                    heard.add(line)
                    log(f"{arm.name}: {line}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        if not any(results.runs.values()):
            return None
    finally:
        runner.close()
        engines.close()
    bench.load, bench.seconds = (load_before, load_average()), time.monotonic() - begin
    if asked.baseline is not None:
        bench.changes = changes(asked.baseline, figures(results))
    return bench


def requests(asked: Asked, engine: Engine) -> list[Request]:
    """One a round."""
    options = asked.arms[0].options
    if asked.prompt_tokens is not None and asked.prompt_from is not None:
        if options.chat:
            raise BadInput("--chat: expected none beside --prompt-tokens, whose prompts have an exact size")
        prompts = prompts_of_size(asked.prompt_from, asked.prompt_tokens, asked.rounds, engine.tokens_of)
    else:
        if options.prompt is None and options.tokens is None:
            options = replace(options, prompt=PROMPTS["prose"])
        prompts = [tuple(prompt_tokens(engine, options))] * asked.rounds
    ends = () if options.ignore_eos else tuple(end_tokens(engine, options))
    return [Request(prompt, options.max_tokens, options.sampling, ends) for prompt in prompts]
