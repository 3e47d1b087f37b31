"""Two outcomes side by side: the first token that differs, the first layer whose state does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """A text and the state after it.

    Attributes:
        length: rows that the state holds.
        layers: a hash of each layer's recurrent state, or of its K/V up to the length.
        draft_cells: a hash of the draft layer's K/V up to `draft_length`; None: there are none.
    """

    tokens: Sequence[int]
    length: int = 0
    layers: Sequence[int] = ()
    draft_cells: int | None = None
    draft_length: int = 0
    error: str = ""  # of the request; nothing else counts then
    finish: str = ""  # stop, length, context

    @staticmethod
    def of(tokens: Sequence[int], fingerprint: Mapping[str, Any], finish: str) -> Outcome:
        return Outcome(
            tuple(tokens),
            fingerprint["length"],
            tuple(fingerprint["layers"]),
            fingerprint.get("draft"),
            fingerprint.get("draft_length", 0),
            finish=finish,
        )


def text_difference(plain: Outcome, arm: Outcome) -> str:
    """Where the text leaves plain decoding's; "" if it doesn't."""
    for i, (expected, got) in enumerate(zip(plain.tokens, arm.tokens, strict=False)):
        if expected != got:
            return f"token {i} is {got}, plain decoding has {expected}"
    if len(plain.tokens) != len(arm.tokens):
        return f"{len(arm.tokens)} tokens, plain decoding has {len(plain.tokens)}"
    return ""


def finish_difference(plain: Outcome, arm: Outcome) -> str:
    """What ended the text, if it is not what ended plain decoding's."""
    if plain.finish == arm.finish:
        return ""
    return f"the text ended by {arm.finish}, plain decoding's by {plain.finish}"


def state_difference(plain: Outcome, arm: Outcome) -> str:
    """Which layer's state is not plain decoding's; "" if all are."""
    if plain.length != arm.length:
        return f"the state holds {arm.length} rows, plain decoding's {plain.length}"
    if len(plain.layers) != len(arm.layers):
        return f"the state has {len(arm.layers)} layers, plain decoding's {len(plain.layers)}"
    differing = [
        i for i, (expected, got) in enumerate(zip(plain.layers, arm.layers, strict=True)) if expected != got
    ]
    if not differing:
        return ""
    return f"the state of layer {differing[0]} differs ({len(differing)} of {len(plain.layers)} layers do)"
