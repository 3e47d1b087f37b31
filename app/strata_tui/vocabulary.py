"""The tokens of a model file and their kinds, checked: what every kind of tokenizer is built from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from strata_tui.errors import BadInput
from strata_tui.terminal_text import printable

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # tokenizer.ggml.token_type
MAX_TOKENS = 1 << 22  # of a vocabulary; the largest of today have 2^18
MAX_TOKEN_BYTES = 1 << 16  # of one token or merge


def shown(value: object) -> str:
    """Something out of a file within a message."""
    return printable(str(value)[:80], newlines=False)


class Vocabulary:
    """The tokens by id, with their kinds.

    Raises:
        BadInput: the arrays don't fit together.

    Attributes:
        tokens: their text as the file spells it.
        types: their kinds.
    """

    def __init__(self, model: ModelFile) -> None:
        self.file_name = model.file_name
        self.tokens = self.strings(model, "tokens", MAX_TOKENS)
        self.types = [NORMAL] * len(self.tokens)
        types = model.array("tokenizer.ggml.token_type")
        if types is not None:
            if isinstance(types, list) or types.dtype.kind not in "iu":
                self.refuse("expected integers in tokenizer.ggml.token_type")
            self.require_length(types, "token_type")
            self.types = types.tolist()

    def __len__(self) -> int:
        return len(self.tokens)

    def refuse(self, what: str) -> NoReturn:
        raise BadInput(f"[tokenizer] {self.file_name}: {what}")

    def strings(self, model: ModelFile, name: str, most: int) -> list[str]:
        """An array of strings under tokenizer.ggml; bytes that are no UTF-8 become replacements."""
        key = f"tokenizer.ggml.{name}"
        length = model.array_length(key)
        if length > most:
            self.refuse(f"expected at most {most} strings at {key}, got {length}")
        strings = model.array(key)
        if not isinstance(strings, list) or not strings or not isinstance(strings[0], (str, bytes)):
            self.refuse(f"expected an array of strings at {key}, got none")
        long = max(map(len, strings))
        if long > MAX_TOKEN_BYTES:
            self.refuse(f"expected at most {MAX_TOKEN_BYTES} bytes a string at {key}, got {long}")
        return [s if isinstance(s, str) else s.decode("utf-8", "replace") for s in strings]

    def require_length(self, values: Any, name: str) -> None:
        if len(values) != len(self):
            self.refuse(f"expected {len(self)} entries in tokenizer.ggml.{name}, got {len(values)}")

    def id_key(self, model: ModelFile, name: str) -> int | None:
        """The id under tokenizer.ggml.NAME_token_id, if it is one."""
        token: Any = model.get(f"tokenizer.ggml.{name}_token_id")
        is_id = isinstance(token, int) and not isinstance(token, bool) and 0 <= token < len(self)
        return token if is_id else None

    def flag(self, model: ModelFile, name: str, default: bool) -> bool:
        """The boolean under tokenizer.ggml.NAME; `default` where there is none."""
        value = model.get(f"tokenizer.ggml.{name}")
        return value if isinstance(value, bool) else default

    def of_type(self, *types: int) -> dict[str, int]:
        """Ids by text of the tokens of these kinds."""
        return {token: i for i, token in enumerate(self.tokens) if self.types[i] in types and token}

    def text_tokens(self, merged: Iterable[str]) -> dict[str, int]:
        """Ids by text of what a text can become by merging; of the rest, only what a merge makes."""
        others = self.of_type(UNKNOWN, CONTROL, UNUSED)
        kept = others.keys() & set(merged)
        normal = {t: i for i, t in enumerate(self.tokens) if self.types[i] not in (UNKNOWN, CONTROL, UNUSED)}
        return {t: i for t, i in others.items() if t in kept or len(t) == 1} | normal

    @cached_property
    def special(self) -> dict[str, int]:
        """Ids by text of control and user defined tokens."""
        return self.of_type(CONTROL, USER_DEFINED)
