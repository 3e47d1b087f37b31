"""When the explanation is made anew: while it is looked at, and so seldom that the engine doesn't notice."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from strata_tui.analysis.why import Why, explain

if TYPE_CHECKING:
    from strata_tui.analysis.view import View

OFTEN_NS = 250_000_000  # as the figures beside it
COST_SHARE = 0.05  # of a core, while it is looked at


class Explaining:
    """Keeps the last explanation until it is due.

    Args:
        spare: look at what it costs; False in tests, whose pictures must not depend on the load.
    """

    def __init__(self, view: View, pipeline_max: int, spare: bool = True) -> None:
        self._view = view
        self._pipeline_max = pipeline_max
        self._spare = spare
        self._due_ns = 0
        self._of_ns: int | None = None  # the frozen moment that the last one is of
        self.why: Why | None = None

    def look(self, now_ns: int, frozen_ns: int | None, in_force: dict[str, object]) -> Why | None:
        """The explanation of now, or of the moment at which the view is frozen."""
        if frozen_ns is not None and frozen_ns == self._of_ns:
            return self.why
        if frozen_ns is None and now_ns < self._due_ns and self._of_ns is None:
            return self.why
        begin = time.thread_time_ns()
        self._of_ns = frozen_ns
        until = now_ns if frozen_ns is None else frozen_ns
        self.why = explain(self._view, until, in_force, self._pipeline_max)
        cost_ns = time.thread_time_ns() - begin if self._spare else 0
        self._due_ns = now_ns + max(OFTEN_NS, int(cost_ns / COST_SHARE))
        return self.why
