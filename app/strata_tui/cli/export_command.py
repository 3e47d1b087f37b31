"""strata-tui export: a recording for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("export")
@click.argument("recording", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    required=True,
    help=".json.gz or .json: a Chrome trace, for Perfetto; .csv: a line an event.",
)
def command(recording: Path, output: Path) -> None:
    """A recording as a Chrome trace or as a table.

    RECORDING is a .strata file, or a text trace of the upstream engine.
    """
    from strata_tui.cli.outputs import TRACES, apart, output_file
    from strata_tui.record.reading import open_recording
    from strata_tui.terminal_text import counted

    output_file(output, "-o", (*TRACES, ".csv"))
    apart({"-o": output}, {"the recording": recording})
    opened = open_recording(recording)
    if output.suffix == ".csv":
        from strata_tui.record.table import write_table

        write_table(output, opened)
    else:
        from strata_tui.record.trace import write_trace

        write_trace(output, opened.events, opened.trace_meta())
    if opened.note:
        print(opened.note, file=sys.stderr)
    what = f"{counted(len(opened.events), 'event')}, {counted(len(opened.requests), 'text')}"
    print(f"{output}: {what}", file=sys.stderr)
