"""What became of the guesses: windows launched on front stages before the verdict ahead of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from strata_tui.events import Events, Kind, MissCause


@dataclass(frozen=True)
class GuessCounts:
    """built = gated + late + launched; launched = kept + rolled_back + ended, but for those still in flight.

    A miss is a verdict behind which a launched guess did not come true, counted by its cause; it rolls back
    every guess launched. `second_choice_right`: of bonus_wrong, the draft's second choice was the bonus.
    """

    built: int = 0
    gated: int = 0
    late: int = 0
    launched: int = 0
    kept: int = 0
    rolled_back: int = 0
    ended: int = 0
    draft_wrong: int = 0
    bonus_wrong: int = 0
    forced: int = 0
    second_choice_right: int = 0

    @property
    def decided(self) -> int:
        """Guesses that met a verdict: what the keep rate is a share of."""
        return self.kept + self.rolled_back

    @property
    def misses(self) -> int:
        return self.draft_wrong + self.bonus_wrong + self.forced

    def __add__(self, other: GuessCounts) -> GuessCounts:
        return GuessCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count_guesses(events: Events) -> GuessCounts:
    """The guesses of these events."""
    kind = events["kind"]
    misses = events[kind == Kind.miss]
    second_choice = (misses["a"] == MissCause.bonus_wrong) & (misses["b"] == 1)

    def n(of: Kind) -> int:
        return int(np.count_nonzero(kind == of))

    def because(cause: MissCause) -> int:
        return int(np.count_nonzero(misses["a"] == cause))

    return GuessCounts(
        built=n(Kind.guess_built),
        gated=n(Kind.guess_gated),
        late=n(Kind.guess_late),
        launched=n(Kind.guess_launched),
        kept=n(Kind.guess_kept),
        rolled_back=n(Kind.guess_rolled_back),
        ended=n(Kind.guess_ended),
        draft_wrong=because(MissCause.drafts_wrong),
        bonus_wrong=because(MissCause.bonus_wrong),
        forced=because(MissCause.forced),
        second_choice_right=int(np.count_nonzero(second_choice)),
    )
