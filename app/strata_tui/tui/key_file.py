"""A person's own keys: ~/.config/strata-tui/keys.toml, a command's name and its key or keys."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key

from strata_tui.errors import BadInput
from strata_tui.tui.commands import COMMANDS, shown_key

FIXED = ("interrupt", "leave")  # ctrl-c and escape always get a person out
_MOST_BYTES = 1 << 16


def key_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the file is looked for."""
    base = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".config"
    return Path(base) / "strata-tui" / "keys.toml"


def load_keys(path: Path) -> dict[str, str]:
    """The keys that differ from the usual ones, by command, as `Command.keys` has them; {} = no such file.

    Raises:
        BadInput: no TOML, no such command, no key, or two commands on one key.
    """
    try:
        text = path.read_bytes()[:_MOST_BYTES].decode(errors="replace")
    except FileNotFoundError:
        return {}
    import tomllib

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"[keys] {path}: {error}") from None
    keys = {name: _keys(name, value, path) for name, value in table.items()}
    _check_alone({command.name: keys.get(command.name, command.keys) for command in COMMANDS}, path)
    return keys


def _keys(name: str, value: Any, path: Path) -> str:
    names = [command.name for command in COMMANDS if command.name not in FIXED]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(names)}"
        raise BadInput(f"[keys] {path}: no command {name!r} whose keys can be chosen; {hint}")
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(isinstance(key, str) and key for key in given):
        raise BadInput(f"[keys] {path}: {name}: expected a key or a list of keys, got {value!r}")
    return ",".join(_key(key, name, path) for key in given)


def _key(text: str, name: str, path: Path) -> str:
    """`ctrl-s` or `ctrl+s`, `f2`, `;`: as textual names it."""
    if len(text) == 1 and text.isprintable():
        return _character_to_key(text)
    key = text.lower().replace("-", "+")
    *held, last = key.split("+")
    if not all(word in ("ctrl", "shift", "alt") for word in held) or not _exists(last):
        raise BadInput(f"[keys] {path}: {name}: expected a key such as s, ctrl-s, f2 or pageup, got {text!r}")
    return "+".join([*held, _character_to_key(last) if len(last) == 1 else last])


def _exists(key: str) -> bool:
    """Is there a key of this name, or a character: `semicolon`?"""
    if len(key) == 1 or key in {of.value for of in Keys} | set(KEY_NAME_REPLACEMENTS.values()):
        return True
    try:
        return bool(unicodedata.lookup(key.replace("_", " ")))
    except KeyError:
        return False


def _check_alone(keys: Mapping[str, str], path: Path) -> None:
    owner = {"ctrl+p": "the palette"}
    for name, several in keys.items():
        for key in several.split(","):
            if key in owner:
                raise BadInput(
                    f"[keys] {path}: expected a key for each command, got {shown_key(key)} for both "
                    f"{owner[key]} and {name}"
                )
            owner[key] = name
