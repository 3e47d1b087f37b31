"""Small model files, written with the `gguf` package's writer."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CONTROL, USER_DEFINED = 3, 4


def byte_letters() -> list[str]:
    """GPT-2's 256 letters of byte-level BPE, by byte: printable ones stand for themselves."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def spelled(text: str) -> str:
    """Text in those letters."""
    return "".join(byte_letters()[byte] for byte in text.encode())


def write_model(
    path: Path,
    arch: str = "llama",
    keys: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """A file with these keys (int, float, bool, str or list) and float32 tensors (numpy order)."""
    writer = gguf.GGUFWriter(path, arch)
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in (keys or {}).items():
        add.get(type(value), writer.add_array)(key, value)
    for name, values in (tensors or {}).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tokenizer_keys(
    pre: str | None,
    merges: Iterable[str] = ("t h",),
    control: Iterable[str] = (),
    user_defined: Iterable[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Keys of a byte-level tokenizer: 256 letters, a token a merge ("a b"), then the special tokens.

    pre None leaves the pre-tokenizer's name out.
    A keyword `eos_token_id` becomes tokenizer.ggml.eos_token_id; `words` adds tokens that no merge makes.
    """
    merges, control, user_defined = list(merges), list(control), list(user_defined)
    normal = [*byte_letters(), *(merge.replace(" ", "") for merge in merges), *more.pop("words", ())]
    tokens = [*normal, *control, *user_defined]
    types = [1] * len(normal) + [CONTROL] * len(control) + [USER_DEFINED] * len(user_defined)
    return {
        "tokenizer.ggml.model": "gpt2",
        **({} if pre is None else {"tokenizer.ggml.pre": pre}),
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        **{f"tokenizer.ggml.{name}": value for name, value in more.items()},
    }
