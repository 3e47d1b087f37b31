"""Prompts of a size, made from the text files of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from strata_tui.errors import BadInput

BYTES_A_TOKEN = 12  # more than any vocabulary's mean: so much text is read at first


def prompts_of_size(
    folder: Path, n_tokens: int, count: int, encode: Callable[[str], Sequence[int]]
) -> list[tuple[int, ...]]:
    """Prompts of exactly so many tokens, alike but for their first line: none can be cached for another.

    Files come in the order of their paths; those that are not UTF-8 text are left out.

    Raises:
        BadInput: there is not text enough.
    """
    if not folder.is_dir():
        raise BadInput(f"--prompt-from: expected a folder with text files, got {folder}")
    body = _text(folder, n_tokens * BYTES_A_TOKEN)
    prompts = []
    for i in range(count):
        tokens = tuple(encode(f"Prompt {i + 1} of {n_tokens} tokens.\n{body}")[:n_tokens])
        if len(tokens) < n_tokens:
            raise BadInput(
                f"--prompt-from: expected text for {n_tokens:,} tokens in {folder}, got {len(tokens):,}"
            )
        prompts.append(tokens)
    if len(set(prompts)) < count:
        raise BadInput(f"--prompt-tokens: expected room for a first line that differs, got {n_tokens}")
    return prompts


def _text(folder: Path, n_bytes: int) -> str:
    parts, size = [], 0
    for part in _texts(folder, n_bytes):
        parts.append(part)
        size += len(part)
        if size >= n_bytes:
            break
    return "\n".join(parts)


def _texts(folder: Path, most_bytes: int) -> Iterator[str]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            data = file.read(most_bytes)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if len(data) < most_bytes or error.start < len(data) - 4:
                continue
            text = data[: error.start].decode()  # cut amid a character
        if text.strip() and "\0" not in text:
            yield text
