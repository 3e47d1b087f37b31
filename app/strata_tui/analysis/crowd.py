"""More programs at a time than cores: each gets its share, and so each takes longer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Spans = Sequence[tuple[float, float]] | npt.NDArray[np.float64]  # [n, 2] start, end, ms


Moments = float | npt.NDArray[np.float64]  # ms


class Crowd:
    """Programs of one thread each that share `cores`: where n of them run, each runs cores / n of its speed.

    A processor is shared evenly over spans much longer than the system's time slices; that is what is taken.
    """

    def __init__(self, spans: Spans, cores: int) -> None:
        bounds = np.array(spans, float).reshape(-1, 2)
        self._edges: npt.NDArray[np.float64] = np.unique(np.append(bounds, 0.0))
        change = np.zeros(len(self._edges))
        np.add.at(change, np.searchsorted(self._edges, bounds[:, 0]), 1)
        np.add.at(change, np.searchsorted(self._edges, bounds[:, 1]), -1)
        running = np.cumsum(change)[:-1]
        lost = np.diff(self._edges) * (1 - cores / np.maximum(running, cores))
        self._lost = np.concatenate([[0.0], np.cumsum(lost)])

    def lost_ms(self, start: Moments, end: Moments) -> npt.NDArray[np.float64]:
        """Of programs that ran from start to end: how much less each would take with a core of its own."""
        at_start, at_end = (np.interp(np.asarray(at), self._edges, self._lost) for at in (start, end))
        return np.asarray(at_end - at_start)
