"""strata-tui eval: one pass over given tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.run_options import gather, parse_ids, run_options
from strata_tui.errors import BadInput


@click.command("eval")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--tokens", "ids", metavar="IDS", required=True, help="Token ids: 12,7,301 or @FILE.")
@click.option("-o", "output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="An .npz file.")
@run_options
def command(model: Path | None, ids: str, output: Path, **options: Any) -> None:
    """One pass over the tokens, to a file of arrays.

    logits [n, vocab] and hidden [n, embd] (after the output norm), nextn_logits [n-1, vocab] where the model has a
    draft layer; float32. K/V cells are f32 unless --kv says otherwise.
    """
    options["kv"] = options["kv"] or "f32"
    run = gather(options, model)
    tokens = parse_ids(ids)
    if output.is_dir() or not output.parent.is_dir():
        raise BadInput(f"-o: expected a file in a folder that exists, got {output}")
    import numpy as np

    from strata_tui.cli.headless import open_engine

    with open_engine(run) as engine:
        arrays = engine.eval(tokens)
    unfinished = output.with_name(output.name + ".part")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **arrays)
        os.replace(unfinished, output)
    finally:
        unfinished.unlink(missing_ok=True)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
    click.echo(f"{output}: {shapes}", err=True)
