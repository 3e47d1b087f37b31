"""What the panels in the middle of the screen have in common: they scroll, and a frozen view holds them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget, fitted

WHEEL_LINES = 3


class LinePanel(LineWidget):
    """Drawn line by line, scrolled by pages and by the wheel; a line that is cut says so."""

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs

    def strip(self, segments: Sequence[Segment]) -> Strip:
        return super().strip(fitted(segments, self.size.width, self.glyphs.ellipsis))

    @property
    def page(self) -> int:
        """Lines of a page."""
        return self.size.height - 1

    def hold(self, on: bool) -> None:
        """Keep showing what is there while the session goes on, or go back to the present."""

    @abstractmethod
    def scroll_lines(self, n: int) -> None:
        """Look back (negative) or on."""

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_lines(-WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_lines(WHEEL_LINES)
