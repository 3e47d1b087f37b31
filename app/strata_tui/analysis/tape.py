"""What a recorded text tells of its drafts, position by position: what any other window over it would accept.

The text never depends on how it was computed, so another draft length or other windows in flight meet the
same tokens. A draft of the token at a position was right or wrong there, as recorded; a position that no
draft was made for, from a context that was right, is unknown (behind a window that was accepted whole, where
no guess was built). Unknown ones are drawn with the rate of the drafts that are known to stand deepest.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from strata_tui.analysis.passages import Passage
from strata_tui.analysis.schedule import Verdict
from strata_tui.events import Events, Kind, MissCause

LOOKUP_ESTIMATE = 0.75  # of a guess copied from earlier text: the engine's


@dataclass
class Tape:
    """Of one text; positions are those of the tokens."""

    first: int  # position of the first window's row 0
    tokens: int  # generated
    hit: dict[int, bool]  # was the draft of this position's token right?
    probability: dict[int, float]  # of that draft
    second: dict[int, bool]  # where the guessed bonus was wrong: was the draft's second choice right?
    estimate: dict[tuple[int, int], float]  # of the guess at a position behind a window of so many rows
    rate: float  # with which unknown drafts are right
    second_rate: float
    mean_probability: tuple[float, float] = (0.0, 0.0)  # of drafts that were wrong, right
    basis: list[str] = field(default_factory=list)

    def drawn(self, seed: int) -> Tape:
        """The same with the unknown positions filled in."""
        positions = range(self.first + 1, self.first + self.tokens + 1)
        draws = np.random.default_rng(seed).random((self.tokens, 2)) < (self.rate, self.second_rate)
        hit, second = (dict(zip(positions, column, strict=True)) for column in draws.T.tolist())
        hit |= self.hit
        second |= self.second
        probability = {position: self.mean_probability[hit[position]] for position in positions}
        probability |= self.probability
        return Tape(
            self.first,
            self.tokens,
            hit,
            probability,
            second,
            self.estimate,
            self.rate,
            self.second_rate,
            self.mean_probability,
        )

    @property
    def unknown(self) -> list[int]:
        """Positions without a draft; the first token of a text never has one."""
        return [p for p in range(self.first + 2, self.first + self.tokens + 1) if p not in self.hit]

    def verdicts(self, draft_max: int, min_p: float = 0.0, second_bonus: bool = False) -> list[Verdict]:
        """The verified windows of the text with drafts of this length; all positions must be known.

        `Verdict.rows` is set; a text of n tokens takes as many windows as it takes.
        """
        verdicts: list[Verdict] = []
        position, wanted = self.first, self.tokens
        while wanted > 0:
            rows = min(draft_max + 1, wanted) if verdicts else 1
            if min_p > 0:
                floor = (k for k in range(1, rows) if self.probability.get(position + k, 0.0) < min_p)
                rows = next(floor, rows)
            accepted = 0
            while accepted < rows - 1 and self.hit[position + accepted + 1]:
                accepted += 1
            behind = position + rows
            right = accepted == rows - 1 and behind in self.hit and self.hit[behind]
            if second_bonus and accepted == rows - 1:
                right = right or self.second.get(behind, False)
            estimate = self.guess_estimate(position, rows)
            verdicts.append(Verdict(accepted, right and wanted > accepted + 1, estimate, rows=rows))
            position += accepted + 1
            wanted -= accepted + 1
        return verdicts

    def guess_estimate(self, position: int, rows: int) -> float:
        """Of the guess behind the window at `position`: as recorded, or as the engine would reckon it."""
        behind = position + rows
        if (behind, rows) in self.estimate:
            return self.estimate[behind, rows]
        if not any(self.mean_probability):
            return LOOKUP_ESTIMATE
        known = self.probability.get
        return math.prod([known(p, 0.0) for p in range(position + 1, behind + 1)], start=1.0)


def read_tape(events: Events, windows: Sequence[Passage]) -> Tape:
    """The drafts of one text.

    Args:
        events: of one request.
        windows: its passages.
    """
    known = {window.id: window for window in windows}
    text, drafts = _tokens(events), _drafts(events, known)
    verified = [window for window in windows if window.verified]
    first = verified[0].position if verified else 0
    tokens = sum(window.emitted for window in verified)
    stated = {p for rows in drafts.values() for k, (_, p) in rows.items() if k > 0}
    # Replayed drafts state one probability and depend on their position alone, not on the drafts before.
    independent = len(stated) == 1 and stated != {0.0}
    forced = set(events["window"][(events["kind"] == Kind.guess_built) & (events["b"] == 1)].tolist())
    tape = Tape(first, tokens, {}, {}, {}, {}, 0.0, 0.0)
    by_depth: dict[int, list[bool]] = {}  # row -> right, given that those before were; bonus: row T
    right_to_end: dict[int, tuple[bool, int]] = {}  # end position -> of the newest window there: right? rows
    for window in windows:
        rows = drafts.get(window.id, {})
        guess = 0 in rows
        context, ahead = right_to_end.get(window.position, (False, 0)) if guess else (True, 0)
        for row in range(0 if guess else 1, window.rows):
            if row not in rows or (row == 0 and window.id in forced):
                context = context and row != 0
                continue
            token, probability = rows[row]
            position = window.position + row
            if position not in text or not (context or independent):
                context = False
                continue
            right = token == text[position]
            tape.hit.setdefault(position, right)
            tape.probability.setdefault(position, probability)
            if context:
                by_depth.setdefault(ahead if row == 0 else row, []).append(right)
            context = context and right
        right_to_end[window.position + window.rows] = context, window.rows
    _note_guesses(tape, events, known, right_to_end)
    _fill_rates(tape, by_depth, stated if independent else set())
    return tape


def _tokens(events: Events) -> dict[int, int]:
    """Position -> token."""
    emitted = events[events["kind"] == Kind.token]
    return dict(zip(emitted["b"].tolist(), emitted["a"].tolist(), strict=True))


def _drafts(events: Events, known: Container[int]) -> dict[int, dict[int, tuple[int, float]]]:
    """Window -> row -> token, probability."""
    drafts: dict[int, dict[int, tuple[int, float]]] = {}
    stated = events[events["kind"] == Kind.draft_token]
    told = (stated[name].tolist() for name in ("window", "rows", "a"))
    for window, row, token, probability in zip(*told, (stated["b"] / 1e6).tolist(), strict=True):
        if window in known:  # the prompt is read through windows too
            drafts.setdefault(window, {})[row] = token, probability
    return drafts


def _note_guesses(
    tape: Tape, events: Events, known: dict[int, Passage], ends: dict[int, tuple[bool, int]]
) -> None:
    for event in events[events["kind"] == Kind.guess_built].tolist():
        guess = known.get(event[2])
        if guess is not None and guess.position in ends:
            tape.estimate[guess.position, ends[guess.position][1]] = event[6] / 1e6
    for event in events[events["kind"] == Kind.miss].tolist():
        window = known.get(event[2])
        if window is not None and event[6] == MissCause.bonus_wrong:
            tape.second[window.position + window.rows] = event[7] == 1


def _fill_rates(tape: Tape, by_depth: dict[int, list[bool]], stated: set[float]) -> None:
    """What unknown positions are drawn with, and on what ground."""
    probabilities: tuple[list[float], list[float]] = [], []
    for position, right in tape.hit.items():
        probabilities[right].append(tape.probability[position])
    wrong, right_ones = (float(np.mean(values)) if values else 0.0 for values in probabilities)
    tape.mean_probability = wrong, right_ones
    if tape.second:
        tape.second_rate = sum(tape.second.values()) / len(tape.second)
    unknown = len(tape.unknown)
    if not unknown:
        return
    if stated:
        tape.rate = stated.pop()
        said = f"as often as the replayed drafts are ({tape.rate:.0%})"
    elif by_depth:
        depth = max(by_depth, key=lambda row: (len(by_depth[row]) >= 5, row))
        tape.rate = sum(by_depth[depth]) / len(by_depth[depth])
        of = f"{tape.rate:.0%} of {len(by_depth[depth])}"
        said = f"as often as the recorded draft {depth} behind accepted ones ({of})"
    else:
        said = "never: the recording has no drafts"
    tape.basis.append(f"{unknown} of {tape.tokens} tokens have no recorded draft; taken as right {said}")
