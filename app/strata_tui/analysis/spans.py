"""A bounded, sorted store for spans of one lane."""

import numpy as np
import numpy.typing as npt

SpanArray = npt.NDArray[np.void]

SPAN_DTYPE: np.dtype[np.void] = np.dtype(
    [("start", "<i8"), ("end", "<i8"), ("window", "<u4"), ("state", "u1")], align=True
)


class Ring:
    """The last `capacity` rows of a growing table, contiguous.

    Appending costs O(rows) amortised: rows go behind the last one, and when the buffer is full the newest
    `capacity` rows move to its front.
    """

    def __init__(self, dtype: np.dtype[np.void], capacity: int) -> None:
        self.capacity = capacity
        self.dropped = 0  # rows that made room
        self._rows = np.empty(min(1024, 2 * capacity), dtype)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def rows(self) -> npt.NDArray[np.void]:
        """A view of what is kept, oldest first; it may be written to, and it dies with the next append."""
        return self._rows[self._begin : self._end]

    def append(self, rows: npt.NDArray[np.void]) -> None:
        """Add rows behind the last one; the oldest beyond `capacity` are let go."""
        if len(rows) > self.capacity:
            self.dropped += len(rows) - self.capacity
            rows = rows[-self.capacity :]
        if self._end + len(rows) > len(self._rows):
            self._make_room(len(rows))
        self._rows[self._end : self._end + len(rows)] = rows
        self._end += len(rows)
        surplus = len(self) - self.capacity
        if surplus > 0:
            self.dropped += surplus
            self._begin += surplus

    def _make_room(self, n_rows: int) -> None:
        kept = self.rows
        size = len(self._rows)
        if len(kept) + n_rows > size // 2:
            size = min(2 * size + n_rows, 2 * self.capacity + n_rows)
        grown = np.empty(max(size, len(kept) + n_rows), self._rows.dtype)
        grown[: len(kept)] = kept
        self._rows, self._begin, self._end = grown, 0, len(kept)


class SpanTrack:
    """Spans of one lane, sorted by their start, whatever order the producers' rings were drained in."""

    def __init__(self, capacity: int = 1 << 18) -> None:
        self._ring = Ring(SPAN_DTYPE, capacity)
        self._longest = 0

    def __len__(self) -> int:
        return len(self._ring)

    def add(self, spans: SpanArray) -> None:
        """Merge new spans in; O(new) but for a short tail that they may overlap."""
        if not len(spans):
            return
        spans = spans[np.argsort(spans["start"], kind="stable")]
        self._longest = max(self._longest, int((spans["end"] - spans["start"]).max()))
        kept = self._ring.rows
        tail = int(np.searchsorted(kept["start"], spans["start"][0], side="right"))
        if tail < len(kept):
            late = np.concatenate([kept[tail:], spans])
            late = late[np.argsort(late["start"], kind="stable")]
            n_over = len(kept) - tail
            kept[tail:] = late[:n_over]
            spans = late[n_over:]
        self._ring.append(spans)

    def between(self, t0: int, t1: int) -> SpanArray:
        """The spans that reach into [t0, t1), not clipped."""
        rows = self._ring.rows
        low = int(np.searchsorted(rows["start"], t0 - self._longest))
        high = int(np.searchsorted(rows["start"], t1))
        near = rows[low:high]
        return near[near["end"] > t0]

    @property
    def last(self) -> SpanArray | None:
        """The span that started last, as a row of one."""
        return self._ring.rows[-1:] if len(self._ring) else None
