"""The console from a run's options: what `strata-tui` without a command starts."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO
from strata_tui.tui.opening import open_model

if TYPE_CHECKING:
    from strata_tui.options import RunOptions
    from strata_tui.tui.app import Progress
    from strata_tui.tui.opened import Opened


def run_console(options: RunOptions) -> int:
    """Show the console until it is left; afterwards the terminal is as before and no thread is left.

    Returns:
        The exit code.

    Raises:
        StrataError: no model could be opened; the screen has said so too.
    """
    glyphs = ASCII if options.ascii else MONO if os.environ.get("NO_COLOR") else COLOUR

    def open_behind_the_first_paint(progress: Progress) -> Opened:
        gc.freeze()  # what was imported stays: later collections need not walk it
        gc.enable()
        return open_model(options, progress)

    app = Console(open_behind_the_first_paint, glyphs, notes=options.notes)
    try:
        app.run()
    finally:
        gc.enable()
        app.close()
    if app.open_error is not None:
        raise app.open_error
    return 0
