"""A plan as a run profile: TOML that `--profile` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Placement


def profile_path(name: str) -> Path:
    """NAME -> NAME.toml here; a path that ends in .toml is taken as it is.

    Raises:
        BadInput: no name for a profile, or a file that exists.
    """
    path = Path(name) if name.endswith(".toml") else Path(f"{name}.toml")
    if not re.fullmatch(r"[\w.-]+", path.stem) or path.stem.startswith("."):
        raise BadInput(f"--write: expected a name of letters, digits, - and _, got {name!r}")
    if path.exists() or not path.parent.is_dir():
        raise BadInput(f"--write: expected a new file in a folder that exists, got {path}")
    return path


def device_text(device: DeviceChoice) -> str:
    """What `DeviceChoice.parse` reads as this device.

    Raises:
        BadInput: devices for tests, or of a rig, which a profile of its own describes.
    """
    if device.kind == "cpu":
        text = f"cpu:{device.threads}" if device.threads else "cpu"
    elif device.kind == "even":
        times = dict(device.pace.times_ms)
        parts = [f"{times.pop('forward'):g}", *(f"{kind}={ms:g}" for kind, ms in times.items())]
        text = f"even:{'+'.join(parts)}"
    else:
        raise BadInput(f"--write: expected cpu or even devices, which a profile can name, got {device.kind}")
    return text + ("@" + "+".join(map(str, device.cores)) if device.cores else "")


def profile_text(
    name: str,
    description: str,
    comments: Sequence[str],
    placement: Placement,
    devices: Sequence[DeviceChoice],
    split: Sequence[int],
    switches: Mapping[str, Any],
) -> str:
    """The TOML.

    Args:
        comments: where the numbers come from, a line each.
        switches: to set; None: left to the program.
    """
    model = {"context": placement.context, "kv": placement.kv, "chunk": placement.chunk}
    where: dict[str, Any] = {"device": [device_text(device) for device in devices]}
    where = {"split": list(split), **where} if split else {"stages": 1, **where}
    lines = [*(f"# {' '.join(comment.split())}" for comment in comments)]
    lines += _pairs({"name": name, "description": description})
    for table, values in (("model", model), ("placement", where), ("switches", dict(switches))):
        lines += ["", f"[{table}]", *_pairs(values)]
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if value is not None
    ]
