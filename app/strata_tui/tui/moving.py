"""The keys that move in time: freeze, pan, zoom, jumps to moments, the cursor over spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strata_tui.tui.desk import Desk
    from strata_tui.tui.panel import Panels
    from strata_tui.tui.sitting import Sitting


class Moving:
    """Moves the axis; a frozen view holds the panels, and a replay stands still with it."""

    def __init__(self, sitting: Sitting, panels: Panels, desk: Desk) -> None:
        self._axis = sitting.axis
        self._looking = sitting.looking
        self._sitting = sitting
        self._panels = panels
        self._desk = desk

    def freeze(self) -> None:
        """Freeze the view, or release it."""
        if self._axis.frozen:
            self._axis.resume()
            self._looking.clear()
        else:
            self._axis.freeze()
        self._hold(self._axis.frozen)

    def follow(self) -> None:
        """Back to live, zoom by itself."""
        self._axis.follow()
        self._looking.clear()
        self._hold(False)

    def _hold(self, on: bool) -> None:
        self._panels.hold(on)
        tape = self._sitting.opened.tape
        if tape is not None:
            tape.hold(on)
        self._desk.refresh_soon()

    def pan(self, share: float) -> None:
        """By a share of the screen, or by a span where the cursor is on."""
        if self._looking.inspecting:
            self._look(lambda: self._looking.move(spans=1 if share > 0 else -1))
        else:
            self.shift(share)

    def shift(self, share: float) -> None:
        """By a share of the screen, whatever is looked at."""
        if not self._axis.frozen:
            self._hold(True)
        events = self._sitting.view.events
        oldest = int(events["start_ns"][0]) if len(events) else self._sitting.begin_ns
        self._axis.pan(share, oldest, self._sitting.now_ns)
        self._desk.refresh_soon()

    def zoom(self, steps: int) -> None:
        """In (1) or out, or to the lane above where the cursor is on."""
        if self._looking.inspecting:
            self._look(lambda: self._looking.move(lanes=-steps))
            return
        self._axis.zoom(steps)
        self._desk.refresh_soon()

    # -- looking closer

    def _look(self, move: Callable[[], bool | None], nothing: str = "") -> None:
        """Freeze on what is looked at; say so where there is nothing."""
        was_frozen = self._axis.frozen
        if move() is False:
            self._desk.tell(nothing)
        if self._axis.frozen and not was_frozen:
            self._hold(True)
        self._desk.refresh_soon()

    def gap(self) -> None:
        self._look(self._looking.to_gap, "no window has its verdict yet")

    def verdict(self, by: int) -> None:
        self._look(lambda: self._looking.to_verdict(by), "no verdict further on")

    def miss(self, by: int) -> None:
        self._look(lambda: self._looking.to_miss(by), "no guess was rolled back there")

    def inspect(self) -> None:
        self._look(self._looking.inspect)

    def point(self, lane: int, at_ns: int) -> None:
        """The cursor on what a lane did at a moment."""
        self._look(lambda: self._looking.point(lane, at_ns))

    def leave(self) -> None:
        """No cursor, nothing told."""
        if self._looking.moment is not None:
            self._looking.clear()
            self._desk.refresh_soon()

    def path(self) -> None:
        """The critical path over the lanes, or off."""
        self._looking.path_on = not self._looking.path_on
        self._desk.refresh_soon()
