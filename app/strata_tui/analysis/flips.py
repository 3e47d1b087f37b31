"""What each flip of a switch gave: the windows before it against those after it, as measured.

Windows are taken in groups of four: a single one says more about its drafts than about a switch. Time held
back by a rate or a pause counts nowhere. Nothing is said before there are enough windows on both sides; flips
that follow one another sooner are told as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.view import Mark, View
from strata_tui.analysis.windows import WindowArray

FEWEST = 20  # windows on each side
FEWEST_CLEAR = 60  # before a difference may be called one: an easy stretch of a text is many windows long
ERRORS = 3  # standard errors of the difference: at one look chance goes beyond once in hundreds
MOST = 200  # windows of a side that count: the nearest ones
GROUP = 4
STRADDLE = 2  # windows behind a flip that began before it
_NOT_COMPARED = ("rate=", "short-read=", "pipeline-log=")


@dataclass(frozen=True)
class Spread:
    """Of the groups' values: median, quartiles and the mean's standard error."""

    median: float
    low: float
    high: float
    error: float

    def overlaps(self, other: Spread) -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Side:
    """Windows of one setting."""

    windows: int
    ms_per_window: Spread
    tokens_per_window: Spread
    tokens_per_s: Spread

    @classmethod
    def of(cls, windows: WindowArray) -> Side | None:
        """None where they are too few."""
        if len(windows) < FEWEST:
            return None
        n = len(windows) // GROUP
        last = windows[-n * GROUP :]
        ms = last["busy_ns"].reshape(n, GROUP).sum(axis=1) / 1e6
        tokens = last["emitted"].astype(np.int64).reshape(n, GROUP).sum(axis=1)
        return cls(
            windows=len(windows),
            ms_per_window=_spread(ms / GROUP),
            tokens_per_window=_spread(tokens / GROUP),
            tokens_per_s=_spread(tokens / np.maximum(ms, 1e-6) * 1e3),
        )


@dataclass(frozen=True)
class Flip:
    """One flip, or several that came too close together to be told apart."""

    text: str
    at_ns: int
    before: Side
    after: Side

    @property
    def gain(self) -> float:
        """Of the median tok/s: 0.2 is a fifth more."""
        return self.after.tokens_per_s.median / self.before.tokens_per_s.median - 1

    @property
    def is_clear(self) -> bool:
        """There are windows enough, the quartiles of tok/s lie apart, and their middles by several errors."""
        before, after = self.before.tokens_per_s, self.after.tokens_per_s
        enough = min(self.before.windows, self.after.windows) >= FEWEST_CLEAR
        apart = abs(after.median - before.median) > ERRORS * math.hypot(before.error, after.error)
        return enough and apart and not before.overlaps(after)


class FlipLog:
    """Flips as they are measured, the newest last; the last one's figures grow with its windows."""

    def __init__(self) -> None:
        self._told: list[Flip] = []
        self._running: Flip | None = None
        self._before: Side | None = None
        self._texts: dict[str, str] = {}  # of the flips since, by switch
        self._since = 0  # the last flip
        self._first = 0  # the first of those told as one
        self._seen = 0  # time of the last mark looked at

    @property
    def flips(self) -> list[Flip]:
        return [*self._told, *([self._running] if self._running is not None else [])]

    def look(self, view: View) -> None:
        """Account for what the view has taken."""
        for mark in [mark for mark in view.marks if mark.at_ns > self._seen and _counts(mark)]:
            self._flip(mark, _between(view, self._since, mark.at_ns))
        if view.marks:
            self._seen = max(self._seen, view.marks[-1].at_ns)
        if self._before is not None and self._texts:
            after = Side.of(_between(view, self._since, None))
            if after is not None:
                self._running = Flip(" ".join(self._texts.values()), self._first, self._before, after)

    def begin_anew(self, at_ns: int) -> None:
        """What was before counts no more: something has flipped switches by itself."""
        self._told, self._running = self.flips, None
        self._before, self._texts = None, {}
        self._since = self._seen = at_ns

    def _flip(self, mark: Mark, until: WindowArray) -> None:
        side = Side.of(until)
        if side is not None:
            if self._before is not None and self._texts:
                text = " ".join(self._texts.values())
                self._told.append(Flip(text, self._first, self._before, side))
            self._running, self._before, self._texts, self._first = None, side, {}, mark.at_ns
        name = mark.text.split("=")[0]
        self._texts.pop(name, None)
        self._texts[name] = mark.text
        self._since = mark.at_ns


def _counts(mark: Mark) -> bool:
    return mark.kind == "toggle" and not mark.text.startswith(_NOT_COMPARED)


def verified_since(view: View, begin_ns: int) -> WindowArray:
    """The newest windows with a verdict after `begin_ns`, in the order of their verdicts."""
    rows = view.windows.rows[-8 * MOST :]
    kept = rows[(rows["accepted"] >= 0) & (rows["fate"] != Fate.PROMPT) & (rows["end_ns"] > begin_ns)]
    windows: WindowArray = kept[np.argsort(kept["end_ns"], kind="stable")]
    return windows


def _between(view: View, begin: int, end: int | None) -> WindowArray:
    windows = verified_since(view, begin)[STRADDLE:]
    nearest: WindowArray = windows[:MOST] if end is None else windows[windows["end_ns"] <= end][-MOST:]
    return nearest


def _spread(values: np.ndarray) -> Spread:
    low, median, high = np.percentile(values, [25, 50, 75])
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Spread(float(median), float(low), float(high), float(error))
