"""One line above the switches: what the last flip gave."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget


class FlipLine(LineWidget):
    """Not there before there is something to tell."""

    PREFIX = "flips"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"flips--dim", "flips--value", "flips--gain"}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._line = ""

    def show(self, line: str) -> None:
        """Draw this line."""
        if line != self._line:
            self._line = line
            self.set_class(bool(line), "-told")
            self.refresh()

    def render_line(self, y: int) -> Strip:
        head, colon, rest = self._line.partition(": ")
        figure, comma, details = rest.partition(", ")
        return self.strip(
            [
                Segment(f" {head}{colon}", self.style("value")),
                Segment(figure, self.style("gain")),
                Segment(f"{comma}{details}", self.style("dim")),
            ]
        )
