"""A text whose drafts are right or wrong by position, and what an engine would record of its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reference.events import make
from strata_tui.analysis.schedule import Rig, Verdict, Window
from strata_tui.events import Events, Kind, MissCause, WindowFate

WRONG = 1000  # added to a token that was drafted wrong; token p stands at position p
ENDINGS = {
    "gated": Kind.guess_gated,
    "late": Kind.guess_late,
    "rolled back": Kind.guess_rolled_back,
    "ended": Kind.guess_ended,
}


def verdicts_of(right: Mapping[int, bool], tokens: int, drafts: int) -> list[Verdict]:
    """The windows of a text of so many tokens from position 1 on; row 0 of the first one stands at 0."""
    verdicts: list[Verdict] = []
    position, wanted = 0, tokens
    while wanted:
        rows = min(drafts + 1, wanted) if verdicts else 1
        accepted = 0
        while accepted < rows - 1 and right[position + accepted + 1]:
            accepted += 1
        whole = accepted == rows - 1 and wanted > rows
        verdicts.append(Verdict(accepted, whole and right[position + rows]))
        position, wanted = position + accepted + 1, wanted - accepted - 1
    return verdicts


def events_of(
    windows: Sequence[Window], rig: Rig, right: Mapping[int, bool], probability: float = 0.5
) -> Events:
    """Of the simulated windows of such a text; draft steps and commits are left out."""

    def ns(ms: float) -> int:
        return 10**9 + round(ms * 1e6)

    parts = [make(Kind.request_begin, 10**9, window=1, a=1)]
    ends = 0  # where the newest window ends
    for w in windows:
        guess = w.fate != "fresh"
        at = ends if guess else position_after(windows, w)
        ends = at + w.rows
        born = WindowFate.guess if guess else WindowFate.fresh
        parts.append(make(Kind.window, ns(w.built_ms), 0, w.id, rows=w.rows, a=at, b=born))
        for row in range(0 if guess else 1, w.rows):
            token = at + row + (0 if right[at + row] else WRONG)
            b = round(probability * (1 + (at + row) % 7 / 100) * 1e6)  # differs, as a draft layer's does
            parts.append(make(Kind.draft_token, ns(w.built_ms), 0, w.id, rows=row, a=token, b=b))
        for stage, (start, end) in enumerate(zip(w.start_ms, w.end_ms, strict=True)):
            parts.append(make(Kind.run, ns(start), ns(end) - ns(start), w.id, stage, rows=w.rows, a=at))
        if w.verified:
            end = ns(w.verdict_ms)
            parts.append(make(Kind.verdict, end - 10, 10, w.id, rows=w.rows, a=w.accepted, b=w.accepted + 1))
            for p in range(at + 1, at + w.accepted + 2):
                parts.append(make(Kind.token, end, 0, w.id, a=p, b=p))
        if guess and w.start_ms:
            parts.append(make(Kind.guess_launched, ns(w.start_ms[0]), 0, w.id, a=w.depth))
        if w.kept:
            kept = WindowFate.kept_after_fresh if w.fate == "kept after fresh" else WindowFate.kept_after_kept
            parts.append(make(Kind.guess_kept, ns(w.start_ms[-1]), 0, w.id, b=kept))
        elif guess:
            parts.append(make(ENDINGS[w.fate], ns(w.built_ms) + 1, 0, w.id))
    return np.concatenate(parts)


def position_after(windows: Sequence[Window], window: Window) -> int:
    """Of a fresh window: behind all that was verified before it."""
    return sum(w.accepted + 1 for w in windows[: windows.index(window)] if w.verified)


def bonus_miss(window: int, second: bool) -> Events:
    """A verified window whose drafts were right and whose guessed bonus was not."""
    return make(Kind.miss, 10**9, 0, window, a=MissCause.bonus_wrong, b=int(second))
