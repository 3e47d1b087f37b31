"""Opens a recording, whichever program wrote it: its content tells."""

from __future__ import annotations

from pathlib import Path

from strata_tui.files import regular
from strata_tui.record.frames import MAGIC
from strata_tui.record.recording import Recording, read_recording


def open_recording(path: Path) -> Recording:
    """A .strata file, or a text trace of the upstream engine.

    Raises:
        BadInput: neither, or no regular file.
        OSError: it can't be read.
    """
    from strata_tui.record.upstream import looks_upstream, read_upstream

    with regular(path, "a recording").open("rb") as file:
        start = file.read(4096)
    if not start.startswith(MAGIC) and looks_upstream(start):
        return read_upstream(path)
    return read_recording(path)
