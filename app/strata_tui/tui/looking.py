"""Looking closer: jumps to moments, a cursor over spans, the critical path over the lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from strata_tui.analysis.bound import lower_bound, measured
from strata_tui.analysis.moments import Moment, gaps, misses, of_lane, verdicts
from strata_tui.analysis.passages import passages
from strata_tui.events import DRAFT_LANE, HOST_LANE

if TYPE_CHECKING:
    from strata_tui.analysis.axis import TimeAxis
    from strata_tui.analysis.view import Picture, View
    from strata_tui.events import Events

FAR_NS = 20_000_000_000  # how far a jump looks
MOST_WINDOWS = 100  # that gaps and paths are sought in

PathSpan = tuple[int, int, int]  # lane, start, end


class Looking:
    """What a person looks at; it moves the axis, and freezes it.

    Attributes:
        moment: what is told, under the lanes; None = nothing.
        inspecting: arrows move a cursor from span to span.
        path_on: the critical path lies over the lanes.
    """

    def __init__(self, view: View, axis: TimeAxis, draft_lane: bool) -> None:
        self.moment: Moment | None = None
        self.inspecting = False
        self.path_on = False
        self._view = view
        self._axis = axis
        self._lanes = [*range(view.n_stages), *([DRAFT_LANE] if draft_lane else []), HOST_LANE]
        self._gaps: list[Moment] = []
        self._next_gap = 0

    def clear(self) -> None:
        """Nothing is told, no cursor."""
        self.moment, self.inspecting, self._gaps = None, False, []

    # -- jumps; each returns False where there is nothing to jump to

    def to_verdict(self, by: int) -> bool:
        """The next verdict (1) or the one before (-1)."""
        return self._jump(verdicts, by)

    def to_miss(self, by: int) -> bool:
        """The next miss or the one before."""
        return self._jump(misses, by)

    def _jump(self, find: Callable[[Events], list[Moment]], by: int) -> bool:
        at = self.moment.start_ns if self.moment is not None else self._axis.middle_ns
        near = find(self._view.events_between(at - FAR_NS, at + FAR_NS))
        if not self._axis.frozen:
            by, at = -1, 1 << 62  # from the live view to the newest
        ahead = [m for m in near if (m.start_ns > at if by > 0 else m.start_ns < at)]
        if not ahead:
            return False
        self._go(ahead[0] if by > 0 else ahead[-1])
        return True

    def to_gap(self) -> bool:
        """The longest gap of the last windows; again: the next longest."""
        if not self._gaps:
            page, _ = self._view.page_of_windows(self._axis.right_ns, MOST_WINDOWS)
            verified = page[page["accepted"] >= 0]
            if len(verified) < 2:
                return False
            t0, t1 = int(verified["start_ns"][0]), int(verified["end_ns"].max())
            self._gaps = gaps(self._view.events_between(t0, t1), self._view.n_stages, t0, t1)
            self._next_gap = 0
        if not self._gaps:
            return False
        gap = self._gaps[self._next_gap % len(self._gaps)]
        self._next_gap += 1
        self._go(gap)
        return True

    # -- the cursor

    def inspect(self) -> None:
        """Begin at the middle of what is seen; again: end."""
        if self.inspecting:
            self.clear()
            return
        self._axis.freeze()
        self.inspecting = True
        lane = self.moment.lane if self.moment is not None else self._lanes[0]
        self._put(lane, self.moment.middle_ns if self.moment is not None else self._axis.middle_ns)

    def point(self, lane: int, at_ns: int) -> None:
        """The cursor on the span at this moment; arrows go on from there."""
        self.clear()
        self._axis.freeze()
        self.inspecting = True
        self._put(lane, at_ns)

    def move(self, spans: int = 0, lanes: int = 0) -> None:
        """Along the lane, or to another one at the same time."""
        lane = self.moment.lane if self.moment is not None else self._lanes[0]
        if lanes or self.moment is None:
            at = self._lanes.index(lane) if lane in self._lanes else 0
            self._put(self._lanes[(at + lanes) % len(self._lanes)], self._middle())
            return
        here = self._of_lane(lane)
        after = [m for m in here if m.start_ns > self.moment.start_ns]
        before = [m for m in here if m.start_ns < self.moment.start_ns]
        found = after[:1] if spans > 0 else before[-1:]
        if found:
            self._go(found[0])

    def _middle(self) -> int:
        return self.moment.middle_ns if self.moment is not None else self._axis.middle_ns

    def _put(self, lane: int, at_ns: int) -> None:
        near = self._of_lane(lane)
        if near:
            self._go(min(near, key=lambda m: max(m.start_ns - at_ns, at_ns - m.end_ns, 0)))
        else:
            self.moment = Moment(lane, at_ns, at_ns, "nothing is known of this lane here")

    def _of_lane(self, lane: int) -> list[Moment]:
        t0, t1 = self._axis.left_ns, self._axis.right_ns
        middle, reach = self._middle(), 2 * (t1 - t0)
        events = self._view.events_between(middle - reach, middle + reach)
        return of_lane(events, self._view.n_stages, lane, middle - reach, middle + reach)

    def _go(self, moment: Moment) -> None:
        self.moment = moment
        self._axis.show(moment.start_ns, moment.end_ns)

    # -- what is drawn

    def told(self, begin_ns: int) -> str:
        """The line under the lanes, how long before why: its end may be cut. "" = the legend stands there."""
        m = self.moment
        if m is None:
            return ""
        where = m.who or {DRAFT_LANE: "draft", HOST_LANE: "host"}.get(m.lane, f"stage {m.lane}")
        length = f", {(m.end_ns - m.start_ns) / 1e6:.3f} ms" if m.end_ns > m.start_ns else ""
        return f"{where}{length}: {m.text}, at {(m.start_ns - begin_ns) / 1e9:.6f} s"

    def path(self, picture: Picture, windows_in_flight: int) -> tuple[PathSpan, ...]:
        """The critical path of the windows that are seen, by lane; empty where it is off or they are many."""
        if not self.path_on:
            return ()
        span = picture.t1_ns - picture.t0_ns
        events = self._view.events_between(picture.t0_ns - span // 2, picture.t1_ns + span // 2)
        windows = passages(events)
        if len(windows) > 2 * MOST_WINDOWS:
            return ()
        whole = [w for w in windows if w.verified and len(w.end_ns) == self._view.n_stages]
        bound = lower_bound(measured(whole, self._view.n_stages), max(1, windows_in_flight) - 1)
        lanes = {"draft": DRAFT_LANE if DRAFT_LANE in self._lanes else HOST_LANE, "verdict": HOST_LANE}
        return tuple((lanes.get(s.part, s.stage), s.start_ns, s.start_ns + s.dur_ns) for s in bound.path)
