"""Tokens from text and text from tokens: the `tokenizers` package, built from a model file's keys."""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from strata_tui.errors import BadInput

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

# Splitting rules by family. A text is cut by them before byte-level BPE merges within each piece.
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
_DIGITS = r"\p{N}"

# pre-tokenizer name -> the patterns applied in turn
PATTERNS: dict[str, tuple[str, ...]] = {
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
    "smollm": (_DIGITS, _GPT2),
    "starcoder": (_DIGITS, _GPT2),
    "refact": (_DIGITS, _GPT2),
    "command-r": (_DIGITS, _GPT2),
}
_WHOLE_WORDS_WIN = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3"})  # and BOS by default

MAX_CONTROL_NAME = 256  # characters
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # token_type
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


def _byte_letters() -> dict[str, int]:
    """Byte-level BPE's letters: each byte as a printable character (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in printable}
    for byte in (b for b in range(256) if b not in set(printable)):
        letters[chr(256 + len(letters) - len(printable))] = byte
    return letters


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds the longest of these names where several begin; of none, nothing."""
    return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)")


def _shown(value: object) -> str:
    """Something out of a file within a message."""
    return printable(str(value)[:80], newlines=False)


class Tokenizer:
    """Byte-level BPE with a model file's vocabulary.

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
    """

    def __init__(self, model: ModelFile) -> None:
        kind = model.text("tokenizer.ggml.model")
        pre = model.text("tokenizer.ggml.pre") or "default"
        if kind != "gpt2":
            raise BadInput(
                f"[tokenizer] {model.file_name}: expected tokenizer.ggml.model gpt2 (byte-level BPE), "
                f"got {_shown(kind)}"
            )
        if pre not in PATTERNS:
            raise BadInput(
                f"[tokenizer] {model.file_name}: expected tokenizer.ggml.pre to be one of "
                f"{', '.join(PATTERNS)}, got {_shown(pre)}"
            )
        self._file_name = model.file_name
        self._pre = pre
        self._tokens = self._strings(model, "tokenizer.ggml.tokens")
        self._merges = self._strings(model, "tokenizer.ggml.merges")
        types = model.array("tokenizer.ggml.token_type")
        if types is not None and (isinstance(types, list) or types.dtype.kind not in "iu"):
            raise BadInput(f"[tokenizer] {model.file_name}: expected integers in tokenizer.ggml.token_type")
        self._types: list[int] = [1] * len(self._tokens) if types is None else types.tolist()
        if len(self._types) != len(self._tokens):
            raise BadInput(
                f"[tokenizer] {model.file_name}: expected {len(self._tokens)} entries in "
                f"tokenizer.ggml.token_type, got {len(self._types)}"
            )
        self.n_vocab = len(self._tokens)
        self.bos = self._id_key(model, "bos")
        self.eos = self._id_key(model, "eos")
        self.add_bos = bool(model.get("tokenizer.ggml.add_bos_token", self._pre in _WHOLE_WORDS_WIN))
        self.end_tokens = self._find_end_tokens(model)
        self._letters = _byte_letters()

    @classmethod
    def from_model(cls, model: ModelFile) -> Tokenizer:
        return cls(model)

    @staticmethod
    def _strings(model: ModelFile, key: str) -> list[str]:
        strings = model.array(key)
        if not isinstance(strings, list) or not strings or not isinstance(strings[0], (str, bytes)):
            raise BadInput(f"[tokenizer] {model.file_name}: expected an array of strings at {key}, got none")
        return [s if isinstance(s, str) else s.decode("utf-8", "replace") for s in strings]

    def _id_key(self, model: ModelFile, name: str) -> int | None:
        token: Any = model.get(f"tokenizer.ggml.{name}_token_id")
        is_id = isinstance(token, int) and not isinstance(token, bool) and 0 <= token < self.n_vocab
        return token if is_id else None

    def _find_end_tokens(self, model: ModelFile) -> list[int]:
        ends = {self._id_key(model, name) for name in _END_KEYS}
        special = {t: i for i, t in enumerate(self._tokens) if self._types[i] in (_CONTROL, _USER_DEFINED)}
        ends |= {special.get(name) for name in _END_NAMES}
        return sorted(token for token in ends if token is not None)

    # -- text to tokens

    @cached_property
    def _backend(self) -> Any:
        import tokenizers
        from tokenizers import Regex, models, pre_tokenizers

        merges = []
        for merge in self._merges:
            left, space, right = merge.partition(" ")
            if not space or not left or not right:
                raise BadInput(
                    f"[tokenizer] {self._file_name}: expected merges of two parts, got {_shown(merge)!r}"
                )
            merges.append((left, right))
        try:
            bpe = models.BPE(
                vocab=self._text_vocabulary(merges),
                merges=merges,
                ignore_merges=self._pre in _WHOLE_WORDS_WIN,
            )
        except Exception as error:
            raise BadInput(
                f"[tokenizer] {self._file_name}: expected merges of the vocabulary's tokens: {_shown(error)}"
            ) from None
        backend = tokenizers.Tokenizer(bpe)
        splits: list[Any] = [
            pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS[self._pre]
        ]
        splits.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        backend.pre_tokenizer = pre_tokenizers.Sequence(splits)
        return backend

    def _text_vocabulary(self, merges: Sequence[tuple[str, str]]) -> dict[str, int]:
        """The tokens that a text can become by merging: control tokens only if a merge makes them."""
        control = self._find(_UNKNOWN, _CONTROL)
        merged = control.keys() & {left + right for left, right in merges}
        normal = {
            token: i
            for i, (token, kind) in enumerate(zip(self._tokens, self._types, strict=True))
            if kind != _CONTROL and kind != _UNKNOWN
        }
        return {token: i for token, i in control.items() if token in merged or len(token) == 1} | normal

    def _find(self, *types: int) -> dict[str, int]:
        return {token: i for i, token in enumerate(self._tokens) if self._types[i] in types and token}

    @cached_property
    def _control(self) -> dict[str, int]:
        """Tokens that only a template may use, by name. One character alone can't be told from text."""
        found = self._find(_UNKNOWN, _CONTROL)
        return {name: token for name, token in found.items() if 1 < len(name) <= MAX_CONTROL_NAME}

    @cached_property
    def _user_defined(self) -> dict[str, int]:
        """Tokens that are taken whole wherever they stand, by name."""
        return self._find(_USER_DEFINED)

    @cached_property
    def _control_pattern(self) -> re.Pattern[str]:
        return _any_of(self._control)

    @cached_property
    def _user_defined_pattern(self) -> re.Pattern[str]:
        return _any_of(self._user_defined)

    @cached_property
    def _special_pattern(self) -> re.Pattern[str]:
        return _any_of([*self._control, *self._user_defined])

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
        for match in (self._special_pattern if parse_special else self._user_defined_pattern).finditer(text):
            ids += self._plain(text[at : match.start()], drop)
            name = match.group()
            ids.append(self._user_defined[name] if name in self._user_defined else self._control[name])
            at = match.end()
        return ids + self._plain(text[at:], drop)

    def muted(self, text: str, mark: str) -> str:
        """`text` with `mark` inside every name of a control token, and inside an end that could begin one.

        `encode(.., parse_special=True, drop=mark)` then reads no control token that begins in it.

        Args:
            mark: one character that stands in no token's name.
        """
        cuts = set()
        at = -1
        while found := self._control_pattern.search(text, at + 1):
            at = found.start()
            cuts.add(at + 1)
        longest = max(map(len, self._control), default=0)
        for at in range(max(0, len(text) - longest), len(text)):
            if any(name.startswith(text[at:]) for name in self._control):
                cuts.add(at + 1)
        edges = [0, *sorted(cuts), len(text)]
        return mark.join(text[begin:end] for begin, end in itertools.pairwise(edges))

    def _plain(self, text: str, drop: str) -> list[int]:
        # Lone surrogates (bytes that were no UTF-8) have no encoding; they become question marks.
        text = (text.replace(drop, "") if drop else text).encode("utf-8", "replace").decode("utf-8")
        return list(self._backend.encode(text, add_special_tokens=False).ids) if text else []

    # -- tokens to text

    def token_bytes(self, token: int) -> bytes:
        """What a token writes; nothing for control tokens and ids out of range."""
        if not 0 <= token < self.n_vocab or self._types[token] == _CONTROL:
            return b""
        text = self._tokens[token]
        if self._types[token] == _USER_DEFINED:
            return text.encode()
        try:
            return bytes(self._letters[letter] for letter in text)
        except KeyError:
            return text.encode()

    def decode(self, tokens: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        """One token for showing; a control token by its name, half a character as its replacement."""
        if 0 <= token < self.n_vocab and self._types[token] == _CONTROL:
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


# C0 and C1 controls, DEL; marks that turn or hide text: bidirectional controls, zero-width characters and
# joiners, BOM, soft hyphen, interlinear annotation, invisible tags; lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile("\r\n|[\u2028\u2029]")


def printable(text: str, newlines: bool = True) -> str:
    """A model's or a file's text, fit for a terminal: nothing in it can move a cursor, colour or hide.

    Args:
        newlines: keep line feeds (tabs become spaces); else a line feed becomes a space too.
    """
    text = _UNSAFE.sub("", _LINE_ENDS.sub("\n", text).replace("\t", "    "))
    return text if newlines else text.replace("\n", " ")
