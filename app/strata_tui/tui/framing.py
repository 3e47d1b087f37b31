"""From what is known to one frame: the picture is drawn anew where its time has moved, figures seldom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata_tui.tui.frame import Frame
from strata_tui.tui.rates import REFRESH_NS

if TYPE_CHECKING:
    from strata_tui.analysis.view import Picture, Rates
    from strata_tui.tui.sitting import Sitting

HISTORY = 120  # values of the rate that are kept for its sparkline
STRIP = 64  # windows
ASKED = ("overlap", "pipeline_windows", "theta", "draft", "draft_max", "rate")


class Framing:
    """Keeps what need not be made anew for the next frame."""

    def __init__(self, sitting: Sitting) -> None:
        self._sitting = sitting
        self.picture: Picture | None = None
        self.rates: Rates | None = None
        self.path: tuple[tuple[int, int, int], ...] = ()
        self._windows: Any = ()
        self._rates_due_ns = 0
        self._of: tuple[object, ...] = ()  # what the picture shows

    def frame(self, now: int, columns: int, recording: bool) -> Frame:
        """What the screen shows at `now`; `columns`: cells across the time axis."""
        sitting = self._sitting
        rates = self._rates(now)
        self._draw(now, columns)
        assert self.picture is not None
        in_force = sitting.switches.in_force()
        moment = sitting.looking.moment
        axis = sitting.axis
        return Frame(
            model=sitting.opened.label,
            now_ns=now,
            begin_ns=sitting.begin_ns,
            state=self._state(),
            behind_ns=max(0, now - self.picture.t1_ns) if axis.frozen else None,
            picture=self.picture,
            windows=self._windows,
            rates=rates,
            asked={name: getattr(sitting.switches, name) for name in ASKED},
            in_force=in_force,
            gains=sitting.predicting.of(in_force).gains,
            n_text=sitting.texts.n_started,
            recording=recording,
            tape=sitting.tape(now),
            told=sitting.looking.told(sitting.begin_ns),
            cursor=None if moment is None else (moment.lane, moment.start_ns, moment.end_ns),
            path=self.path,
            chat=sitting.chat,
        )

    def _state(self) -> str:
        texts = self._sitting.texts
        if texts.stopped and not texts.running:
            return "stopped"
        return "paused" if self._sitting.switches.paused else "live"

    def _rates(self, now: int) -> Rates:
        """Of now; a frozen view keeps those of when it froze. In a replay now stands still with it."""
        frozen = self._sitting.axis.frozen and self._sitting.opened.tape is None
        if self.rates is None or (now >= self._rates_due_ns and not frozen):
            self.rates = self._sitting.view.rates(now, history=HISTORY)
            self._rates_due_ns = now + REFRESH_NS
            self._sitting.axis.fit(self.rates.ms_per_window)
        return self.rates

    def _draw(self, now: int, columns: int) -> None:
        sitting = self._sitting
        t0, t1 = sitting.axis.look(now, columns, sitting.view.window_start_before)
        of = (t0, t1, columns, sitting.looking.path_on)
        if of == self._of:
            return
        self._of = of
        self.picture = sitting.view.picture(t0, t1, columns, now, sitting.held())
        self._windows = sitting.view.windows_before(t1, STRIP)
        in_flight = sitting.switches.in_force().get("pipeline_windows", 0)
        self.path = sitting.looking.path(self.picture, in_flight)
