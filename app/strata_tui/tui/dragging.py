"""The mouse held down on a widget, from where it was pressed to where it is let go."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


class Draggable(Widget):
    """Is told of each place while the left button is held, beyond its own edges too."""

    _held = False

    def grasped(self, x: int, y: int) -> None:
        """The button has gone down here, in cells from the widget's corner."""

    def dragged(self, x: int, y: int) -> None:
        """It is held here by now."""

    def let_go(self, x: int, y: int) -> None:
        """It has gone up here."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1:
            event.stop()
            self._held = True
            self.capture_mouse()
            self.grasped(event.x, event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._held:
            event.stop()
            self.dragged(event.x, event.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._held:
            event.stop()
            self._held = False
            self.release_mouse()
            self.let_go(event.x, event.y)
