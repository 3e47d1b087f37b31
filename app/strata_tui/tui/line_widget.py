"""What the widgets of the console have in common: they are drawn line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget


def shortened(text: str, room: int, mark: str) -> str:
    """As many cells of it as there is room for; `mark` stands where it is cut."""
    if cell_len(text) <= room:
        return text
    if cell_len(mark) > room:
        return set_cell_size(text, max(0, room))
    return set_cell_size(text, room - cell_len(mark)).rstrip() + mark


def fitted(segments: Sequence[Segment], width: int, mark: str) -> list[Segment]:
    """`width` cells of them at most; `mark` stands where words are cut, in their style."""
    text = "".join(segment.text for segment in segments)
    if cell_len(text) <= width:
        return list(segments)
    is_cut = cell_len(text.rstrip()) > width and cell_len(mark) <= width
    kept = list(Strip(segments).crop(0, max(0, width - cell_len(mark) if is_cut else width)))
    return [*kept, Segment(mark, kept[-1].style if kept else None)] if is_cut else kept


class LineWidget(Widget):
    """Looks its styles up once: at twenty refreshes a second that is half of what drawing costs.

    The component class `windows--dim` of a widget whose PREFIX is `windows` is `self.style("dim")`.
    """

    PREFIX: ClassVar[str]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._styles: dict[str, Style] = {}

    def style(self, name: str) -> Style:
        """The style of one of the widget's component classes."""
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"{self.PREFIX}--{name}")
        return self._styles[name]

    def strip(self, segments: Sequence[Segment]) -> Strip:
        """A line of the widget's width, every cell with a background."""
        if "" not in self._styles:
            self._styles[""] = self.rich_style
        blank = self._styles[""]
        styled = [segment if segment.style else Segment(segment.text, blank) for segment in segments]
        width = self.size.width
        length = sum(segment.cell_length for segment in styled)
        if length > width:
            return Strip(styled, length).crop(0, width)
        return Strip([*styled, Segment(" " * (width - length), blank)], width)

    def notify_style_update(self) -> None:
        self._styles.clear()
        super().notify_style_update()
