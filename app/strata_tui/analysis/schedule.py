"""What a schedule is made of: a rig's times, switches, verdicts, and the windows that come of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Rig:
    """How long things take, in ms. `run` is per stage, front to back; any number of stages."""

    run: Sequence[float]
    handoff: float | Sequence[float] = 0.0  # a window's end on a stage -> its start on the next; per boundary
    verdict: float = 0.0  # the last stage's end -> the verdict
    draft: float = 0.0  # one output of the draft chain
    catch_up: float | None = None  # the chain's pass over the verified rows; None: as long as one output
    commit: float = 0.0
    undo: float = 0.0  # restoring the state and committing anew
    launch: float = 0.0  # a launch by the host, after its last condition came true
    cut: float | None = None  # a rolled-back program ends so long after its verdict; None: runs to its end


@dataclass(frozen=True)
class Switches:
    windows: int = 0  # in flight: 0 = serial
    rows: int = 4
    first_rows: int | None = None  # of the text's first window, which then has no chain; None: `rows`
    allocated: int | None = None  # slots of the ring; None: `windows`
    overlap: bool = False
    chain_ahead: bool = False
    running_step: str = "awaited"  # of the chain, by the verdict; "queued": by the next chain; "dropped"
    late_catch_up: bool = False  # a tail that is continued is caught up at the next miss, not before
    undo_again: bool = True  # undo also where W0 was committed with the very rows of the verdict
    theta: float = 0.0
    spec_depth: int = 32
    force_miss: int = 0
    tokens: int | None = None  # wanted; None: the text ends with the verdicts


class Verdict(NamedTuple):
    """What is known of a verified window: drafts accepted, and whether the guess behind it comes true."""

    accepted: int
    guess_right: bool
    estimate: float = 1.0  # of the guess behind it
    run: Sequence[float] | None = None  # ms per stage of this very window, where it is known
    rows: int | None = None  # of this very window; None: those of the switches


@dataclass(eq=False, slots=True)
class Window:
    id: int
    slot: int
    rows: int
    built_ms: float
    estimate: float = 1.0
    forced_to_miss: bool = False
    fate: str = "guess"  # fresh, kept after fresh, kept after kept | gated, late, rolled back, ended
    depth: int = 0  # windows ahead of it when it was launched
    start_ms: list[float] = field(default_factory=list)  # per stage that it was launched on
    end_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)  # when that stage's queue came to it
    committed: set[int] = field(default_factory=set)  # front stages, speculatively
    verdict_ms: float = math.nan
    accepted: int = 0

    @property
    def verified(self) -> bool:
        return not math.isnan(self.verdict_ms)

    @property
    def kept(self) -> bool:
        return self.fate.startswith("kept")

    @property
    def run_ms(self) -> list[float]:
        return [end - start for start, end in zip(self.start_ms, self.end_ms, strict=True)]

    def finished(self, stage: int, now: float) -> bool:
        return len(self.end_ms) > stage and self.end_ms[stage] <= now


def draws(k: float, n: int, rows: int = 4, seed: int = 1) -> list[Verdict]:
    """n verdicts of which a share of about k, independent of one another, has a right guess behind it."""
    rng = np.random.default_rng(seed)
    right, accepted = rng.random(n) < k, rng.integers(0, rows, n)
    return [Verdict(rows - 1 if r else int(a), bool(r)) for r, a in zip(right, accepted, strict=True)]
