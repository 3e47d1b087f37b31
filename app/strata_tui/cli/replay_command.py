"""strata-tui replay: a recording in the console."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

from strata_tui.errors import BadInput


class Speed(click.FloatRange):
    """Any comparison with NaN is false: a range alone takes it for one of its own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        speed = super().convert(value, param, ctx)
        if math.isnan(speed):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return speed


@click.command("replay")
@click.argument("recording", type=click.Path(path_type=Path))
@click.option(
    "--speed",
    metavar="X",
    type=Speed(0.01, 1000),
    default=1.0,
    show_default=True,
    help="Seconds of the recording a second; [ and ] change it.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
def command(recording: Path, speed: float, ascii_only: bool) -> int:
    """A recording in the console, as it was.

    RECORDING is a .strata file, or a text trace of the upstream engine. Press ? in the console for its keys.
    """
    from strata_tui.cli.first_line import first_line
    from strata_tui.cli.open_command import no_screen
    from strata_tui.record.reading import open_recording

    with first_line(recording.name):
        opened = open_recording(recording)
    reason = no_screen()
    if reason:
        raise BadInput(f"replay: expected a terminal ({reason}); strata-tui export writes a file of it")
    if opened.note:
        print(opened.note, file=sys.stderr)
    with first_line(recording.name):
        from strata_tui.tui.console import replay_console
    return replay_console(opened, speed, ascii_only)
