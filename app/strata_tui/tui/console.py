"""The console from a run's options: what `strata-tui` without a command starts."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from strata_tui.errors import BadInput
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO, Glyphs
from strata_tui.tui.key_file import key_file, load_keys
from strata_tui.tui.leaving import WayOut, end_process

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
        gc.freeze()  # what is imported by now stays: later collections need not walk it
        gc.enable()
        from strata_tui.tui.opening import open_model

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
        from strata_tui.tui.opening import open_tape

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
    app = SideBySide(aligned, glyphs_for(ascii_only)[0])
    with WayOut(app):
        app.run()
    return _exit_code(app)


def glyphs_for(ascii_only: bool, environment: Mapping[str, str] = os.environ) -> tuple[Glyphs, str]:
    """The shapes that the terminal can show, and a line where that is not what one would expect."""
    if ascii_only:
        return ASCII, ""
    in_browser = environment.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")
    locale = not_utf8(environment)
    if locale and not in_browser:
        return ASCII, f"{locale} is not UTF-8: drawn with ASCII characters, as with --ascii"
    return (MONO if environment.get("NO_COLOR") else COLOUR), ""


def not_utf8(environment: Mapping[str, str]) -> str:
    """The setting that says that the terminal's characters are not UTF-8, as NAME=VALUE; "" = none does."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := environment.get(name):
            codeset = value.partition("@")[0].partition(".")[2].replace("-", "").lower()
            return "" if codeset == "utf8" else f"{name}={value}"
    return ""


def _show(opening: Callable[[Load], Opened], ascii_only: bool, notes: tuple[str, ...] = ()) -> int:
    glyphs, note = glyphs_for(ascii_only)
    notes = (*notes, note) if note else notes
    app = Console(opening, glyphs, notes=notes, keys=load_keys(key_file()))
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
