"""Where a replay is: a bar over the whole recording, in place of the prompt, to click and to drag."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.dragging import Draggable
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from strata_tui.record.playback import Playback

ENDS = 10  # cells at either side for a time
COST_SHARE = (
    0.3  # of a drag's time that seeking may take: a long recording takes a while to be looked at anew
)


class ReplayBar(Draggable, LineWidget):
    """Played and to come, where texts begin, and where a switch was flipped.

    Args:
        tape: what is played.
        seek: goes to a moment of it.
    """

    PREFIX = "replay"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"replay--{name}" for name in ("time", "played", "to-come", "mark", "handle")
    }

    def __init__(self, tape: Playback, seek: Callable[[int], None], glyphs: Glyphs = COLOUR) -> None:
        super().__init__()
        self._tape = tape
        self._seek = seek
        self._glyphs = glyphs
        self._drawn: tuple[int, str] = (-1, "")
        self._due_s = 0.0

    # -- geometry

    @property
    def cells(self) -> int:
        """Of the bar between the two times."""
        return max(1, self.size.width - 2 * ENDS)

    @property
    def length_ns(self) -> int:
        return max(1, self._tape.end_ns - self._tape.begin_ns)

    def cell_of(self, at_ns: int) -> int:
        """The cell that a moment lies in."""
        return min(max(0, at_ns - self._tape.begin_ns) * self.cells // self.length_ns, self.cells - 1)

    def moment_of(self, x: int) -> int:
        """The moment at a column of the widget; the bar's first cell is the begin, its last one the end."""
        cell = min(max(0, x - ENDS), self.cells - 1)
        return self._tape.begin_ns + cell * self.length_ns // max(1, self.cells - 1)

    # -- the mouse

    def grasped(self, x: int, y: int) -> None:
        self._go(x)

    def dragged(self, x: int, y: int) -> None:
        if time.monotonic() >= self._due_s:
            self._go(x)

    def let_go(self, x: int, y: int) -> None:
        self._go(x)

    def _go(self, x: int) -> None:
        begin = time.monotonic()
        self._seek(self.moment_of(x))
        now = time.monotonic()
        self._due_s = now + (now - begin) / COST_SHARE

    # -- what is shown

    def look(self) -> None:
        """Draw where it is, where that has moved."""
        now = self._tape.now_ns()
        drawn = self.cell_of(now), self._time(now)
        if drawn != self._drawn:
            self._drawn = drawn
            self.refresh()

    def _time(self, at_ns: int) -> str:
        return f"{(at_ns - self._tape.begin_ns) / 1e9:.1f} s"

    def render_line(self, y: int) -> Strip:
        glyphs = self._glyphs
        here = self.cell_of(self._tape.now_ns())
        kinds = ["played"] * here + ["handle"] + ["to-come"] * (self.cells - here - 1)
        signs = {"played": glyphs.played, "handle": glyphs.handle, "to-come": glyphs.to_come}
        cells = [(kind, signs[kind]) for kind in kinds]
        for at_ns, sign in self._marks():
            cell = self.cell_of(at_ns)
            if cell != here:
                cells[cell] = "mark", sign
        return self.strip(
            [
                Segment(f"{self._time(self._tape.now_ns()):>{ENDS - 1}} ", self.style("time")),
                *(Segment(sign, self.style(kind)) for kind, sign in cells),
                Segment(f" {self._time(self._tape.end_ns)}", self.style("time")),
            ]
        )

    def _marks(self) -> list[tuple[int, str]]:
        """Begins of texts, then flips, which cover them."""
        recording = self._tape.recording
        texts = [(request.begin_ns, self._glyphs.tick) for request in recording.requests]
        return texts + [(at_ns, self._glyphs.flag) for at_ns in self._tape.toggles_ns]
