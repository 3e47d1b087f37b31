"""A model's weights brought into memory, stage after stage, before a window waits for the disk."""

from __future__ import annotations

import errno
import itertools
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile, TensorInfo

PIECE = 2 << 20  # bytes at a time: a stop is answered after one of them
AHEAD = 8 << 20  # bytes that the system is asked for before they are waited for
PROBE_EVERY = 256 << 10  # bytes; what the system reads and forgets at a time is no less
GAP = 64 << 10  # bytes between two tensors that are not worth a range of their own

Note = Callable[[int, bool, int], None]


class Range(NamedTuple):
    """Bytes [begin, end) of a file, which a stage computes from."""

    path: Path
    begin: int
    end: int
    stage: int


def weight_ranges(model: ModelFile, split: Sequence[int]) -> list[Range]:
    """Where the weights lie, stage after stage; the draft layer's, of whichever file, with the last stage.

    Args:
        split: first layer of each later stage.
    """
    ours = [(model, tensor, _stage(tensor, model.n_layers, split)) for tensor in model.tensors]
    of_draft = model.draft.tensors if model.draft else ()
    drafts = [(model.draft, tensor, len(split)) for tensor in of_draft if _layer(tensor) == model.n_layers]
    found = [
        Range(of.paths[tensor.shard], tensor.offset, tensor.offset + tensor.size_bytes, stage)
        for of, tensor, stage in (*ours, *drafts)
        if of is not None
    ]
    return _merged(sorted(found, key=lambda part: (part.stage, part.path, part.begin)))


def _layer(tensor: TensorInfo) -> int | None:
    kind, _, rest = tensor.name.partition(".")
    number = rest.partition(".")[0]
    return int(number) if kind == "blk" and number.isdecimal() else None


def _stage(tensor: TensorInfo, n_layers: int, split: Sequence[int]) -> int:
    layer = _layer(tensor)
    if layer is not None and layer < n_layers:
        return bisect_right(split, layer)
    return 0 if tensor.name.startswith("token_embd") else len(split)


def _merged(parts: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for part in parts:
        before = merged[-1] if merged else None
        alike = before and (before.path, before.stage) == (part.path, part.stage)
        if before and alike and part.begin - before.end <= GAP:
            merged[-1] = before._replace(end=max(before.end, part.end))
        else:
            merged.append(part)
    return merged


def page_in(ranges: Sequence[Range], note: Note) -> None:
    """Read what is not in memory yet into a buffer that is used again and again: the system keeps the pages.

    What is there already is only asked after, so that a file that has been read before costs next to nothing.
    A file that has become shorter is no error here: who computes from it says so.

    Args:
        note: is told after each piece its bytes, whether they had to be read, and their stage. What it
            raises ends the reading.
    """
    buffer = memoryview(bytearray(PIECE))
    for path, of_file in itertools.groupby(ranges, key=lambda part: part.path):
        with path.open("rb", buffering=0) as file:
            number = file.fileno()
            for part in of_file:
                for at in range(part.begin, part.end, PIECE):
                    size = min(PIECE, part.end - at)
                    is_there = _in_memory(number, at, size)
                    if not is_there:
                        _ask_ahead(number, at, part.end)
                        os.preadv(number, [buffer[:size]], at)
                    note(size, not is_there, part.stage)


def _ask_ahead(number: int, at: int, end: int) -> None:
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(number, at, min(AHEAD, end - at), os.POSIX_FADV_WILLNEED)


_probe = bytearray(1)


def _in_memory(number: int, at: int, size: int) -> bool:
    """By a look at a byte of each PROBE_EVERY: would reading it have to wait for the disk?"""
    if not hasattr(os, "RWF_NOWAIT"):
        return False
    try:
        for place in (*range(at, at + size, PROBE_EVERY), at + size - 1):
            os.preadv(number, [_probe], place, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise
        return False
    return True
