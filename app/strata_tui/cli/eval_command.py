"""strata-tui eval: one pass over given tokens."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.run_options import MODEL, gather, parse_ids, run_options


@click.command("eval")
@MODEL
@click.option("--tokens", "ids", metavar="IDS", required=True, help="Token ids: 12,7,301 or @FILE.")
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, help="An .npz file.")
@run_options
def command(model: Path | None, ids: str, output: Path, **options: Any) -> None:
    """One pass over the tokens, to a file of arrays.

    logits [n, vocab] and hidden [n, embd] (after the output norm), nextn_logits [n-1, vocab] where the model
    has a draft layer; float32. K/V cells are f32 unless --kv says otherwise.
    """
    run = gather({**options, "kv": options["kv"] or "f32"}, model)
    tokens = parse_ids(ids)
    import numpy as np

    from strata_tui.cli.headless import log_lines, open_engine
    from strata_tui.cli.outputs import apart, archive_file
    from strata_tui.files import whole_file

    archive_file(output, "-o")
    apart({"-o": output}, {"the model": run.model, "--draft-model": run.draft_model})
    with log_lines(run) as log, open_engine(run) as engine:
        for note in (*run.notes, *engine.notices()):
            log(note)
        with _ended_by_ctrl_c():
            arrays = engine.eval(tokens)
    with whole_file(output) as file:
        np.savez(file, **arrays)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
    click.echo(f"{output}: {shapes}", err=True)


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """For one long call that no handler of Python's can get into; nothing is open that could be lost."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
