"""Which track a slice is drawn on, so that slices of one track never overlap."""

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def place(group: Ints, start: Ints, end: Ints) -> Ints:
    """The track of each slice within its group: the lowest one that is free when the slice begins.

    Args:
        group: [n] slices of different groups never meet.
        start: [n]
        end: [n] not before start; a slice may begin where another ends.

    Returns:
        [n] tracks from 0; all 0 in a group whose slices follow one another.
    """
    tracks = np.zeros(len(group), np.int64)
    order = np.lexsort((end, start, group))
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    for members in np.split(order, begins[1:]):
        latest_end = np.maximum.accumulate(end[members])
        if np.any(latest_end[:-1] > start[members][1:]):
            tracks[members] = _spread(start[members].tolist(), end[members].tolist())
    return tracks


def _spread(start: list[int], end: list[int]) -> list[int]:
    tracks: list[int] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # (end, track)
    for begins, ends in zip(start, end, strict=True):
        while busy and busy[0][0] <= begins:
            heappush(free, heappop(busy)[1])
        track = heappop(free) if free else len(busy)
        heappush(busy, (ends, track))
        tracks.append(track)
    return tracks
