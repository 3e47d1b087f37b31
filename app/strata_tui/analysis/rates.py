"""Tokens and their times: how fast now, smoothed, in all; how evenly."""

import math

import numpy as np
import numpy.typing as npt

NOW_NS = 1_000_000_000
SMOOTHING_S = 5.0
BUCKET_NS = 500_000_000
N_BUCKETS = 240
N_GAPS = 4096

Int64 = npt.NDArray[np.int64]


class TokenClock:
    """Rates from the times of the emitted tokens, whatever the refresh rate of who looks at it.

    Smoothed rate: with weight exp(-age / 5 s), weighted tokens over weighted decode time. Time between
    requests counts in neither.
    """

    def __init__(self) -> None:
        self.n_tokens = 0  # of the session
        self.n_request = 0  # of the request
        self.decode_ns = 0  # first token to last, requests that ended
        self.first_token_ns: int | None = None  # of the request, since its begin
        self._n_timed = 0  # tokens after the first of their request: those that decode_ns covers
        self._begin: int | None = None  # begin of the running request
        self._first: int | None = None  # its first token
        self._last: int | None = None  # its newest token
        self._recent: Int64 = np.empty(0, np.int64)  # the newest token times
        self._gaps: Int64 = np.empty(0, np.int64)
        self._weight = self._weighted_s = 0.0
        self._smoothed_to = 0
        self._buckets: dict[int, int] = {}

    def begin_request(self, at_ns: int) -> None:
        """A request starts at `at_ns`: its first token is timed from here."""
        self._begin, self._first, self._last = at_ns, None, None
        self.n_request, self.first_token_ns = 0, None

    def end_request(self) -> None:
        """No token comes until the next request."""
        if self._first is not None and self._last is not None:
            self._smooth(self._last, np.empty(0, np.int64))
            self.decode_ns += self._last - self._first
            self._n_timed += self.n_request - 1
        self._begin = self._first = None

    def take(self, times: Int64) -> None:
        """Tokens of the running request, times rising."""
        if not len(times):
            return
        if self._first is None:
            self._first = self._smoothed_to = int(times[0])
            self.first_token_ns = self._first - self._begin if self._begin is not None else None
        before = times[:1] if self._last is None else np.array([self._last], np.int64)
        gaps = np.diff(np.concatenate([before, times]))
        self._gaps = np.concatenate([self._gaps, gaps[1:] if self._last is None else gaps])[-N_GAPS:]
        self._smooth(int(times[-1]), times)
        self._last = int(times[-1])
        self.n_tokens += len(times)
        self.n_request += len(times)
        self._recent = np.concatenate([self._recent, times])[-N_GAPS:]
        bucket, count = np.unique(times // BUCKET_NS, return_counts=True)
        for b, n in zip(bucket.tolist(), count.tolist(), strict=True):
            self._buckets[b] = self._buckets.get(b, 0) + n
        for b in sorted(self._buckets)[:-N_BUCKETS]:
            del self._buckets[b]

    def _smooth(self, to_ns: int, times: Int64) -> None:
        elapsed = max(0.0, (to_ns - self._smoothed_to) / 1e9)
        decay = math.exp(-elapsed / SMOOTHING_S)
        ages = (to_ns - times) / 1e9
        self._weight = self._weight * decay + float(np.exp(-ages / SMOOTHING_S).sum())
        self._weighted_s = self._weighted_s * decay + SMOOTHING_S * (1 - decay)
        self._smoothed_to = max(self._smoothed_to, to_ns)

    def now(self, at_ns: int) -> float | None:
        """Tokens per second over the last second (since the first token of all where that is later).

        Where fewer than 8 tokens of a running text fell into it, over the last 8: a slow text has a rate too.
        """
        if not len(self._recent):
            return None
        since = max(at_ns - NOW_NS, int(self._recent[0]) if self.n_tokens == len(self._recent) else 0)
        n = int(np.count_nonzero(self._recent > since))
        if n < 8 and self._first is not None and len(self._recent) > 1:
            n = min(8, len(self._recent) - 1)
            since = int(self._recent[-n - 1])
        return n * 1e9 / (at_ns - since) if at_ns > since else None

    def smoothed(self) -> float | None:
        """Tokens per second, exponentially weighted over decode time."""
        return self._weight / self._weighted_s if self._weighted_s > 0.05 else None

    def session(self) -> float | None:
        """(tokens - 1) / (first token to last), summed over the requests."""
        n, ns = self._n_timed, self.decode_ns
        if self._first is not None and self._last is not None:
            n, ns = n + self.n_request - 1, ns + self._last - self._first
        return n * 1e9 / ns if ns > 0 else None

    def gap_percentiles(self) -> tuple[float, float] | None:
        """p50 and p95 of the time between two tokens, ms, over the last 4096 (a window's come together)."""
        if not len(self._gaps):
            return None
        p50, p95 = np.percentile(self._gaps, [50, 95])
        return float(p50) / 1e6, float(p95) / 1e6

    def history(self, at_ns: int, n: int = 60) -> list[float]:
        """Tokens per second of the last n whole half seconds, oldest first."""
        last = at_ns // BUCKET_NS
        return [self._buckets.get(b, 0) * 1e9 / BUCKET_NS for b in range(last - n, last)]
