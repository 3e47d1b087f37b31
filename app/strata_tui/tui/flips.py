"""The keys that flip a switch while it decodes, pause it, or let two settings take turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_tui.switches import MAX_DRAFTS
from strata_tui.tui.next_settings import next_draft, next_theta, next_windows

if TYPE_CHECKING:
    from strata_tui.tui.desk import Desk
    from strata_tui.tui.sitting import Sitting

RATES = (2, 5, 10, 20, 40, 80, 160, 320)  # tokens a second
INF = float("inf")


class Flips:
    """Asks the engine for values; what it refuses is told, and the old value stays."""

    def __init__(self, sitting: Sitting, desk: Desk) -> None:
        self._sitting = sitting
        self._desk = desk
        self._label = sitting.opened.label
        self._last_cap = 20.0

    def flip(self, name: str, value: object) -> None:
        """Ask for a value, at the next window."""
        self.end_alternation(keep=False)
        switches = self._sitting.switches
        before = getattr(switches, name)
        try:
            setattr(switches, name, value)
            self._sitting.measuring.flipped(name, before, value)
        except Exception as error:
            self._desk.tell(str(error), "warning")
        self._desk.refresh_soon()

    # -- how it is decoded

    def overlap(self) -> None:
        self.flip("overlap", not self._sitting.switches.overlap)

    def windows_in_flight(self) -> None:
        if self._label.pipeline_max < 2:
            self._desk.tell(
                "one stage runs one window at a time: open the model with --stages 2 or more"
                if len(self._label.stages) == 1
                else "no windows in flight were allocated: open the model with --pipeline-max 2 or more",
                "warning",
            )
            return
        now = self._sitting.switches.pipeline_windows
        self.flip("pipeline_windows", next_windows(now, self._label.pipeline_max))

    def theta(self) -> None:
        self.flip("theta", next_theta(self._sitting.switches.theta))

    def draft(self) -> None:
        self.flip("draft", next_draft(self._sitting.switches.draft, self._label.has_draft_layer))

    def draft_max(self, by: int) -> None:
        self.flip("draft_max", min(max(self._sitting.switches.draft_max + by, 0), MAX_DRAFTS))

    # -- how fast

    def faster(self, steps: int) -> None:
        """A higher (1) or a lower (-1) cap of the pace; of a replay: its speed."""
        tape = self._sitting.opened.tape
        rate = self._sitting.switches.rate
        if tape is not None:
            tape.faster(steps)
            self._desk.refresh_soon()
        elif steps < 0:
            self.flip("rate", float(max((r for r in RATES if r < (rate or INF)), default=RATES[0])))
        elif rate:
            self.flip("rate", float(min((r for r in RATES if r > rate), default=0)))

    def cap(self) -> None:
        """Off, or what it was."""
        rate = self._sitting.switches.rate
        if rate:
            self._last_cap = rate
        self.flip("rate", 0.0 if rate else self._last_cap)

    def pause(self) -> None:
        switches = self._sitting.switches
        switches.paused = not switches.paused
        self._desk.refresh_soon()

    def step(self) -> None:
        """One window; pauses first."""
        switches = self._sitting.switches
        if switches.paused:
            switches.step()
        else:
            switches.paused = True
        self._desk.refresh_soon()

    # -- two settings by turns

    def alternate(self) -> None:
        """Begin to alternate the last flip's settings, or end it."""
        measuring = self._sitting.measuring
        if measuring.alternation is not None:
            self.end_alternation(keep=True)
        elif not measuring.begin(self._sitting.now_ns):
            self._desk.tell(
                "b alternates the two settings of the last flip: flip a switch first (o, w, d, g, +)"
            )
        self._desk.refresh_soon()

    def end_alternation(self, keep: bool) -> None:
        """`keep` the better setting; a person who flips has one in mind."""
        kept = self._sitting.measuring.end(self._sitting.now_ns)
        if kept is not None and keep:
            setattr(self._sitting.switches, *kept)

    def measure(self, now: int) -> None:
        """Account for what has happened; set what is due by turns."""
        due = self._sitting.measuring.look(now, self._sitting.switches.in_force())
        if due is not None:
            setattr(self._sitting.switches, *due)
