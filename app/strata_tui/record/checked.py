"""Values of a JSON object that a file brought, looked at as they are taken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from strata_tui.analysis.guesses import GuessCounts
from strata_tui.errors import BadInput
from strata_tui.events import WindowFate
from strata_tui.switches import BY_NAME
from strata_tui.tokenizer import printable

MAX_COUNT = 1 << 53
MAX_ID = 1 << 31
MAX_TEXT = 1 << 24  # characters
_ABSENT = object()
_GUESSES = frozenset(field.name for field in fields(GuessCounts))
_CLASSES = (WindowFate.fresh, WindowFate.kept_after_fresh, WindowFate.kept_after_kept)


@dataclass(frozen=True)
class Checked:
    """A JSON object or array. `where` begins each refusal; every method raises BadInput."""

    value: Any
    where: str

    def has(self, key: str) -> bool:
        """Is there such a key, in an object?"""
        return isinstance(self.value, dict) and key in self.value

    def _get(self, key: str | int, default: Any = _ABSENT) -> Any:
        try:
            return self.value[key]
        except (KeyError, IndexError, TypeError):  # an array where an object was expected
            if default is _ABSENT:
                raise self._refused(key, "a value") from None
            return default

    def _refused(self, key: str | int, expected: str, got: object = _ABSENT) -> BadInput:
        shown = "none" if got is _ABSENT else printable(repr(got)[:80], newlines=False)
        return BadInput(f"{self.where}: {key}: expected {expected}, got {shown}")

    def text(self, key: str | int, default: Any = _ABSENT, most: int = MAX_TEXT) -> str:
        """A text of so many characters at most, as it stands."""
        value = self._get(key, default)
        if not isinstance(value, str) or len(value) > most:
            raise self._refused(key, f"a text of {most:,} characters at most", value)
        return value

    def whole(self, key: str | int, default: Any = _ABSENT, least: int = 0, most: int = MAX_COUNT) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._refused(key, f"a whole number from {least} to {most}", value)
        return value

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._refused(key, "true or false", value)
        return value

    def ids(self, key: str | int, default: Any = _ABSENT) -> tuple[int, ...]:
        """Token ids."""
        value = self._get(key, default)
        if not isinstance(value, list | tuple) or not all(type(i) is int and 0 <= i < MAX_ID for i in value):
            raise self._refused(key, "token ids", value)
        return tuple(value)

    def items(self, key: str) -> Iterator[Checked]:
        """The objects or arrays in an array."""
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict | list) for item in value):
            raise self._refused(key, "an array", value)
        return (Checked(item, f"{self.where}: {key}") for item in value)

    def numbers(self, key: str) -> dict[str, float]:
        """Finite numbers by name."""
        value = self._get(key)
        if not isinstance(value, dict) or not all(_is_number(number) for number in value.values()):
            raise self._refused(key, "numbers by name", value)
        return {printable(name[:80], newlines=False): number for name, number in value.items()}

    def machine(self, key: str) -> str:
        """`processor, 4 cores`, as far as it is said."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            raise self._refused(key, "an object", value)
        inner = Checked(value, f"{self.where}: {key}")
        model = printable(inner.text("model", default="", most=200), newlines=False)
        return f"{model or 'processor'}, {inner.whole('cores', default=0)} cores"

    def switches(self, key: str) -> dict[str, Any]:
        """Values of live switches; what is not known here, the name or the value, is left out."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self._refused(key, "switches by name", value)
        known = {}
        for name, given in value.items():
            if name in BY_NAME and isinstance(given, bool | int | float | str):
                text = str(int(given)) if isinstance(given, bool) else str(given)[:40]
                try:
                    known[name] = BY_NAME[name].accepts.read(text)
                except (ValueError, KeyError, OverflowError):
                    continue
        return known

    def vocabulary(self) -> dict[int, str]:
        """What tokens are written as, this object being one of texts by ids."""
        words = {}
        for key, text in self.value.items():
            if not (key.isascii() and key.isdigit() and len(key) <= 10 and int(key) < MAX_ID):
                raise self._refused("vocabulary", "token ids", key)
            if not isinstance(text, str) or len(text) > 4096:
                raise self._refused(key[:10], "a token's text", text)
            words[int(key)] = text
        return words

    def stats(self, key: str) -> dict[str, Any] | None:
        """A request's counters, as far as its log lines need them; None where they are not all there."""
        value = self._get(key, {})
        if not isinstance(value, dict):
            raise self._refused(key, "counters by name", value)
        kept: dict[str, Any] = {}
        for name, count in value.items():
            if _is_count(count) or (isinstance(count, list) and all(map(_is_count, count))):
                kept[name] = count
        guesses = value.get("guesses")
        if isinstance(guesses, dict):
            kept["guesses"] = {name: n for name, n in guesses.items() if name in _GUESSES and _is_count(n)}
        counts = ("begin_ns", "generated", "windows", "window_ns")
        lists = ("windows_by_class", "window_ns_by_class")
        whole = (
            all(isinstance(kept.get(name), int) for name in counts)
            and all(isinstance(kept.get(name), list) and len(kept[name]) == len(_CLASSES) for name in lists)
            and set(kept.get("guesses", ())) == _GUESSES
        )
        return kept if whole else None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= 1 << 62


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 1 << 64 and math.isfinite(value)
