"""The text as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_panel import LinePanel
from strata_tui.tui.wrap import Span, TextLine, Wrapped

MEASURE = 110  # longer lines are hard to read


class TextPanel(LinePanel):
    """Prompts dim, generated text normal, remarks of the console in a third voice, drafts in flight dim.

    What comes in has been through `tokenizer.printable`: no control characters but newline. The panel follows
    the end unless it is scrolled back or held.
    """

    PREFIX = "text"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"text--{name}" for name in ("prompt", "text", "note", "dim", "draft", "guess")
    }

    def __init__(
        self, glyphs: Glyphs = COLOUR, empty: str = "the text comes here", id: str | None = None
    ) -> None:
        super().__init__(glyphs, id=id)
        self._empty = empty  # what stands there before anything has come
        self._wrapped = Wrapped(78)
        self._top = 0  # number of the line at the top
        self._held = False  # scrolled back, or told to stay
        self._foreseen: tuple[Span, ...] = ()
        self._foreseen_lines: list[TextLine] = []  # in place of the open line: it, and what is foreseen

    def add(self, text: str, style: str) -> None:
        """Add text in one of the styles `prompt`, `text`, `note`."""
        open_line = self._wrapped.end - 1
        n_foreseen, self._foreseen, self._foreseen_lines = len(self._foreseen_lines), (), []
        self._wrapped.feed(text, style)
        if self._held:
            return
        if self._wrapped.end - self._top > self.size.height:
            self._follow()
            self.refresh()
        else:
            self._refresh_from(open_line, max(self._wrapped.end - open_line, n_foreseen))

    def foresee(self, spans: Sequence[Span]) -> None:
        """Show this behind the end, in the styles `draft` and `guess`; the next text takes its place."""
        if self._held or tuple(spans) == self._foreseen:
            return
        self._foreseen = tuple(spans)
        before = len(self._foreseen_lines)
        self._foreseen_lines = self._with_foreseen()
        self._refresh_from(self._wrapped.end - 1, max(before, len(self._foreseen_lines), 1))

    def _with_foreseen(self) -> list[TextLine]:
        if not self._foreseen:
            return []
        ahead = Wrapped(self._wrapped.width)
        ahead.lines[-1] = list(self._wrapped.lines[-1])
        for text, style in self._foreseen:
            ahead.feed(text, style)
        return list(ahead.lines)

    def _refresh_from(self, line: int, n: int) -> None:
        self.refresh(Region(0, line - self._top, self.size.width, n))

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

    @property
    def last_text(self) -> str:
        """The prompt that came last and what was written on it, as it came."""
        return self._wrapped.since("prompt")

    def on_resize(self) -> None:
        self._wrapped.rewrap(max(1, min(MEASURE, self.size.width - 2)))
        self._foreseen_lines = self._with_foreseen()
        self._top = max(self._wrapped.begin, self._wrapped.end - self.size.height)
        self.refresh()

    def scroll_lines(self, n: int) -> None:
        """Look back (negative) or on; at the end the panel follows again."""
        last = max(self._wrapped.begin, self._wrapped.end - self.size.height)
        self._top = min(max(self._wrapped.begin, self._top + n), last)
        self._held = self._top < last
        self.refresh()

    def clear(self) -> None:
        """Nothing has come yet."""
        self._wrapped = Wrapped(self._wrapped.width)
        self._top, self._held = 0, False
        self._foreseen, self._foreseen_lines = (), []
        self.refresh()

    def _line(self, number: int) -> TextLine:
        ahead = number - (self._wrapped.end - 1)
        if 0 <= ahead < len(self._foreseen_lines):
            return self._foreseen_lines[ahead]
        return self._wrapped.line(number)

    def render_line(self, y: int) -> Strip:
        line = self._line(self._top + y)
        segments = [Segment(" ")]
        if y == 0 and not any(self._wrapped.lines):
            segments.append(Segment(self._empty, self.style("dim")))
        segments += [Segment(text, self.style(style)) for text, style in line]
        return self.strip(segments)
