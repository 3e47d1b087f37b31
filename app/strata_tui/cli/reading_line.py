"""A line on a terminal's stderr while the weights of a large file are read: without it nothing would move."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from strata_tui.engine import available_memory
from strata_tui.paging import page_in, weight_ranges

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile

LARGE_BYTES = 1_000_000_000
OFTEN_S = 0.2


def read_weights(model: ModelFile) -> None:
    """Bring a large file's weights into memory, told on stderr: only on a terminal, into enough memory."""
    ranges = weight_ranges(model, ())
    total = sum(part.end - part.begin for part in ranges)
    available = available_memory()
    if total < LARGE_BYTES or (available is not None and total > available) or not sys.stderr.isatty():
        return
    begin, due, done = time.monotonic(), OFTEN_S, 0

    def note(n_bytes: int, was_read: bool, stage: int) -> None:
        nonlocal due, done
        done += n_bytes
        passed = time.monotonic() - begin
        if passed >= due:
            due = passed + OFTEN_S
            figures = f"{done / 1e9:.1f} of {total / 1e9:.1f} GB, {done / passed / 1e9:.2f} GB/s"
            print(f"\rreading weights: {figures}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        page_in(ranges, note)
    finally:
        if due > OFTEN_S:  # something has been said
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
