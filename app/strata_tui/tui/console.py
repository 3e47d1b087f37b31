"""The console from a run's options: what `strata-tui` without a command starts."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO
from strata_tui.tui.key_file import key_file, load_keys
from strata_tui.tui.leaving import WayOut
from strata_tui.tui.opening import open_model, open_tape

if TYPE_CHECKING:
    from strata_tui.options import RunOptions
    from strata_tui.record.recording import Recording
    from strata_tui.tui.app import Progress
    from strata_tui.tui.opened import Opened


def run_console(options: RunOptions) -> int:
    """Show the console until it is left; afterwards the terminal is as before and no thread is left.

    Returns:
        The exit code.

    Raises:
        StrataError: no model could be opened; the screen has said so too.
    """

    def open_behind_the_first_paint(progress: Progress) -> Opened:
        gc.freeze()  # what was imported stays: later collections need not walk it
        gc.enable()
        return open_model(options, progress)

    return _show(open_behind_the_first_paint, options.ascii, options.notes)


def replay_console(recording: Recording, speed: float, ascii_only: bool) -> int:
    """Show a recording until the console is left.

    Args:
        speed: seconds of the recording a second.

    Returns:
        The exit code.
    """

    def open_recorded(_: Progress) -> Opened:
        from strata_tui.record.playback import Playback

        return open_tape(Playback(recording, speed))  # the clock starts with the screen

    return _show(open_recorded, ascii_only)


def _show(opening: Callable[[Progress], Opened], ascii_only: bool, notes: tuple[str, ...] = ()) -> int:
    glyphs = ASCII if ascii_only else MONO if os.environ.get("NO_COLOR") else COLOUR
    app = Console(opening, glyphs, notes=notes, keys=load_keys(key_file()))
    try:
        with WayOut(app):
            app.run()
    finally:
        gc.enable()
        app.close()
    if app.open_error is not None:
        raise app.open_error
    return app.return_code or 0
