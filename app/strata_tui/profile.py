"""Run profiles: a placement, switches and sampling in TOML. Errors name file, key, expected and given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Sampling
from strata_tui.switches import BY_NAME


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
    """Profiles that come with the program, by name: of the package, or of the source tree it runs from."""
    from importlib import resources  # here: most runs have no profile, and the first paint does not wait

    packaged = Path(str(resources.files("strata_tui"))) / "profiles"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "profiles"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_profile(name_or_file: str) -> Profile:
    """A shipped profile by name, or one from a file.

    Raises:
        BadInput: there is none of that name, or something in it is wrong.
    """
    import tomllib

    shipped = shipped_profiles()
    path = shipped.get(name_or_file, Path(name_or_file))
    if path.suffix != ".toml" or not path.is_file():
        expected = f"one of {', '.join(shipped)} or a .toml file"
        raise BadInput(f"--profile: expected {expected}, got {name_or_file!r}")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # of TOML and of UTF-8 too
        raise BadInput(f"[profile] {path.name}: {error}") from None
    return parse_profile(tables, path.name)


# What each key accepts: a test, and what it expects in words.
_Check = tuple[Callable[[Any], bool], str]


def _whole(low: int, high: int) -> _Check:
    return lambda v: type(v) is int and low <= v <= high, f"a whole number from {low} to {high}"


def _ascending(value: Any) -> bool:
    layers = [0, *value] if isinstance(value, list) and value else [0, 0]
    return all(type(n) is int for n in layers) and all(a < b for a, b in itertools.pairwise(layers))


_TEXT: _Check = (lambda v: isinstance(v, str), "a text")
_NUMBER: _Check = (lambda v: type(v) in (int, float), "a number")
_KEYS: dict[str, dict[str, _Check]] = {
    "": {"name": _TEXT, "description": _TEXT},
    "model": {
        "context": _whole(1, 1 << 30),
        "kv": (lambda v: v in ("f32", "f16"), '"f32" or "f16"'),
        "chunk": _whole(1, 8192),
    },
    "placement": {
        "stages": _whole(1, 32),
        "split": (_ascending, "layers that ascend from 1"),
        "device": (lambda v: isinstance(v, list) and bool(v), "a list of devices"),
        "threads": _whole(1, 1024),
    },
    "switches": dict.fromkeys(BY_NAME, (lambda v: type(v) in (bool, int, float, str), "a value")),
    "sampling": dict.fromkeys(Sampling.__dataclass_fields__, _NUMBER)
    | {"top_k": _whole(0, (1 << 31) - 1), "seed": _whole(0, (1 << 63) - 1)},
}


def parse_profile(tables: dict[str, Any], file: str) -> Profile:
    """The profile that a parsed TOML file describes."""
    top = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    sections = {key: value for key, value in tables.items() if isinstance(value, dict)}
    for section, values in {"": top, **sections}.items():
        if section not in _KEYS:
            raise BadInput(f"[profile] {file}: unknown table {section}{_near(section, _KEYS)}")
        for key, value in values.items():
            if key not in _KEYS[section]:
                raise BadInput(
                    f"[profile] {file}: unknown key {_at(section, key)}{_near(key, _KEYS[section])}"
                )
            fits, expected = _KEYS[section][key]
            if not fits(value):
                raise BadInput(f"[profile] {file}: {_at(section, key)}: expected {expected}, got {value!r}")
    placement, model, sampling = (sections.get(name, {}) for name in ("placement", "model", "sampling"))
    where = f"[profile] {file}: "
    try:
        Sampling(**sampling)
    except BadInput as error:
        raise BadInput(f"{where}sampling: {error}") from None
    devices = placement.get("device")
    return Profile(
        name=top.get("name", file.removesuffix(".toml")),
        description=top.get("description", ""),
        context=model.get("context"),
        kv=model.get("kv"),
        chunk=model.get("chunk"),
        stages=placement.get("stages"),
        split=tuple(placement["split"]) if "split" in placement else None,
        devices=devices
        and tuple(DeviceChoice.parse(str(name), f"{where}placement.device") for name in devices),
        threads=placement.get("threads"),
        switches={
            key: BY_NAME[key].read(
                str(int(value) if value is True or value is False else value), f"{where}switches.{key}"
            )
            for key, value in sections.get("switches", {}).items()
        },
        sampling=dict(sampling),
    )


def _at(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _near(key: str, known: dict[str, Any]) -> str:
    names = [name for name in known if name]
    import difflib

    near = difflib.get_close_matches(key, names, n=1)
    return f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(names)}"
