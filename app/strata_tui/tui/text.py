"""The text as it comes."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget
from strata_tui.tui.wrap import Wrapped

MEASURE = 110  # longer lines are hard to read


class TextPanel(LineWidget):
    """Prompts dim, generated text normal, remarks of the console in a third voice.

    What comes in has been through `tokenizer.printable`: no control characters but newline. The panel follows
    the end unless it is scrolled back or held.
    """

    PREFIX = "text"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"text--prompt", "text--text", "text--note", "text--dim"}

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wrapped = Wrapped(78)
        self._top: int | None = None  # number of lines let go is not in it; None = follow the end

    def add(self, text: str, style: str) -> None:
        """Add text in one of the styles `prompt`, `text`, `note`."""
        if not text:
            return
        n_lines = len(self._wrapped.lines)
        self._wrapped.feed(text, style)
        if self._top is not None:
            return
        grown = len(self._wrapped.lines) != n_lines
        first_changed = (
            0 if grown and len(self._wrapped.lines) > self.size.height else n_lines - 1 - self._first()
        )
        self._refresh_from(max(0, first_changed))

    def hold(self, on: bool) -> None:
        """Keep showing these lines while text goes on, or go back to the end."""
        self._top = self._first() if on else None
        self.refresh()

    @property
    def text(self) -> str:
        """What is kept, as wrapped."""
        return "\n".join("".join(text for text, _ in line) for line in self._wrapped.lines)

    def _refresh_from(self, y: int) -> None:
        from textual.geometry import Region

        self.refresh(Region(0, y, self.size.width, self.size.height - y))

    def _first(self) -> int:
        last = max(0, len(self._wrapped.lines) - self.size.height)
        return last if self._top is None else min(self._top, last)

    def on_resize(self) -> None:
        self._wrapped.rewrap(max(1, min(MEASURE, self.size.width - 2)))
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_lines(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_lines(3)

    def scroll_lines(self, n: int) -> None:
        """Look back (negative) or on; at the end the panel follows again."""
        last = max(0, len(self._wrapped.lines) - self.size.height)
        top = max(0, self._first() + n)
        self._top = top if top < last else None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        lines = self._wrapped.lines
        at = self._first() + y
        line = lines[at] if at < len(lines) else []
        segments = [Segment(" ")]
        if not any(lines) and y == 0:
            segments.append(Segment("the text comes here", self.style("dim")))
        segments += [Segment(text, self.style(style)) for text, style in line]
        return self.strip(segments)
