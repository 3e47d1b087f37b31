"""The console from a run's options: what `strata-tui` without a command starts."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from strata_tui.errors import BadInput
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO, Glyphs
from strata_tui.tui.key_file import key_file, load_keys
from strata_tui.tui.leaving import WayOut, end_process
from strata_tui.tui.opening import open_model, open_tape

if TYPE_CHECKING:
    from textual.app import App

    from strata_tui.options import RunOptions
    from strata_tui.record.compare import Comparison
    from strata_tui.record.recording import Recording
    from strata_tui.tui.load import Load
    from strata_tui.tui.opened import Opened


def run_console(options: RunOptions) -> int:
    """Show the console until it is left; afterwards the terminal is as before and no thread is left.

    Returns:
        The exit code.

    Raises:
        StrataError: no model could be opened; the screen has said so too.
    """

    def open_behind_the_first_paint(load: Load) -> Opened:
        gc.freeze()  # what was imported stays: later collections need not walk it
        gc.enable()
        return open_model(options, load)

    return _show(open_behind_the_first_paint, options.ascii, options.notes)


def replay_console(recording: Recording, speed: float, ascii_only: bool) -> int:
    """Show a recording until the console is left.

    Args:
        speed: seconds of the recording a second.

    Returns:
        The exit code.
    """

    def open_recorded(_: Load) -> Opened:
        from strata_tui.record.playback import Playback

        return open_tape(Playback(recording, speed))  # the clock starts with the screen

    return _show(open_recorded, ascii_only)


def compare_console(comparison: Comparison, ascii_only: bool) -> int:
    """Show two recordings side by side until the screen is left.

    Returns:
        The exit code.

    Raises:
        BadInput: they have no token in common.
    """
    from strata_tui.tui.aligned import Aligned
    from strata_tui.tui.side_by_side import SideBySide

    aligned = Aligned(comparison)
    if aligned.is_empty:
        raise BadInput("[compare] expected a token that both runs wrote, got none")
    app = SideBySide(aligned, _glyphs(ascii_only))
    with WayOut(app):
        app.run()
    return _exit_code(app)


def _glyphs(ascii_only: bool) -> Glyphs:
    return ASCII if ascii_only else MONO if os.environ.get("NO_COLOR") else COLOUR


def _show(opening: Callable[[Load], Opened], ascii_only: bool, notes: tuple[str, ...] = ()) -> int:
    app = Console(opening, _glyphs(ascii_only), notes=notes, keys=load_keys(key_file()))
    try:
        with WayOut(app):
            app.run()
    finally:
        gc.enable()
        app.close()
        if app.still_opens:
            end_process(_exit_code(app))
    if app.open_error is not None:
        raise app.open_error
    return _exit_code(app)


def _exit_code(app: App[None]) -> int:
    """An app without a return code was never told to exit: it has died of an exception."""
    return 1 if app.return_code is None else app.return_code
