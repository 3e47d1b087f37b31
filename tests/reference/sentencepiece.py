"""SentencePiece's BPE as its algorithm says, and the keys of a file with such a tokenizer."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def pieces_of(text: str, scores: Mapping[str, float]) -> list[str]:
    """Merges the adjacent pair whose union has the best score, the leftmost of equals, until none is left.

    Args:
        text: spaces written as U+2581 already.
        scores: of every token that a text can become.
    """
    symbols = list(text)
    while True:
        joined = [left + right for left, right in pairwise(symbols)]
        known = [(-scores[token], i) for i, token in enumerate(joined) if token in scores]
        if not known:
            return symbols
        _, i = min(known)
        symbols[i : i + 2] = [joined[i]]


def ids_of(text: str, scores: Mapping[str, float], ids: Mapping[str, int]) -> list[int]:
    """Ids with byte fallback for symbols that are no token."""
    out: list[int] = []
    for piece in pieces_of(text.replace(" ", SPACE), scores):
        out += [ids[piece]] if piece in scores else [ids[f"<0x{byte:02X}>"] for byte in piece.encode()]
    return out


def sentencepiece_keys(
    scores: Mapping[str, float],
    control: Sequence[str] = (),
    user_defined: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """<unk>, 256 bytes, these tokens in order (ids from 257), then the special ones."""
    tokens = [
        "<unk>",
        *(f"<0x{b:02X}>" for b in range(256)),
        *scores,
        *control,
        *user_defined,
    ]
    kinds = [UNKNOWN] + [BYTE] * 256 + [NORMAL] * len(scores)
    kinds += [CONTROL] * len(control) + [USER_DEFINED] * len(user_defined)
    special = len(control) + len(user_defined)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [0.0] * 257 + [float(s) for s in scores.values()] + [0.0] * special,
        "tokenizer.ggml.unknown_token_id": 0,
        **{f"tokenizer.ggml.{name}": value for name, value in more.items()},
    }
