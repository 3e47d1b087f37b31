"""The last line: the keys that matter most, each whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget

Item = tuple[str, str, str]  # key as shown, what it does, action
MORE = "more"  # in place of the word of the item that has the rest


class KeyBar(LineWidget):
    """One widget for all keys (textual's own footer is one a key, which the first paint would wait for).

    Args:
        items: the most important first.
        always: actions whose items are shown however narrow it is; the last of them tells of all others, and
            says so where some have no room.
    """

    PREFIX = "keys"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--text"}

    def __init__(self, items: Sequence[Item], always: tuple[str, ...]) -> None:
        super().__init__()
        self._items = list(items)
        self._always = always

    def show(self, items: Sequence[Item]) -> None:
        """Draw these in place of those before."""
        self._items = list(items)
        self.refresh()

    def shown(self, width: int) -> list[Item]:
        """The items that have room, in their order."""
        if sum(map(_length, self._items)) <= width:
            return self._items
        kept = [item for action in self._always for item in self._items if item[2] == action]
        if len(kept) > 1:
            key, _, action = kept[-1]
            kept[-1] = key, MORE, action
        room = width - sum(map(_length, kept))
        first: list[Item] = []
        for item in self._items:
            if item[2] in self._always:
                continue
            if _length(item) > room:
                break
            first.append(item)
            room -= _length(item)
        return [*first, *kept]

    def render_line(self, y: int) -> Strip:
        segments = []
        for key, text, _ in self.shown(self.size.width):
            segments += [Segment(f" {key}", self.style("key")), Segment(f" {text} ", self.style("text"))]
        return self.strip(segments)

    async def on_click(self, click: events.Click) -> None:
        """A click on a word does what its key does."""
        at = 0
        for item in self.shown(self.size.width):
            at += _length(item)
            if click.x < at:
                await self.app.run_action(item[2])
                return


def _length(item: Item) -> int:
    key, text, _ = item
    return len(key) + len(text) + 3
