"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` at the end; a link's target is written, not the link.

    What is no regular file (a device, a pipe) is written through: it can't be replaced.

    Raises:
        OSError: it can't be written.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with named(path), target.open("wb") as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with named(path), unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """What the system says of a full disk names no file: it names `path` then."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
