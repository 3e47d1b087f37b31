"""Tokens from text and text from tokens: the `tokenizers` package, built from a model file's keys."""

from __future__ import annotations

import bisect
import codecs
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from strata_tui.byte_level import PATTERNS, ByteLevel
from strata_tui.errors import BadInput
from strata_tui.spm import SentencePiece
from strata_tui.terminal_text import printable
from strata_tui.vocabulary import CONTROL, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary, shown

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

__all__ = ["PATTERNS", "StreamDecoder", "Tokenizer", "printable"]

MAX_CONTROL_NAME = 256  # characters
_END_KEYS = ("eos", "eot", "eom")
_END_NAMES = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
)


class Scheme(Protocol):
    """How plain text becomes tokens: one class for each tokenizer.ggml.model."""

    add_bos: bool

    def __init__(self, model: ModelFile, vocabulary: Vocabulary) -> None: ...
    def ids(self, text: str, first: bool) -> list[int]: ...
    def token_bytes(self, text: str, kind: int) -> bytes: ...


SCHEMES: dict[str, type[Scheme]] = {"gpt2": ByteLevel, "llama": SentencePiece}


class _Names:
    """Finds names in a text, from the left, the longest where several begin."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)
        self._known = frozenset(self._names)
        lengths: dict[str, set[int]] = {}
        for name in self._names:
            lengths.setdefault(name[0], set()).add(len(name))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        self._firsts = re.compile(f"[{''.join(map(re.escape, lengths))}]" if lengths else "(?!)")
        self.longest = max(map(len, self._names), default=0)

    def starting(self, text: str) -> Iterator[tuple[int, int]]:
        """Begin and end of the longest name at each place where one begins; they may overlap."""
        for match in self._firsts.finditer(text):
            at = match.start()
            for length in self._lengths[text[at]]:
                if text[at : at + length] in self._known:
                    yield at, at + length
                    break

    def apart(self, text: str) -> Iterator[tuple[int, int]]:
        """The same, each after the end of the one before."""
        end = 0
        for begin, after in self.starting(text):
            if begin >= end:
                end = after
                yield begin, after

    def any_begins_with(self, head: str) -> bool:
        at = bisect.bisect_left(self._names, head)
        return at < len(self._names) and self._names[at].startswith(head)


class Tokenizer:
    """A model file's vocabulary.

    Args:
        model: the file.

    Raises:
        BadInput: a tokenizer of another kind, or keys that don't fit together (merges: when first used).

    Attributes:
        n_vocab: number of tokens.
        end_tokens: ids that end a text.
        bos: id of the token that begins a text, or None.
        eos: id of the file's own end token, or None.
        add_bos: does the file ask for it before every text?
        types: kind of each token, as the file has it.
    """

    def __init__(self, model: ModelFile) -> None:
        kind = model.get("tokenizer.ggml.model", "none")
        if not isinstance(kind, str) or kind not in SCHEMES:
            raise BadInput(
                f"[tokenizer] {model.file_name}: expected tokenizer.ggml.model gpt2 (byte-level BPE) or "
                f"llama (SPM), got {shown(kind)}"
            )
        self._vocabulary = Vocabulary(model)
        self._tokens, self.types = self._vocabulary.tokens, self._vocabulary.types
        self._scheme = SCHEMES[kind](model, self._vocabulary)
        self.n_vocab = len(self._tokens)
        self.bos = self._vocabulary.id_key(model, "bos")
        self.eos = self._vocabulary.id_key(model, "eos")
        self.add_bos = self._vocabulary.flag(model, "add_bos_token", self._scheme.add_bos)
        special = self._vocabulary.special
        ends = {self._vocabulary.id_key(model, name) for name in _END_KEYS}
        ends |= {special.get(name) for name in _END_NAMES}
        self.end_tokens = sorted(token for token in ends if token is not None)

    @classmethod
    def from_model(cls, model: ModelFile) -> Tokenizer:
        return cls(model)

    # -- text to tokens

    @cached_property
    def _control(self) -> Mapping[str, int]:
        """Tokens that only a template may use, by name. One character alone can't be told from text."""
        found = self._vocabulary.of_type(UNKNOWN, CONTROL)
        return {name: token for name, token in found.items() if 1 < len(name) <= MAX_CONTROL_NAME}

    @cached_property
    def _user_defined(self) -> Mapping[str, int]:
        """Tokens that are taken whole wherever they stand, by name."""
        return self._vocabulary.of_type(USER_DEFINED)

    @cached_property
    def _control_names(self) -> _Names:
        return _Names(self._control)

    @cached_property
    def _user_defined_names(self) -> _Names:
        return _Names(self._user_defined)

    @cached_property
    def _special_names(self) -> _Names:
        return _Names({*self._control, *self._user_defined})

    def encode(
        self, text: str, parse_special: bool = False, add_bos: bool | None = None, drop: str = ""
    ) -> list[int]:
        """Ids of `text`.

        Args:
            parse_special: read control tokens where their names stand in the text. Never for a user's text.
            add_bos: begin with the BOS token; None: as the file asks.
            drop: a character that is taken out once control tokens have been found (see `muted`).
        """
        ids: list[int] = []
        if (self.add_bos if add_bos is None else add_bos) and self.bos is not None:
            ids.append(self.bos)
        at = 0
        first = True
        names = self._special_names if parse_special else self._user_defined_names
        for begin, end in names.apart(text):
            ids += self._plain(text[at:begin], drop, first)
            name = text[begin:end]
            ids.append(self._user_defined[name] if name in self._user_defined else self._control[name])
            at, first = end, True
        return ids + self._plain(text[at:], drop, first)

    def muted(self, text: str, mark: str) -> str:
        """`text` with `mark` inside every name of a control token, and inside an end that could begin one.

        `encode(.., parse_special=True, drop=mark)` then reads no control token that begins in it.

        Args:
            mark: one character that stands in no token's name.
        """
        names = self._control_names
        cuts = {begin + 1 for begin, _ in names.starting(text)}
        for at in range(max(0, len(text) - names.longest), len(text)):
            if names.any_begins_with(text[at:]):
                cuts.add(at + 1)
        edges = [0, *sorted(cuts), len(text)]
        return mark.join(text[begin:end] for begin, end in itertools.pairwise(edges))

    def _plain(self, text: str, drop: str, first: bool) -> list[int]:
        # Lone surrogates (bytes that were no UTF-8) have no encoding; they become question marks.
        text = (text.replace(drop, "") if drop else text).encode("utf-8", "replace").decode("utf-8")
        return self._scheme.ids(text, first) if text else []

    # -- tokens to text

    def token_bytes(self, token: int) -> bytes:
        """What a token writes; nothing for control tokens and ids out of range."""
        if not 0 <= token < self.n_vocab or self.types[token] in (CONTROL, UNKNOWN, UNUSED):
            return b""
        return self._scheme.token_bytes(self._tokens[token], self.types[token])

    def decode(self, tokens: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        """One token for showing; a control token by its name, half a character as its replacement."""
        if 0 <= token < self.n_vocab and self.types[token] in (CONTROL, UNKNOWN, UNUSED):
            return self._tokens[token]
        return self.token_bytes(token).decode("utf-8", "replace")

    def decoder(self) -> StreamDecoder:
        return StreamDecoder(self)


class StreamDecoder:
    """Text of tokens as they come: a character appears when all its bytes are there."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, tokens: Sequence[int]) -> str:
        return self._utf8.decode(b"".join(map(self._tokenizer.token_bytes, tokens)))

    def flush(self) -> str:
        """What is left at the end: half a character becomes its replacement."""
        return self._utf8.decode(b"", final=True)
