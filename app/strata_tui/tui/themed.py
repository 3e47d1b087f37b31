"""What every app of the program is: its themes, its keyboard, its colours and shapes, its way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.driver import Driver

from strata_tui.tui.colourless import Colourless
from strata_tui.tui.glyphs import ASCII, Glyphs
from strata_tui.tui.keyboard import with_keyboard
from strata_tui.tui.themes import DEFAULTS, THEMES

if TYPE_CHECKING:
    from pathlib import PurePath


class Themed(App[None]):
    """A screen in the program's own dress; a signal ends it.

    Attributes:
        glyphs: the set of shapes.
        leaving: on the way out: keys are not answered any more.
    """

    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = ["front.tcss", "strata.tcss"]
    TITLE = "strata"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.leaving = False
        self._leave_with = 0
        if self.no_color:
            self._filters[:] = [Colourless()]
        for theme in THEMES:
            self.register_theme(theme)
        self.set_reactive(App.theme, THEMES[0].name)  # nothing is drawn yet that would have to be drawn anew
        self.stylesheet.set_variables(self.get_css_variables())

    def get_driver_class(self) -> type[Driver]:
        return with_keyboard(super().get_driver_class())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return DEFAULTS

    def dress(self) -> None:
        """Once it is mounted: the classes that the style sheet knows; leaves where it was told to before."""
        self.set_class(self.glyphs is ASCII, "-ascii")
        self.set_class(self.no_color, "-colourless")
        if self.leaving:
            self._leave()

    def next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]

    def leave_at_once(self, return_code: int) -> None:
        """From a signal handler: whatever keys are queued are not answered any more."""
        self.leaving = True
        self._leave_with = return_code
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self.exit(return_code=self._leave_with)
