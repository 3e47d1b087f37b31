"""SentencePiece's BPE (tokenizer.ggml.model llama): spaces are letters, the best score merges first."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from strata_tui.vocabulary import BYTE, NORMAL, USER_DEFINED, Vocabulary, shown

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

SPACE = "\u2581"
_MAX_PIECE = 512  # characters of a token that merges may make; real ones have 48 at most


class SentencePiece:
    """Ids of plain text and bytes of tokens; what no token spells falls back to bytes.

    Raises:
        BadInput: no scores, or no way to write every text.

    Attributes:
        add_bos: this family begins a text with BOS where the file says nothing of it.
    """

    add_bos = True

    def __init__(self, model: ModelFile, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        scores = model.array("tokenizer.ggml.scores")
        if scores is None or isinstance(scores, list) or scores.dtype.kind != "f":
            vocabulary.refuse("expected an array of floats at tokenizer.ggml.scores")
        vocabulary.require_length(scores, "scores")
        self._scores: list[float] = scores.tolist()
        self._bytes = vocabulary.of_type(BYTE)
        self._unknown = vocabulary.id_key(model, "unknown")
        missing = [b for b in range(256) if f"<0x{b:02X}>" not in self._bytes]
        if missing and self._unknown is None:
            vocabulary.refuse(
                f"expected a token for every byte or tokenizer.ggml.unknown_token_id, got none for byte "
                f"0x{missing[0]:02X}"
            )
        self._add_space = vocabulary.flag(model, "add_space_prefix", True)

    def _merges(self, pieces: dict[str, int]) -> list[tuple[str, str]]:
        """Every pair of tokens that make a token, the best score first, then the token that comes first.

        SentencePiece merges the adjacent pair with the best score; as a list of merges it is this one.
        """
        merges = [
            (-self._scores[token], token, piece[:i], piece[i:])
            for piece, token in pieces.items()
            if len(piece) <= _MAX_PIECE
            for i in range(1, len(piece))
            if piece[:i] in pieces and piece[i:] in pieces
        ]
        merges.sort(key=lambda merge: merge[:2])
        return [(left, right) for _, _, left, right in merges]

    @cached_property
    def _backend(self) -> Any:
        import tokenizers
        from tokenizers import models

        pieces = self._vocabulary.of_type(NORMAL, USER_DEFINED)
        unknown = None if self._unknown is None else self._vocabulary.tokens[self._unknown]
        vocabulary = self._bytes | pieces
        if unknown is not None:
            vocabulary = {unknown: self._unknown or 0} | vocabulary
        try:
            bpe = models.BPE(
                vocab=vocabulary,
                merges=self._merges(pieces),
                unk_token=unknown,
                fuse_unk=True,
                byte_fallback=True,
            )
        except Exception as error:
            self._vocabulary.refuse(f"expected tokens that merge: {shown(error)}")
        return tokenizers.Tokenizer(bpe)

    def ids(self, text: str, first: bool) -> list[int]:
        """Ids of a text without special tokens.

        Args:
            first: nothing or a special token stands before it: a space is put there where the file asks.
        """
        text = (" " if first and self._add_space else "") + text
        return list(self._backend.encode(text.replace(" ", SPACE), add_special_tokens=False).ids)

    def token_bytes(self, text: str, kind: int) -> bytes:
        """What a token of this spelling and kind writes."""
        if kind == BYTE:
            try:
                return bytes([int(text.removeprefix("<0x").removesuffix(">"), 16)])
            except ValueError:  # a byte token of another spelling, or beyond a byte
                return text.encode()
        return text.encode() if kind == USER_DEFINED else text.replace(SPACE, " ").encode()
