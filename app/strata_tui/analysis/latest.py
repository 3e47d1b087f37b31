"""Of several events of a window the one that came last, looked up for many windows at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Latest:
    """The index of the last row of each window.

    Args:
        windows: [n] of the rows, in the order in which they came.
    """

    def __init__(self, windows: npt.NDArray[np.unsignedinteger]) -> None:
        order = np.argsort(windows, kind="stable")
        ids = windows[order].astype(np.int64)
        last = np.append(ids[1:] != ids[:-1], True)[: len(ids)]
        self._ids, self._rows = ids[last], order[last]

    def of(self, windows: Ints) -> Ints:
        """Row indices [m] for window ids [m], -1 = the window has none."""
        if not len(self._ids):
            return np.full(len(windows), -1)
        at = np.minimum(np.searchsorted(self._ids, windows), len(self._ids) - 1)
        return np.where(self._ids[at] == windows, self._rows[at], -1)

    def value(self, column: npt.NDArray[np.generic], windows: Ints, default: Ints | int) -> Ints:
        """[m] what `column` [n] holds for these windows, `default` where a window has no row."""
        at = self.of(windows)
        return np.where(at >= 0, np.append(column.astype(np.int64), 0)[at], default)
