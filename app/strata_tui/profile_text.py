"""A run profile as TOML text, which load_profile reads back as the same profile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Profile
from strata_tui.paced import HandOffTimes, Points, Rig
from strata_tui.terminal_text import printable

Comments = Mapping[str, str]


def profile_path(name: str) -> Path:
    """Where --write NAME saves a profile: NAME.toml here; a path that ends in .toml is taken as it is.

    Raises:
        BadInput: no name for a profile, or a file that exists.
    """
    path = Path(name) if name.endswith(".toml") else Path(f"{name}.toml")
    if not re.fullmatch(r"[\w.-]+", path.stem) or path.stem.startswith("."):
        raise BadInput(f"--write: expected a name of letters, digits, - and _, got {name!r}")
    if path.exists() or not path.parent.is_dir():
        raise BadInput(f"--write: expected a new file in a folder that exists, got {path}")
    return path


def profile_text(profile: Profile, comments: Comments | None = None) -> str:
    """The profile as TOML.

    Args:
        comments: where a number comes from, by key: `placement.split`, `paced.stages[0].run_ms`; "" is the
            head of the file.
    """
    said = comments or {}
    paced = profile.devices == (DeviceChoice("paced", rig=profile.rig),) if profile.rig else False
    tables: dict[str, dict[str, Any]] = {
        "": {
            "name": profile.name,
            "description": profile.description or None,
            "sources": list(profile.sources) or None,
        },
        "model": {"context": profile.context, "kv": profile.kv, "chunk": profile.chunk},
        "placement": {
            "stages": profile.stages,
            "split": None if profile.split is None else list(profile.split),
            "device": None
            if profile.devices is None or paced
            else [device.text for device in profile.devices],
            "threads": profile.threads,
            "per_node": profile.per_node or None,
        },
        "switches": profile.switches,
        "sampling": profile.sampling,
    }
    lines = [f"# {printable(line, newlines=False)}" for line in said.get("", "").splitlines()]
    for name, values in tables.items():
        lines += _table(name, values, said)
    if profile.rig:
        lines += _rig(profile.rig, said)
    return "\n".join(lines).strip() + "\n"


def _rig(rig: Rig, said: Comments) -> list[str]:
    values = {
        "hand_off_ms": _set(rig.hand_off_ms, HandOffTimes()),
        **{key: getattr(rig, key) or None for key in ("verdict_ms", "draft_ms", "commit_ms", "undo_ms")},
        **{key: getattr(rig, key) or None for key in ("jitter", "seed", "position_offset")},
    }
    lines = _table("paced", values, said) or ["", "[paced]"]
    for i, stage in enumerate(rig.stages):
        times = {
            "run_ms": _points(stage.run_ms),
            "run_ms_per_1k": stage.run_ms_per_1k or None,
            "chunk_ms": _points(stage.chunk_ms),
        }
        body = _table(f"paced.stages[{i}]", times, said)
        lines += ["", "[[paced.stages]]", *body[2:]]
    return lines


def _set(value: HandOffTimes, default: HandOffTimes) -> dict[str, float] | None:
    fields = HandOffTimes.__dataclass_fields__
    return {
        key: getattr(value, key) for key in fields if getattr(value, key) != getattr(default, key)
    } or None


def _points(points: Points) -> dict[str, float] | None:
    return {str(rows): ms for rows, ms in points} or None


def _table(name: str, values: Mapping[str, Any], said: Comments) -> list[str]:
    given = {key: value for key, value in values.items() if value is not None}
    if not given:
        return []
    lines = ["", f"[{name}]"] if name else []
    for key, value in given.items():
        comment = printable(said.get(f"{name}.{key}" if name else key, ""), newlines=False)
        lines.append(f"{key} = {_value(value)}" + (f"  # {comment}" if comment else ""))
    return lines


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return json.dumps(value)
