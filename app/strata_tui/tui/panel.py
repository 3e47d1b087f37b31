"""The place in the middle of the screen: the text, or what a key shows instead of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from strata_tui.tui.line_panel import LinePanel
from strata_tui.tui.page_panel import PagePanel

TEXT = "text"


class Panels:
    """One of them is seen.

    Args:
        panels: by name, TEXT among them.
        page_keys: as shown: look back, look on.
    """

    def __init__(self, panels: Mapping[str, LinePanel], page_keys: tuple[str, str]) -> None:
        self._panels = dict(panels)
        for panel in self._panels.values():
            if isinstance(panel, PagePanel):
                panel.page_keys = page_keys
        self.shown = TEXT

    @property
    def all(self) -> Iterable[LinePanel]:
        return self._panels.values()

    def toggle(self, name: str) -> None:
        """Show this one, or the text again."""
        self.show(TEXT if self.shown == name else name)

    def show(self, name: str) -> None:
        """Show this one."""
        self.shown = name
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
