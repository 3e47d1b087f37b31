"""strata-tui compare: two recordings of the same texts."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--force", is_flag=True, help="Emulated with measured times, and traces that name no model.")
def command(a: Path, b: Path, as_json: bool, force: bool) -> int:
    """Two recordings of the same texts, aligned at token index.

    Refused where model, prompt or sampling differ. Exit code 1: the texts differ, which they never should.
    """
    from strata_tui.cli import CHECK_FAILED
    from strata_tui.record.compare import compare
    from strata_tui.record.comparison_report import comparison_json, comparison_lines
    from strata_tui.record.reading import open_recording

    comparison = compare(open_recording(a), open_recording(b), force)
    if as_json:
        click.echo(json.dumps(comparison_json(comparison), allow_nan=False))
    else:
        for line in comparison_lines(comparison):
            click.echo(line)
    return CHECK_FAILED if comparison.difference is not None else 0
