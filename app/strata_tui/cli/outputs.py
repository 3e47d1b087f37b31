"""What can be said of the files that a command is to write before it works for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from strata_tui.errors import BadInput

TRACES = (".json.gz", ".json")


def output_file(path: Path, flag: str, endings: tuple[str, ...] = ()) -> Path:
    """`path`, if a file can be made there: said before the work, not after it.

    Args:
        endings: of names that tell what is written; a device or a pipe has any. Empty: any name.
    """
    if endings and not path.name.endswith(endings) and (path.is_file() or not path.exists()):
        raise BadInput(f"{flag}: expected a name that ends in {', '.join(endings)}, got {path.name}")
    if path.is_dir() or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise BadInput(f"{flag}: expected a file in a folder that can be written to, got {path}")
    return path


def apart(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse two outputs, or an output and an input, that are one file: it would be ruined.

    Args:
        outputs: by option; None = not asked for.
        inputs: by what they are.

    Raises:
        BadInput: the line names both.
    """
    seen = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        other = next((other for other in seen if _is_one_file(seen[other], path)), None)
        if other is not None:
            raise BadInput(f"{name}: expected another file than that of {other}, got {path} for both")
        seen[name] = path


def _is_one_file(a: Path, b: Path) -> bool:
    """Links are followed; a device takes what comes from any number of writers."""
    if a.exists() and b.exists():
        return a.is_file() and a.samefile(b)
    return a.resolve() == b.resolve()


def archive_file(path: Path, flag: str) -> Path:
    """`output_file` for what is written back and forth, as an archive of arrays is."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadInput(
            f"{flag}: expected a regular file, or a new one, got {path}, where nothing can be sought"
        )
    return output_file(path, flag)
