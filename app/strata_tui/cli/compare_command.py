"""strata-tui compare: two recordings of the same texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strata_tui.errors import BadInput

if TYPE_CHECKING:
    from strata_tui.record.compare import Comparison


@click.command("compare")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--force", is_flag=True, help="Emulated with measured times, other K/V cells, traces that name no model."
)
@click.option("--screen", is_flag=True, help="Both in the console, side by side.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
def command(a: Path, b: Path, as_json: bool, force: bool, screen: bool, ascii_only: bool) -> int:
    """Two recordings of the same texts, aligned at token index.

    Refused where model, prompt or sampling differ. Exit code 1: the texts differ, which they never should.
    """
    from strata_tui.cli import CHECK_FAILED
    from strata_tui.record.compare import compare
    from strata_tui.record.comparison_report import comparison_json, comparison_lines
    from strata_tui.record.reading import open_recording

    comparison = compare(open_recording(a), open_recording(b), force)
    if screen:
        _show(comparison, ascii_only)
    elif as_json:
        click.echo(json.dumps(comparison_json(comparison), allow_nan=False))
    else:
        for line in comparison_lines(comparison):
            click.echo(line)
    return CHECK_FAILED if comparison.difference is not None else 0


def _show(comparison: Comparison, ascii_only: bool) -> None:
    from strata_tui.cli.first_line import first_line
    from strata_tui.cli.open_command import no_screen

    reason = no_screen()
    if reason:
        raise BadInput(f"compare --screen: expected a terminal ({reason}); without it figures are printed")
    with first_line("two recordings"):
        from strata_tui.tui.console import compare_console
    compare_console(comparison, ascii_only)
