"""More programs at a time than cores: each gets its share, and so each takes longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from strata_tui.placement import SharedCores

Spans = Sequence[tuple[float, float]] | npt.NDArray[np.float64]  # [n, 2] start, end, ms
Moments = float | npt.NDArray[np.float64]  # ms


class Crowd:
    """Programs that share cores for `at_once` of them: where n run, each has at_once / n of its speed.

    A processor is shared evenly over spans much longer than the system's time slices; that is what is taken.
    """

    def __init__(self, spans: Spans, at_once: int) -> None:
        bounds = np.array(spans, float).reshape(-1, 2)
        self._edges: npt.NDArray[np.float64] = np.unique(np.append(bounds, 0.0))
        change = np.zeros(len(self._edges))
        np.add.at(change, np.searchsorted(self._edges, bounds[:, 0]), 1)
        np.add.at(change, np.searchsorted(self._edges, bounds[:, 1]), -1)
        running = np.cumsum(change)[:-1]
        lost = np.diff(self._edges) * (1 - at_once / np.maximum(running, at_once))
        self._lost = np.concatenate([[0.0], np.cumsum(lost)])

    def lost_ms(self, start: Moments, end: Moments) -> npt.NDArray[np.float64]:
        """Of programs that ran from start to end: how much less each would take with a core of its own."""
        at_start, at_end = (np.interp(np.asarray(at), self._edges, self._lost) for at in (start, end))
        return np.asarray(at_end - at_start)


class Crowds:
    """A crowd for each set of cores that lanes share; lanes that share none lose nothing."""

    def __init__(self, spans: Mapping[int, Spans], shared: Sequence[SharedCores]) -> None:
        self._of = {
            lane: crowd
            for cores in shared
            for crowd in [Crowd(_together(spans, cores), cores.at_once)]
            for lane in cores.lanes
        }

    def lost_ms(self, lane: int, start: Moments, end: Moments) -> npt.NDArray[np.float64]:
        """See `Crowd`."""
        crowd = self._of.get(lane)
        return crowd.lost_ms(start, end) if crowd else np.zeros(np.shape(start))


def _together(spans: Mapping[int, Spans], cores: SharedCores) -> npt.NDArray[np.float64]:
    return np.concatenate([np.array(spans.get(lane, ()), float).reshape(-1, 2) for lane in cores.lanes])
