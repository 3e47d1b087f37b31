"""Run profiles: TOML files with a placement, switches and sampling. Errors name file, key, expected and given."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice
from strata_tui.switches import BY_NAME

_TABLES: dict[str, dict[str, tuple[type, ...]]] = {
    "": {"name": (str,), "description": (str,)},
    "model": {"context": (int,), "kv": (str,), "chunk": (int,)},
    "placement": {"stages": (int,), "split": (list,), "device": (list,), "threads": (int,)},
    "switches": dict.fromkeys(BY_NAME, (bool, int, float, str)),
    "sampling": {
        "temperature": (int, float),
        "top_k": (int,),
        "top_p": (int, float),
        "min_p": (int, float),
        "repeat_penalty": (int, float),
        "seed": (int,),
    },
}


@dataclass(frozen=True)
class Profile:
    """What a profile sets; what it leaves out stays the program's default."""

    name: str
    description: str = ""
    context: int | None = None
    kv: str | None = None
    chunk: int | None = None
    stages: int | None = None
    split: tuple[int, ...] | None = None
    devices: tuple[DeviceChoice, ...] | None = None
    threads: int | None = None
    switches: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)


def shipped_profiles() -> dict[str, Path]:
    """Profiles that come with the program, by name."""
    folders = [Path(str(resources.files("strata_tui"))) / "profiles", Path(__file__).parents[2] / "profiles"]
    return {path.stem: path for folder in reversed(folders) if folder.is_dir() for path in sorted(folder.glob("*.toml"))}


def load_profile(name_or_file: str) -> Profile:
    """A shipped profile by name, or one from a file.

    Raises:
        BadInput: there is none of that name, or something in it is wrong.
    """
    shipped = shipped_profiles()
    path = shipped.get(name_or_file, Path(name_or_file))
    if path.suffix != ".toml" or not path.is_file():
        raise BadInput(f"--profile: expected one of {', '.join(shipped)} or a .toml file, got {name_or_file!r}")
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"[profile] {path.name}: {error}") from None
    return parse_profile(tables, path.name)


def parse_profile(tables: dict[str, Any], file: str) -> Profile:
    """The profile that a parsed TOML file describes."""
    flat = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    sections = {"": flat, **{key: value for key, value in tables.items() if isinstance(value, dict)}}
    for section, values in sections.items():
        _check_names(file, "", section, _TABLES)
        for key, value in values.items():
            _check_names(file, section, key, _TABLES[section])
            expected = _TABLES[section][key]
            if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
                kinds = " or ".join(kind.__name__ for kind in expected)
                raise BadInput(f"[profile] {file}: {_at(section, key)}: expected {kinds}, got {value!r}")
    placement, model = sections.get("placement", {}), sections.get("model", {})
    split, devices = placement.get("split"), placement.get("device")
    if split is not None and not all(isinstance(layer, int) and not isinstance(layer, bool) for layer in split):
        raise BadInput(f"[profile] {file}: placement.split: expected a list of layers, got {split!r}")
    if devices is not None and not (devices and all(isinstance(device, str) for device in devices)):
        raise BadInput(f"[profile] {file}: placement.device: expected a list of devices, got {devices!r}")
    switches = {
        key: BY_NAME[key].read(
            str(int(value)) if isinstance(value, bool) else str(value), f"[profile] {file}: switches.{key}"
        )
        for key, value in sections.get("switches", {}).items()
    }
    try:
        choices = None if devices is None else tuple(DeviceChoice.parse(device) for device in devices)
    except BadInput as error:
        raise BadInput(f"[profile] {file}: placement.device: {error}") from None
    return Profile(
        name=flat.get("name", file.removesuffix(".toml")),
        description=flat.get("description", ""),
        context=model.get("context"),
        kv=model.get("kv"),
        chunk=model.get("chunk"),
        stages=placement.get("stages"),
        split=None if split is None else tuple(split),
        devices=choices,
        threads=placement.get("threads"),
        switches=switches,
        sampling=dict(sections.get("sampling", {})),
    )


def _at(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _check_names(file: str, section: str, key: str, known: dict[str, Any]) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, [name for name in known if name], n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(n for n in known if n)}"
    raise BadInput(f"[profile] {file}: unknown key {_at(section, key)}{hint}")
