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
        with target.open("wb") as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
