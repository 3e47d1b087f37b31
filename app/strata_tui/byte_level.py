"""Byte-level BPE (tokenizer.ggml.model gpt2): text is cut by the model family's rules, pieces are merged."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from strata_tui.vocabulary import USER_DEFINED, Vocabulary, shown

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

# Splitting rules by family. A text is cut by them before merges within each piece.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_QWEN35 = (
    _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DIGIT = r"\p{N}"
_PUNCTUATION = r"[\p{P}$+<=>^~|]+"
_THREE_DIGITS = "[0-9][0-9][0-9]"

# tokenizer.ggml.pre -> the patterns applied in turn
PATTERNS: dict[str, tuple[str, ...]] = {
    "default": (_PUNCTUATION, _GPT2, r"\p{N}+", _THREE_DIGITS),
    "llama-bpe": (_LLAMA3,),
    "llama3": (_LLAMA3,),
    "llama-v3": (_LLAMA3,),
    "falcon3": (_LLAMA3,),
    "qwen2": (_QWEN2,),
    "deepseek-r1-qwen": (_QWEN2,),
    "qwen35": (_QWEN35,),
    "gpt-2": (_GPT2,),
    "phi-2": (_GPT2,),
    "mpt": (_GPT2,),
    "olmo": (_GPT2,),
    "smollm": (_DIGIT, _GPT2),
    "starcoder": (_DIGIT, _GPT2),
    "refact": (_DIGIT, _GPT2),
    "command-r": (_DIGIT, _GPT2),
    "falcon": (r"[\p{P}$+<=>^~|`]+", _GPT2, _THREE_DIGITS),
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", _DIGIT),
}
_WHOLE_WORDS_WIN = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3"})  # and BOS by default
_MAX_MERGES = 1 << 23


def _byte_letters() -> dict[str, int]:
    """Byte-level BPE's letters: each byte as a printable character (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in printable}
    for byte in (b for b in range(256) if b not in set(printable)):
        letters[chr(256 + len(letters) - len(printable))] = byte
    return letters


_LETTERS = _byte_letters()


class ByteLevel:
    """Ids of plain text and bytes of tokens.

    Raises:
        BadInput: an unknown pre-tokenizer, or no merges (merges that don't fit: when first used).

    Attributes:
        add_bos: does this family begin a text with BOS where the file says nothing of it?
    """

    def __init__(self, model: ModelFile, vocabulary: Vocabulary) -> None:
        pre = model.get("tokenizer.ggml.pre", "default")
        if not isinstance(pre, str) or pre not in PATTERNS:
            vocabulary.refuse(
                f"expected tokenizer.ggml.pre to be one of {', '.join(PATTERNS)}, got {shown(pre)}"
            )
        self._pre = pre
        self._vocabulary = vocabulary
        self._merges = vocabulary.strings(model, "merges", _MAX_MERGES)
        self.add_bos = pre in _WHOLE_WORDS_WIN

    @cached_property
    def _backend(self) -> Any:
        import tokenizers
        from tokenizers import Regex, models, pre_tokenizers

        merges = []
        for merge in self._merges:
            left, space, right = merge.partition(" ")
            if not space or not left or not right:
                self._vocabulary.refuse(f"expected merges of two parts, got {shown(merge)!r}")
            merges.append((left, right))
        vocabulary = self._vocabulary.text_tokens(left + right for left, right in merges)
        for left, right in merges:  # the package would panic at some of these
            if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
                self._vocabulary.refuse(
                    f"expected merges of the vocabulary's tokens, got {shown(f'{left} {right}')!r}"
                )
        try:
            bpe = models.BPE(
                vocab=vocabulary,
                merges=merges,
                ignore_merges=self._pre in _WHOLE_WORDS_WIN,
            )
        except Exception as error:
            self._vocabulary.refuse(f"expected tokens that merge: {shown(error)}")
        backend = tokenizers.Tokenizer(bpe)
        splits: list[Any] = [
            pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS[self._pre]
        ]
        splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        backend.pre_tokenizer = pre_tokenizers.Sequence(splits)
        return backend

    def ids(self, text: str, first: bool) -> list[int]:
        """Ids of a text without special tokens, whatever stands before it."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def token_bytes(self, text: str, kind: int) -> bytes:
        """What a token of this spelling and kind writes."""
        if kind == USER_DEFINED:
            return text.encode()
        try:
            return bytes(_LETTERS[letter] for letter in text)
        except KeyError:
            return text.encode()
