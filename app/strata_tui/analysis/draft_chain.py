"""The simulated draft chain: one step behind the other, an output each, on a queue of its own."""

from __future__ import annotations

from math import inf


class DraftChain:
    """Steps of `draft_ms` each; times in ms.

    Attributes:
        outputs: that have landed since the chain began.
        steps: when each began and ended, all chains; the last may still run.
        is_cut: no further step begins: the verdict has come.
    """

    def __init__(self, draft_ms: float) -> None:
        self._draft_ms = draft_ms
        self._wanted = 0
        self._end: float | None = None  # of the step that runs
        self._owed_ms = 0.0  # of a catch-up that the next step brings along
        self.outputs = 0
        self.steps: list[tuple[float, float]] = []
        self.is_cut = False

    def begin(self, now: float, wanted: int, first_ms: float, waits: bool) -> None:
        """A new chain of `wanted` outputs; its first step begins at once, or `waits` for one that runs."""
        running = self._end if waits else None
        self.outputs, self._wanted = 0, wanted
        self._step(max(now, running or 0.0), first_ms)

    def go_on(self, now: float, wanted: int, owed_ms: float, waits: bool) -> None:
        """The same chain, up to `wanted` outputs; a step that runs is given up unless `waits`."""
        self._wanted, self._owed_ms = wanted, owed_ms
        if self._end is None or not waits:
            self._step(now, self._draft_ms)

    def run_until(self, now: float) -> None:
        """Take what has landed by now."""
        while self._end is not None and self._end <= now:
            self.outputs += 1
            begin, self._end = self._end, None
            if not self.is_cut:
                self._step(begin, self._draft_ms)

    def lands(self, n: int) -> float:
        """When so many outputs are there; inf: not in this chain."""
        more = n - self.outputs
        if more <= 0:
            return 0.0
        if self._end is None or n > self._wanted:
            return inf
        end, owed = self._end, self._owed_ms
        for _ in range(more - 1):
            end, owed = end + owed + self._draft_ms, 0.0
        return end

    def cut(self) -> float:
        """No further step begins; returns when the one that runs ends, 0 where none does."""
        self.is_cut = self._end is not None
        return self._end or 0.0

    def _step(self, begin: float, ms: float) -> None:
        self._end = None
        if self.outputs < self._wanted:
            self._end = begin + self._owed_ms + ms
            self.steps.append((begin, self._end))
            self._owed_ms = 0.0
