"""One line above the switches: what the last flip gave, the conclusion first."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget, shortened


class FlipLine(LineWidget):
    """Not there before there is something to tell."""

    PREFIX = "flips"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"flips--dim", "flips--value", "flips--gain"}

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._line = ""

    def show(self, line: str) -> None:
        """Draw this line."""
        if line != self._line:
            self._line = line
            self.set_class(bool(line), "-told")
            self.refresh()

    def render_line(self, y: int) -> Strip:
        line = shortened(self._line, self.size.width - 1, self._glyphs.ellipsis)
        conclusion, colon, rest = line.partition(": ")
        of, comma, details = rest.partition(", ")
        return self.strip(
            [
                Segment(f" {conclusion}{colon}", self.style("gain")),
                Segment(of, self.style("value")),
                Segment(f"{comma}{details}", self.style("dim")),
            ]
        )
