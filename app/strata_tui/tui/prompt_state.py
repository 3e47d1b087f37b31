"""Beside the prompt: does it go in by the chat template, or as it is?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import events
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from strata_tui.tui.frame import Frame


class PromptState(LineWidget):
    """`chat` or `raw`, and the key that changes it; a click does too.

    Args:
        key: as shown.
        action: what the key does, as textual calls it.
    """

    PREFIX = "asks"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"asks--state", "asks--dim", "asks--key"}

    def __init__(self, key: str, action: str) -> None:
        super().__init__()
        self._key = key
        self._action = action
        self._chat: bool | None = None  # None = there is no template to choose

    def show(self, frame: Frame) -> None:
        """Draw this frame's state."""
        if frame.chat != self._chat:
            self._chat = frame.chat
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._chat is None:
            return self.strip([Segment(" raw", self.style("dim"))])
        state = Segment(" chat " if self._chat else " raw  ", self.style("state"))
        return self.strip([state, Segment(self._key, self.style("key"))])

    async def on_click(self, click: events.Click) -> None:
        await self.app.run_action(self._action)
