"""A panel of lines that are there as a whole: it scrolls, and says so where they have no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_panel import LinePanel

Part = tuple[str, str]  # component class, text
Line = tuple[Part, ...]


class PagePanel(LinePanel):
    """Where lines are left over the last row tells how many, and the keys that scroll.

    Attributes:
        page_keys: as shown: look back, look on.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"panel--more"}

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self.page_keys = ("pgup", "pgdn")
        self._lines: list[Line] = []
        self._top = 0

    @property
    def room(self) -> int:
        """Lines that are seen at a time."""
        height = self.size.height
        return height if len(self._lines) <= height else max(1, height - 1)

    @property
    def page(self) -> int:
        return self.room - 1

    def tell(self, lines: Sequence[Line]) -> None:
        """Show these lines; where one has scrolled to stays."""
        told = list(lines)
        if told != self._lines:
            self._lines = told
            self.scroll_lines(0)

    def scroll_lines(self, n: int) -> None:
        self._top = min(max(0, self._top + n), max(0, len(self._lines) - self.room))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y >= self.room and self.room < self.size.height and len(self._lines) > self.room:
            return self.strip(self._more())
        at = self._top + y
        line = self._lines[at] if at < len(self._lines) else ()
        return self.strip([Segment(text, self.style(name)) for name, text in line])

    def _more(self) -> list[Segment]:
        if "more" not in self._styles:
            self._styles["more"] = self.get_component_rich_style("panel--more")
        back, on = self.page_keys
        above, below = self._top, len(self._lines) - self._top - self.room
        told = [
            f"{n} more {where}: {key}"
            for n, where, key in ((above, "above", back), (below, "below", on))
            if n
        ]
        return [Segment(f" {', '.join(told)}", self._styles["more"])]
