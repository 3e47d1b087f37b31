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
        """Told to leave, about to, or without a screen already: a key would find nothing to act on."""
        app: App[Any] = self.app
        return bool(getattr(app, "leaving", False)) or app._exit or not app.screen_stack

    async def on_event(self, event: events.Event) -> None:
        if not (isinstance(event, events.InputEvent) and self.is_leaving):
            await super().on_event(event)


class MainScreen(Listening, Screen[None]):
    """The console's screen."""
