"""The text as it comes."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip

from strata_tui.tui.line_panel import LinePanel
from strata_tui.tui.wrap import Wrapped

MEASURE = 110  # longer lines are hard to read


class TextPanel(LinePanel):
    """Prompts dim, generated text normal, remarks of the console in a third voice.

    What comes in has been through `tokenizer.printable`: no control characters but newline. The panel follows
    the end unless it is scrolled back or held.
    """

    PREFIX = "text"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"text--prompt", "text--text", "text--note", "text--dim"}

    def __init__(self, empty: str = "the text comes here", id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty = empty  # what stands there before anything has come
        self._wrapped = Wrapped(78)
        self._top = 0  # number of the line at the top
        self._held = False  # scrolled back, or told to stay

    def add(self, text: str, style: str) -> None:
        """Add text in one of the styles `prompt`, `text`, `note`."""
        open_line = self._wrapped.end - 1
        self._wrapped.feed(text, style)
        if self._held:
            return
        if self._wrapped.end - self._top > self.size.height:
            self._follow()
            self.refresh()
        else:
            grown = Region(0, open_line - self._top, self.size.width, self._wrapped.end - open_line)
            self.refresh(grown)

    def _follow(self) -> None:
        """Move on by a third of the panel at once: lines stay still to be read, and few are drawn anew."""
        height = self.size.height
        if self._wrapped.end - self._top > height:
            self._top = max(self._wrapped.begin, self._wrapped.end - height + height // 3)

    def hold(self, on: bool) -> None:
        """Keep showing these lines while text goes on, or go back to the end."""
        self._held = on
        if not on:
            self._follow()
        self.refresh()

    @property
    def text(self) -> str:
        """What is kept, as wrapped."""
        return "\n".join("".join(text for text, _ in line) for line in self._wrapped.lines)

    def on_resize(self) -> None:
        self._wrapped.rewrap(max(1, min(MEASURE, self.size.width - 2)))
        self._top = max(self._wrapped.begin, self._wrapped.end - self.size.height)
        self.refresh()

    def scroll_lines(self, n: int) -> None:
        """Look back (negative) or on; at the end the panel follows again."""
        last = max(self._wrapped.begin, self._wrapped.end - self.size.height)
        self._top = min(max(self._wrapped.begin, self._top + n), last)
        self._held = self._top < last
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._wrapped.line(self._top + y)
        segments = [Segment(" ")]
        if y == 0 and not any(self._wrapped.lines):
            segments.append(Segment(self._empty, self.style("dim")))
        segments += [Segment(text, self.style(style)) for text, style in line]
        return self.strip(segments)
