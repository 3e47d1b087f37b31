"""How fast a recorded text could have been on the same stages, with the same verdicts: the longest path.

Nodes are (verified window, stage) with their measured times. A window's run on a stage waits for the hand-off
from the stage before, and for the window ahead on the same stage. Stage 0 of a fresh window waits for the
verdict before it and the draft chain; a kept one's last stage waits for that verdict, and its stage 0 for a
place among the windows in flight: the verdict of the window that is one more than `guesses` ahead of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strata_tui.analysis.schedule import Window


@dataclass(frozen=True)
class Verified:
    """One verified window, as it was measured (ms)."""

    kept: bool
    run: Sequence[float]  # [stages]
    handoff: Sequence[float]  # [stages - 1]
    verdict: float  # the last stage's end -> the verdict
    draft: float  # fresh: the verdict before it -> stage 0; 0 for a text's first window


def lower_bound(windows: Sequence[Verified], guesses: int | None = None) -> float:
    """ms from the first window's start to the last verdict that no schedule can go below.

    Args:
        guesses: in flight at most (LB_D); None: one on each front stage (LB_inf).
    """
    if not windows:
        return 0.0
    n_stages = len(windows[0].run)
    depth = n_stages - 1 if guesses is None else guesses
    ahead = [0.0] * n_stages  # the ends of the window before, per stage
    verdicts: list[float] = []
    for w, window in enumerate(windows):
        before = verdicts[-1] if verdicts else 0.0
        place = verdicts[w - 1 - depth] if w > depth else 0.0
        ready = place if window.kept else before + window.draft
        for stage in range(n_stages):
            if stage:
                ready += window.handoff[stage - 1]
            if stage == n_stages - 1:
                ready = max(ready, before)
            ahead[stage] = ready = max(ready, ahead[stage]) + window.run[stage]
        verdicts.append(ready + window.verdict)
    return verdicts[-1]


def measured(windows: Sequence[Window]) -> list[Verified]:
    """The verified windows of one text, simulated or recorded, oldest first.

    A hand-off, a verdict and a draft chain count as the shortest of the text (drafts: of windows of as many
    rows): in a single window they may hide that something waited, which the bound must not contain.
    """
    verified = [window for window in windows if window.verified]
    fresh = [w for w, window in enumerate(verified) if not window.kept]
    stages = range(1, len(verified[0].run_ms) if verified else 0)
    handoff = [min(verified[w].start_ms[s] - verified[w].end_ms[s - 1] for w in fresh) for s in stages]
    verdict = min((window.verdict_ms - window.end_ms[-1] for window in verified), default=0.0)
    draft: dict[int, float] = {}  # by rows
    for w in fresh[1:]:
        chain = verified[w].start_ms[0] - verified[w - 1].verdict_ms
        draft[verified[w].rows] = min(chain, draft.get(verified[w].rows, chain))
    chains = [0.0 if w == 0 or window.kept else draft[window.rows] for w, window in enumerate(verified)]
    return [
        Verified(window.kept, window.run_ms, handoff, verdict, chain)
        for window, chain in zip(verified, chains, strict=True)
    ]


def actual(windows: Sequence[Window]) -> float:
    """ms from the first window's start to the last verdict."""
    verified = [window for window in windows if window.verified]
    return verified[-1].verdict_ms - verified[0].start_ms[0] if verified else 0.0
