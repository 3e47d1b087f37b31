"""The last line: the keys that matter most."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget

Item = tuple[str, str, str]  # key as shown, what it does, action


class KeyBar(LineWidget):
    """One widget for all keys (textual's own footer is one a key, which the first paint would wait for)."""

    PREFIX = "keys"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--text"}

    def __init__(self, items: list[Item]) -> None:
        super().__init__()
        self._items = items

    def render_line(self, y: int) -> Strip:
        segments = []
        for key, text, _ in self._items:
            segments += [Segment(f" {key}", self.style("key")), Segment(f" {text} ", self.style("text"))]
        return self.strip(segments)

    async def on_click(self, click: events.Click) -> None:
        """A click on a word does what its key does."""
        at = 0
        for key, text, action in self._items:
            at += len(key) + len(text) + 3
            if click.x < at:
                await self.app.run_action(action)
                return
