"""Two recorded runs at one token: when each wrote it, in which window, and how far apart they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from strata_tui.record.compare import Comparison, Side


class At(NamedTuple):
    """A run at the verdict that wrote a token."""

    window: int
    rows: int
    first: int  # token that the window wrote first, counted over all texts that are compared
    emitted: int
    start_ns: int  # the window is built
    end_ns: int  # its verdict
    busy_ms: float  # from the verdict before, less what was held back
    passed_ms: float  # up to its verdict, less what was held back, over all texts


class Run:
    """One side, by token."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._column = {name: side.of(name) for name in ("id", "rows", "emitted", "start_ns", "end_ns")}
        self._busy_ms = side.of("busy_ns") / 1e6
        self._tokens, self._passed_ms = side.clock()

    def at(self, token: int) -> At:
        """Where it was when it wrote this token; the last window where it wrote fewer."""
        i = int(np.searchsorted(self._tokens[1:], token, side="right"))
        i = min(i, len(self._busy_ms) - 1)
        row = {name: int(column[i]) for name, column in self._column.items()}
        first, passed = int(self._tokens[i]), float(self._passed_ms[i + 1])
        busy = float(self._busy_ms[i])
        return At(row["id"], row["rows"], first, row["emitted"], row["start_ns"], row["end_ns"], busy, passed)

    def passed_ms(self, tokens: np.ndarray) -> np.ndarray:
        """[n] ms passed when so many tokens were there; within a window they share its time evenly."""
        ms: np.ndarray = np.interp(tokens, self._tokens, self._passed_ms)
        return ms


class Aligned:
    """Both sides.

    Attributes:
        n_tokens: that both wrote, over all texts that are compared; at least 1.
        tokens: their ids, as far as the recording knows them.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.a, self.b = Run(comparison.a), Run(comparison.b)
        self.n_tokens = min(comparison.a.n_tokens, comparison.b.n_tokens)
        self.tokens = _tokens(comparison)[: self.n_tokens]

    @property
    def is_empty(self) -> bool:
        return self.n_tokens < 1

    def behind_ms(self, token: int) -> float:
        """How much later B was there than A, from the beginning; negative: earlier."""
        here = np.array([token + 1.0])
        return float(self.b.passed_ms(here)[0] - self.a.passed_ms(here)[0])

    def lost_ms(self, parts: int) -> np.ndarray:
        """[parts] how much more time B took than A for each of so many even parts of the tokens."""
        edges = np.linspace(0, self.n_tokens, parts + 1)
        lost: np.ndarray = np.diff(self.b.passed_ms(edges)) - np.diff(self.a.passed_ms(edges))
        return lost

    def most_different(self, parts: int) -> list[int]:
        """The first token of each part, those where the runs differ most first."""
        edges = np.linspace(0, self.n_tokens, parts + 1)[:-1].astype(int)
        order = np.argsort(-np.abs(self.lost_ms(parts)), kind="stable")
        return [int(edges[i]) for i in order]

    def step(self, token: int, windows: int) -> int:
        """The first token of A's window so many further on, or back."""
        for _ in range(abs(windows)):
            here = self.a.at(token)
            token = here.first + here.emitted if windows > 0 else self.a.at(max(0, here.first - 1)).first
        return min(max(0, token), self.n_tokens - 1)


def _tokens(comparison: Comparison) -> list[int]:
    """Of the texts that are compared: those that both recordings have from their start, in order."""
    a, b = comparison.a, comparison.b
    pairs = zip(a.recording.requests, b.recording.requests, strict=False)
    whole = [request for request, other in pairs if not (request.emitted or other.emitted)]
    tokens: list[int] = []
    for request, windows in zip(whole, a.windows, strict=False):
        tokens += request.tokens[: int(windows["emitted"].sum())]
    return tokens
