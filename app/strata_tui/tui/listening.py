"""What takes keys, and stops taking them when the console leaves: those queued are not worked through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen

if TYPE_CHECKING:
    from textual.app import App


class Listening(MessagePump):
    """Mixed into each link of the chain that a key goes through: app, screen, prompt."""

    @property
    def is_leaving(self) -> bool:
        app: App[Any] = self.app
        return bool(getattr(app, "leaving", False))

    async def on_event(self, event: events.Event) -> None:
        if not (isinstance(event, events.InputEvent) and self.is_leaving):
            await super().on_event(event)


class MainScreen(Listening, Screen[None]):
    """The console's screen."""
