"""Two settings of a switch by turns, every n windows: what their difference is, and how sure that is.

The text goes on whatever is in force, so the two arms read different passages of it: blocks of one round, one
behind the other, see much the same. The interval is a percentile bootstrap over rounds: rounds are drawn
anew with replacement, tokens and time summed in each draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from strata_tui.analysis.flips import STRADDLE, verified_since
from strata_tui.analysis.view import View

WINDOWS = 12  # a block
FEWEST_ROUNDS = 6  # before anything is said
DRAWS = 2000


@dataclass(frozen=True)
class Block:
    """What one setting did for a while."""

    windows: int
    tokens: int
    busy_ns: int


@dataclass(frozen=True)
class Comparison:
    """The second setting against the first; `low` and `high` hold 95 % of the draws."""

    rounds: int
    ms_per_window: tuple[float, float]
    tokens_per_s: tuple[float, float]
    gain: float  # of tok/s: 0.2 is a fifth more
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """The interval leaves zero out."""
        return self.low > 0 or self.high < 0


def compare(rounds: list[tuple[Block, Block]]) -> Comparison | None:
    """None for too few rounds."""
    if len(rounds) < FEWEST_ROUNDS:
        return None
    tokens = np.array([[block.tokens for block in pair] for pair in rounds], np.float64)
    busy = np.array([[block.busy_ns for block in pair] for pair in rounds], np.float64)
    windows = np.array([[block.windows for block in pair] for pair in rounds], np.float64)
    drawn = np.random.default_rng(1).integers(0, len(rounds), (DRAWS, len(rounds)))
    rates = tokens[drawn].sum(axis=1) / busy[drawn].sum(axis=1)  # [draws, 2]
    low, high = np.percentile(rates[:, 1] / rates[:, 0] - 1, [2.5, 97.5])
    ms = busy.sum(axis=0) / windows.sum(axis=0) / 1e6
    per_s = tokens.sum(axis=0) / busy.sum(axis=0) * 1e9
    return Comparison(
        rounds=len(rounds),
        ms_per_window=(float(ms[0]), float(ms[1])),
        tokens_per_s=(float(per_s[0]), float(per_s[1])),
        gain=float(per_s[1] / per_s[0] - 1),
        low=float(low),
        high=float(high),
    )


class Alternation:
    """Says when it is the other setting's turn, and keeps the rounds.

    Args:
        name: of the switch, as an attribute.
        settings: the two values.
        begin_ns: from when on it goes.
        n_windows: a block.
    """

    def __init__(self, name: str, settings: tuple[Any, Any], begin_ns: int, n_windows: int = WINDOWS) -> None:
        self.name = name
        self.settings = settings
        self.begin_ns = begin_ns
        self.n_windows = n_windows
        self.rounds: list[tuple[Block, Block]] = []
        self._arm = 0
        self._first: Block | None = None  # of the round that is under way
        self._since: int | None = None  # when the arm's setting came into force

    @property
    def wanted(self) -> Any:
        """The value that is to be in force now."""
        return self.settings[self._arm]

    def look(self, view: View, in_force: Any, now_ns: int) -> None:
        """Account for what has been verified; `in_force`: the switch's value."""
        if in_force != self.wanted:
            return
        if self._since is None:
            self._since = self._came_into_force(view, now_ns)
        windows = verified_since(view, self._since)[STRADDLE : STRADDLE + self.n_windows]
        if len(windows) < self.n_windows:
            return
        block = Block(len(windows), int(windows["emitted"].sum()), int(windows["busy_ns"].sum()))
        if self._arm == 0:
            self._first = block
        elif self._first is not None:
            self.rounds.append((self._first, block))
        self._arm, self._since = 1 - self._arm, None

    def _came_into_force(self, view: View, now_ns: int) -> int:
        """By its mark, which may be a little older than what is known of it."""
        name = self.name.replace("_", "-") + "="
        at = next((m.at_ns for m in reversed(view.marks) if m.text.startswith(name)), self.begin_ns)
        return max(at, self.begin_ns) if at <= now_ns else now_ns

    def comparison(self) -> Comparison | None:
        return compare(self.rounds)
