"""The place in the middle of the screen: the text, or what a key shows instead of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

TEXT = "text"


class Panel(Protocol):
    """What can stand there."""

    display: bool

    def hold(self, on: bool) -> None:
        """Keep showing what is there while the session goes on, or go back to the present."""

    def scroll_lines(self, n: int) -> None:
        """Look back (negative) or on."""

    @property
    def page(self) -> int:
        """Lines of a page."""


class Panels:
    """One of them is seen.

    Args:
        panels: by name, TEXT among them.
    """

    def __init__(self, panels: Mapping[str, Panel]) -> None:
        self._panels = dict(panels)
        self.shown = TEXT

    def toggle(self, name: str) -> None:
        """Show this one, or the text again."""
        self.shown = TEXT if self.shown == name else name
        for each, panel in self._panels.items():
            panel.display = each == self.shown

    def hold(self, on: bool) -> None:
        """All of them: a frozen view is frozen whatever is looked at."""
        for panel in self._panels.values():
            panel.hold(on)

    def scroll(self, pages: int) -> None:
        """The one that is seen, by pages."""
        panel = self._panels[self.shown]
        panel.scroll_lines(pages * max(1, panel.page))
