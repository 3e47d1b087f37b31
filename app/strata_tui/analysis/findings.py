"""What the figures of a stretch of decoding mean, and what to flip: rules, each a sentence with its weight.

A rule says what was measured and names a remedy; it never promises what the remedy gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from strata_tui.analysis.guesses import GuessCounts

WORTH = 0.05  # of the time: less is not told


@dataclass(frozen=True)
class Finding:
    """A sentence; `weight` is the share of the time that it is about."""

    weight: float
    text: str
    key: str = ""  # that flips what it names


@dataclass(frozen=True)
class Situation:
    """What the rules look at.

    Attributes:
        stages: shares of the time by the words of `why.PARTS`.
        path: the critical path's (part, stage, share), the largest first.
        over_full: actual time over the lower bound at full depth.
    """

    stages: tuple[Mapping[str, float], ...]
    switches: Mapping[str, Any]
    pipeline_max: int
    guesses: GuessCounts
    path: tuple[tuple[str, int, float], ...]
    over_full: float | None
    drafted: int
    accepted: int

    def most(self, part: str) -> tuple[int, float]:
        """The stage with the largest share of this part."""
        stage = max(range(len(self.stages)), key=lambda s: self.stages[s][part])
        return stage, self.stages[stage][part]

    @property
    def windows_in_flight(self) -> int:
        return int(self.switches.get("pipeline_windows", 0))


def findings(of: Situation) -> tuple[Finding, ...]:
    """The heaviest first; one that says that all is well where there is nothing to tell."""
    rules = (_held, _verdict, _hand_off, _host, _draft, _undo, _path, _one_stage)
    told = sorted((finding for rule in rules for finding in rule(of)), key=lambda finding: -finding.weight)
    return tuple(told) or (_well(of),)


def bottleneck(of: Situation) -> tuple[int, float] | None:
    """The stage whose runs are the most of the critical path, and their share; None where none stands out."""
    runs = [(stage, share) for part, stage, share in of.path if part == "run"]
    if not runs or len(of.stages) < 2:
        return None
    stage, share = runs[0]
    return (stage, share) if len(runs) == 1 or share > 1.15 * runs[1][1] else None


def _held(of: Situation) -> Iterator[Finding]:
    _, share = of.most("idle_no_work")
    rate = of.switches.get("rate", 0)
    if share < WORTH:
        return
    if rate:
        text = f"the cap of {rate:g} tok/s holds decoding back {share:.0%} of the time: ] lifts it"
        yield Finding(2 * share, text, "]")
    elif share > 0.15:
        yield Finding(share, f"no text was being written, or it was paused, {share:.0%} of the time")


def _verdict(of: Situation) -> Iterator[Finding]:
    if len(of.stages) < 2:
        return
    stage, share = of.most("idle_verdict")
    if share < 2 * WORTH:
        return
    waits = f"stage {stage} waits {share:.0%} of the time for a verdict"
    windows, most = of.windows_in_flight, of.pipeline_max
    if most < 2:
        yield Finding(share, f"{waits}: open the model with --pipeline-max 2 to put windows in flight")
    elif windows < 2:
        yield Finding(share, f"{waits}: w puts a second window in flight", "w")
    else:
        yield Finding(share, *_why_guesses_fail(of, waits))


def _why_guesses_fail(of: Situation, waits: str) -> tuple[str, str]:
    """Front stages wait for verdicts although guesses may run ahead."""
    g = of.guesses
    if not g.built:
        return f"{waits} and no guess was built: it takes drafts (d, +)", "d"
    if 2 * g.gated > g.built:
        theta = of.switches.get("theta", 0)
        return f"{waits}: theta={theta:g} gates {g.gated:,} of {g.built:,} guesses; g changes the gate", "g"
    if 2 * g.late > g.built:
        return f"{waits}: {g.late:,} of {g.built:,} guesses are late; - makes drafts shorter", "-"
    if g.decided and g.kept < 0.6 * g.decided:
        fell = g.rolled_back - g.misses
        cause = (
            f"missed {g.draft_wrong:,} by a draft, {g.bonus_wrong:,} by the bonus"
            + (f", {fell:,} behind those" if fell > 0 else "")
            if g.misses
            else "the rest rolled back"
        )
        true = f"{g.kept:,} of {g.decided:,} guesses came true"
        return f"{waits}: {true} ({cause}); - makes drafts shorter", "-"
    if of.windows_in_flight < of.pipeline_max:
        return f"{waits}: w puts one more window in flight", "w"
    kept = f"{g.kept / g.decided:.0%} of the guesses come true" if g.decided else "no guess was decided"
    return f"{waits}, with as many windows in flight as there is memory for ({kept})", ""


def _hand_off(of: Situation) -> Iterator[Finding]:
    stage, share = of.most("idle_hand_off")
    if share < 3 * WORTH or stage == 0:
        return
    before = max(range(stage), key=lambda s: of.stages[s]["run"])
    waits = f"stage {stage} waits {share:.0%} for its input"
    if of.windows_in_flight < 2:
        if of.most("idle_verdict")[1] < 2 * WORTH:
            yield Finding(share, f"{waits}: stages take turns; w puts windows in flight", "w")
        return
    slowest, g = bottleneck(of), of.guesses
    if 2 * (g.gated + g.late) >= g.built:  # as good as serial: stages take turns
        yield Finding(share, *_why_guesses_fail(of, waits))
        return
    fails = g.decided and g.kept < 0.6 * g.decided
    if fails and (slowest is None or slowest[0] >= stage):
        yield Finding(share, *_why_guesses_fail(of, waits))
        return
    text = f"{waits}, mostly from stage {before}, which runs {of.stages[before]['run']:.0%}"
    yield Finding(share, f"{text}: fewer layers there (strata-tui plan)")


def _host(of: Situation) -> Iterator[Finding]:
    stage, share = of.most("idle_host")
    if share < WORTH:
        return
    takes = f"the host keeps stage {stage} waiting {share:.0%} of the time, to notice, stage and launch"
    if len(of.stages) > 1 and not of.switches.get("overlap"):
        yield Finding(share, f"{takes}: o launches the next stage ahead", "o")
    elif share >= 2 * WORTH:
        yield Finding(share, f"{takes}: are there fewer cores than threads? (--threads)")


def _draft(of: Situation) -> Iterator[Finding]:
    stage, share = of.most("idle_draft")
    if share < 2 * WORTH:
        return
    took = f"{of.accepted / of.drafted:.0%} of drafts are accepted" if of.drafted else "no draft was verified"
    text = f"stage {stage} waits {share:.0%} of the time for the draft chain ({took}): - makes it shorter"
    yield Finding(share, text, "-")


def _undo(of: Situation) -> Iterator[Finding]:
    share, stage = max((s["undo"] + s["idle_undo"], i) for i, s in enumerate(of.stages))
    if share >= WORTH:
        yield Finding(share, f"undos cost stage {stage} {share:.0%} of the time: g raises the gate", "g")


def _path(of: Situation) -> Iterator[Finding]:
    slowest = bottleneck(of)
    if slowest is None:
        return
    stage, share = slowest
    others = max((s for part, other, s in of.path if part == "run" and other != stage), default=0.0)
    if share > 1.5 * others and share >= 0.4:
        text = f"{share:.0%} of the critical path is stage {stage}'s run: balance first (strata-tui plan)"
        yield Finding(share - others, text)


def _one_stage(of: Situation) -> Iterator[Finding]:
    if len(of.stages) == 1 and of.stages[0]["run"] >= 0.5:
        run = of.stages[0]["run"]
        yield Finding(
            run / 4, f"one stage, which runs {run:.0%} of the time: only drafts or a faster one help"
        )


def _well(of: Situation) -> Finding:
    if of.over_full is not None:
        return Finding(0.0, f"{of.over_full:.2f} x what these stages and verdicts allow: nothing to flip")
    return Finding(0.0, "no cause of idle time stands out")
