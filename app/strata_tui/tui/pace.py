"""How often the screen is refreshed: as often as it costs the engine nothing that matters."""

FASTEST_S = 0.05
SLOWEST_S = 0.25


class Pace:
    """20 refreshes a second while they are cheap and come on time, down to 4 where the machine is busy.

    Args:
        budget: share of a core that drawing may take.
    """

    def __init__(self, budget: float = 0.06) -> None:
        self.interval_s = FASTEST_S
        self._budget = budget

    def note(self, cpu_s: float, wall_s: float) -> None:
        """The last round: processor time of this thread and wall time, from one refresh to the next."""
        late = wall_s > 1.6 * self.interval_s
        if late or cpu_s > self._budget * wall_s:
            self.interval_s = min(SLOWEST_S, self.interval_s * 1.25)
        elif cpu_s < 0.75 * self._budget * wall_s:
            self.interval_s = max(FASTEST_S, self.interval_s / 1.1)
