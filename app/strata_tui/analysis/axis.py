"""Which stretch of time a screen shows: live, swept like an oscilloscope, or frozen."""

from collections.abc import Callable

LADDER_NS: tuple[int, ...] = tuple(n * int(10**e) for e in range(4, 12) for n in (1, 2, 5))  # 10 us to 500 s
SCROLL_NS = 1_000_000_000
HOLD_NS = 400_000_000
WINDOWS_ACROSS = 4

Trigger = Callable[[int], int | None]


class TimeAxis:
    """The visible range of time.

    Live and wide (a second or more), the picture scrolls by whole columns. Live and narrow, scrolling would
    be a blur: the axis holds still for 0.4 s, then jumps to the newest stretch that begins with a window, so
    that pictures of like windows lie over one another. Frozen, it stays; it can be moved and zoomed.
    """

    def __init__(self, span_ns: int = 50_000_000) -> None:
        self.span_ns = span_ns
        self.auto = True  # the span follows the windows until a person zooms
        self.frozen = False
        self._left_ns = 0
        self._sweep_due_ns = 0

    def look(self, now_ns: int, columns: int, trigger: Trigger) -> tuple[int, int]:
        """The range to show.

        Args:
            now_ns: the present.
            columns: cells across.
            trigger: maps a time to the begin of the last window by then (None: there is none).
        """
        if self.frozen:
            pass
        elif self.span_ns >= SCROLL_NS:
            cell = max(1, self.span_ns // max(1, columns))
            self._left_ns = now_ns // cell * cell - self.span_ns
        elif now_ns >= self._sweep_due_ns:
            end = now_ns - self.span_ns // WINDOWS_ACROSS  # what began before has reported back
            begin = trigger(end - self.span_ns)
            recent = begin is not None and begin > end - self.span_ns - 2 * SCROLL_NS
            self._left_ns = begin if begin is not None and recent else end - self.span_ns
            self._sweep_due_ns = now_ns + HOLD_NS
        return self._left_ns, self._left_ns + self.span_ns

    @property
    def left_ns(self) -> int:
        return self._left_ns

    @property
    def right_ns(self) -> int:
        return self._left_ns + self.span_ns

    @property
    def middle_ns(self) -> int:
        return self._left_ns + self.span_ns // 2

    def show(self, begin_ns: int, end_ns: int) -> None:
        """Freeze where this is seen as a whole: in the middle, unless it is in sight already."""
        self.frozen = True
        if end_ns - begin_ns > 0.8 * self.span_ns:
            wanted = 2 * (end_ns - begin_ns)
            self.span_ns = next((step for step in LADDER_NS if step >= wanted), LADDER_NS[-1])
            self.auto = False
        elif self._left_ns <= begin_ns and end_ns <= self.right_ns:
            return
        self._left_ns = (begin_ns + end_ns) // 2 - self.span_ns // 2

    def fit(self, ms_per_window: float | None) -> None:
        """While nobody has zoomed: a few windows across, a round length that changes only when it must."""
        if not self.auto or self.frozen or not ms_per_window:
            return
        wanted = WINDOWS_ACROSS * ms_per_window * 1e6
        if not 0.7 * wanted <= self.span_ns <= 1.6 * wanted:
            digit = 10 ** (len(str(int(wanted))) - 1)
            self.span_ns = min(max(round(wanted / digit) * digit, LADDER_NS[0]), LADDER_NS[-1])
            self._sweep_due_ns = 0

    def freeze(self) -> None:
        """Stay with the range shown last."""
        self.frozen = True

    def end_at(self, at_ns: int) -> None:
        """Move the range so that it ends there."""
        self._left_ns = at_ns - self.span_ns

    def follow(self) -> None:
        """Back to live, with a span that follows the windows."""
        self.frozen, self.auto, self._sweep_due_ns = False, True, 0

    def resume(self) -> None:
        """Back to live with the span as it is."""
        self.frozen, self._sweep_due_ns = False, 0

    def zoom(self, steps: int) -> None:
        """One step of the 1-2-5 ladder in (+) or out (-) a step, about the middle where frozen."""
        at = min(range(len(LADDER_NS)), key=lambda i: abs(LADDER_NS[i] - self.span_ns))
        middle = self._left_ns + self.span_ns // 2
        self.span_ns = LADDER_NS[min(max(at - steps, 0), len(LADDER_NS) - 1)]
        self.auto, self._sweep_due_ns = False, 0
        if self.frozen:
            self._left_ns = middle - self.span_ns // 2

    def pan(self, share: float, oldest_ns: int, now_ns: int) -> None:
        """Freeze, and move by a share of the span, not beyond the oldest event kept nor the present."""
        self.frozen = True
        moved = self._left_ns + int(share * self.span_ns)
        self._left_ns = max(min(moved, now_ns - self.span_ns), min(oldest_ns, now_ns - self.span_ns))


def tick_step(span_ns: int, columns: int, room: int) -> int:
    """Nanoseconds between two ticks of a ruler: a step of the ladder that leaves at least `room` columns."""
    least = span_ns * room / max(1, columns)
    return next((step for step in LADDER_NS if step >= least), LADDER_NS[-1])


def duration(ns: float) -> str:
    """A round length of time with its unit: `20 ms`, `500 us`, `2 s`."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"
