"""Run profiles: a placement, switches, sampling and a rig in TOML. Errors name file, key, expected, given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.files import read_up_to, regular
from strata_tui.options import DeviceChoice, Profile, Sampling
from strata_tui.paced import MAX_PROGRAM_MS, HandOffTimes, Points, Rig, StageTimes
from strata_tui.switches import BY_NAME
from strata_tui.terminal_text import printable

MOST_MIB = 1


def shipped_profiles() -> dict[str, Path]:
    """Profiles that come with the program, by name: of the package, or of the source tree it runs from."""
    from importlib import resources  # here: most runs have no profile, and the first paint does not wait

    packaged = Path(str(resources.files("strata_tui"))) / "profiles"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[2] / "profiles"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def paced_profiles() -> list[str]:
    """Names of those that ship and describe a rig."""
    return [name for name in shipped_profiles() if load_profile(name).rig]


def load_profile(name_or_file: str, where: str = "--profile") -> Profile:
    """A shipped profile by name, or one from a file.

    Raises:
        BadInput: there is none of that name, or something in it is wrong.
    """
    return parse_profile(*_read(name_or_file, where))


def load_rig(name_or_file: str, where: str) -> Rig | None:
    """The rig of such a profile; the devices that it names itself are not looked at: they could name it.

    Raises:
        BadInput: see `load_profile`.
    """
    tables, file = _read(name_or_file, where)
    top, sections = _checked(tables, file)
    return _rig(sections["paced"], _name(top, file), file) if "paced" in sections else None


def _read(name_or_file: str, where: str) -> tuple[dict[str, Any], str]:
    """The tables of a file, and its name."""
    import tomllib

    shipped = shipped_profiles()
    path = shipped.get(name_or_file, Path(name_or_file))
    if path.suffix != ".toml":
        expected = f"one of {', '.join(shipped)} or a .toml file"
        raise BadInput(f"{where}: expected {expected}, got {name_or_file!r}")
    regular(path, "a run profile")
    if not path.is_file():
        raise BadInput(f"{where}: {name_or_file}: no such file")
    file = printable(path.name, newlines=False)
    try:
        with path.open("rb") as opened:
            text = read_up_to(MOST_MIB, opened, f"[profile] {file}")
        return tomllib.loads(text.decode()), file
    except (OSError, ValueError) as error:  # of TOML and of UTF-8 too
        raise BadInput(f"[profile] {file}: {error}") from None
    except RecursionError:
        raise BadInput(f"[profile] {file}: expected a run profile, got arrays nested without end") from None


# What each key accepts: a test, and what it expects in words.
_Check = tuple[Callable[[Any], bool], str]


def _whole(low: int, high: int) -> _Check:
    return lambda v: type(v) is int and low <= v <= high, f"a whole number from {low} to {high}"


def _ascending(value: Any) -> bool:
    layers = [0, *value] if isinstance(value, list) and value else [0, 0]
    return all(type(n) is int for n in layers) and all(a < b for a, b in itertools.pairwise(layers))


_TEXT: _Check = (lambda v: isinstance(v, str), "a text")
_NUMBER: _Check = (lambda v: type(v) in (int, float), "a number")
_TEXTS: _Check = (lambda v: isinstance(v, list) and all(isinstance(t, str) for t in v), "a list of texts")


def _between(low: float, high: float) -> _Check:
    return lambda v: type(v) in (int, float) and low <= v <= high, f"a number from {low:g} to {high:g}"


def _is_points(value: Any) -> bool:
    rows = value if isinstance(value, dict) else {"1": value}
    fits = all(row.isdecimal() and len(row) < 6 and int(row) > 0 and _MS[0](ms) for row, ms in rows.items())
    return fits and bool(rows) and len({int(row) for row in rows}) == len(rows)


_MS = _between(0, MAX_PROGRAM_MS)
_POINTS: _Check = (_is_points, f"ms from 0 to {MAX_PROGRAM_MS:g}, or a table of them by rows")
_STAGE: dict[str, _Check] = {"run_ms": _POINTS, "run_ms_per_1k": _between(0, 1000), "chunk_ms": _POINTS}
_HAND_OFF: dict[str, _Check] = dict.fromkeys(HandOffTimes.__dataclass_fields__, _MS)
_KEYS: dict[str, dict[str, _Check]] = {
    "": {"name": _TEXT, "description": _TEXT, "sources": _TEXTS},
    "model": {
        "context": _whole(1, 1 << 30),
        "kv": (lambda v: v in ("f32", "f16"), '"f32" or "f16" (int8 is not in this version)'),
        "chunk": _whole(1, 8192),
    },
    "placement": {
        "stages": _whole(1, 32),
        "split": (_ascending, "layers that ascend from 1"),
        "device": (lambda v: isinstance(v, list) and bool(v), "a list of devices"),
        "threads": _whole(1, 1024),
        "per_node": (lambda v: type(v) is bool, "true or false"),
    },
    "paced": {
        "stages": (
            lambda v: isinstance(v, list) and 1 <= len(v) <= 32 and all(isinstance(s, dict) for s in v),
            "1 to 32 tables [[paced.stages]]",
        ),
        "hand_off_ms": (lambda v: isinstance(v, dict), "a table of launch, serial, overlapped, polled"),
        **dict.fromkeys(("verdict_ms", "draft_ms", "commit_ms", "undo_ms"), _MS),
        "jitter": _between(0, 0.5),
        "seed": _whole(0, (1 << 63) - 1),
        "position_offset": _whole(0, 1 << 30),
    },
    "switches": dict.fromkeys(BY_NAME, (lambda v: type(v) in (bool, int, float, str), "a value")),
    "sampling": dict.fromkeys(Sampling.__dataclass_fields__, _NUMBER)
    | {"top_k": _whole(0, (1 << 31) - 1), "seed": _whole(0, (1 << 63) - 1)},
}


def parse_profile(tables: dict[str, Any], file: str) -> Profile:
    """The profile that a parsed TOML file describes."""
    top, sections = _checked(tables, file)
    placement, model, sampling = (sections.get(name, {}) for name in ("placement", "model", "sampling"))
    where = f"[profile] {file}: "
    try:
        Sampling(**sampling)
    except BadInput as error:
        raise BadInput(f"{where}sampling: {error}") from None
    devices = placement.get("device")
    name = _name(top, file)
    rig = _rig(sections["paced"], name, file) if "paced" in sections else None
    if rig and not devices:
        _check_stages(placement, len(rig.stages), file)
    return Profile(
        name=name,
        description=printable(top.get("description", ""), newlines=False),
        sources=tuple(printable(source, newlines=False) for source in top.get("sources", ())),
        context=model.get("context"),
        kv=model.get("kv"),
        chunk=model.get("chunk"),
        stages=placement.get("stages", len(rig.stages) if rig and "split" not in placement else None),
        split=tuple(placement["split"]) if "split" in placement else None,
        devices=tuple(DeviceChoice.parse(str(text), f"{where}placement.device") for text in devices)
        if devices
        else (DeviceChoice("paced", rig=rig),)
        if rig
        else None,
        threads=placement.get("threads"),
        per_node=placement.get("per_node", False),
        rig=rig,
        switches={
            key: BY_NAME[key].read(
                str(int(value) if value is True or value is False else value), f"{where}switches.{key}"
            )
            for key, value in sections.get("switches", {}).items()
        },
        sampling=dict(sampling),
    )


def _checked(tables: dict[str, Any], file: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The keys outside tables, and the tables; every key is known and has a value that it accepts."""
    top = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    sections = {key: value for key, value in tables.items() if isinstance(value, dict)}
    for section, values in {"": top, **sections}.items():
        if section not in _KEYS:
            raise BadInput(f"[profile] {file}: unknown table {section}{_near(section, _KEYS)}")
        _check(values, _KEYS[section], section, file)
    return top, sections


def _name(top: dict[str, Any], file: str) -> str:
    return printable(top.get("name", file.removesuffix(".toml")), newlines=False)


def _rig(table: dict[str, Any], name: str, file: str) -> Rig:
    if "stages" not in table:
        raise BadInput(f"[profile] {file}: paced.stages: expected {_KEYS['paced']['stages'][1]}, got none")
    for i, stage in enumerate(table["stages"]):
        _check(stage, _STAGE, f"paced.stages[{i}]", file)
        if "run_ms" not in stage:
            raise BadInput(f"[profile] {file}: paced.stages[{i}].run_ms: expected {_POINTS[1]}, got none")
    _check(table.get("hand_off_ms", {}), _HAND_OFF, "paced.hand_off_ms", file)
    stages = tuple(
        StageTimes(
            run_ms=_points(stage["run_ms"]),
            run_ms_per_1k=stage.get("run_ms_per_1k", 0.0),
            chunk_ms=_points(stage.get("chunk_ms", {})),
        )
        for stage in table["stages"]
    )
    times = {key: value for key, value in table.items() if key not in ("stages", "hand_off_ms")}
    return Rig(name, stages, HandOffTimes(**table.get("hand_off_ms", {})), **times)


def _check_stages(placement: dict[str, Any], n_paced: int, file: str) -> None:
    """A profile whose devices are its own rig's has as many stages; with flags there may be any number."""
    split, stages = placement.get("split"), placement.get("stages")
    tables = f"the {n_paced} table{'s' * (n_paced > 1)} [[paced.stages]]"
    if split is not None and len(split) != n_paced - 1:
        layers = f"{n_paced - 1} layer{'s' * (n_paced != 2)}" if n_paced > 1 else "none"
        raise BadInput(f"[profile] {file}: placement.split: expected {layers}, for {tables}, got {split}")
    if stages not in (None, n_paced):
        raise BadInput(f"[profile] {file}: placement.stages: expected {n_paced}, for {tables}, got {stages}")


def _points(value: Any) -> Points:
    by_rows = value if isinstance(value, dict) else {"1": value}
    return tuple(sorted((int(rows), float(ms)) for rows, ms in by_rows.items()))


def _check(values: dict[str, Any], known: dict[str, _Check], section: str, file: str) -> None:
    for key, value in values.items():
        if key not in known:
            raise BadInput(f"[profile] {file}: unknown key {_at(section, key)}{_near(key, known)}")
        fits, expected = known[key]
        if not fits(value):
            raise BadInput(
                f"[profile] {file}: {_at(section, key)}: expected {expected}, got {repr(value)[:80]}"
            )


def _at(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _near(key: str, known: dict[str, Any]) -> str:
    names = [name for name in known if name]
    import difflib

    near = difflib.get_close_matches(key, names, n=1)
    return f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(names)}"
