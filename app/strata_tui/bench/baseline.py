"""A former bench beside this one: refused unless model, machine, arms and prompts are the same."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_tui.bench.figures import Figures
from strata_tui.errors import BadInput

MOST_BYTES = 64 << 20


def per_cent(text: str) -> float:
    """3% or 3 -> 0.03."""
    try:
        share = float(text.strip().removesuffix("%")) / 100
        if not 0 <= share < 1:
            raise ValueError
    except ValueError:
        raise BadInput(f"--fail-above: expected a share like 3%, got {text!r}") from None
    return share


def read_baseline(path: Path) -> dict[str, Any]:
    """The object of a former `bench --json`.

    Raises:
        BadInput: the file is none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        found = json.loads(data) if len(data) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not _whole(found):
        raise BadInput(f"--baseline: expected the output of bench --json, got {path}")
    return found


def _whole(found: Mapping[str, Any]) -> bool:
    arms = found.get("arms")
    return (
        isinstance(arms, list)
        and bool(arms)
        and all(isinstance(arm, dict) and _has_rate(arm) for arm in arms)
    )


def _has_rate(arm: Mapping[str, Any]) -> bool:
    rate = arm.get("tokens_per_s")
    median = rate.get("median") if isinstance(rate, dict) else None
    return isinstance(median, float | int) and math.isfinite(median) and median > 0


def refuse_unlike(former: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises BadInput with the first thing that is not the same; keys that `now` lacks are not looked at."""
    for key in ("model_sha256", "machine", "prompt", "max_tokens", "sampling", "fresh", "bound"):
        if key in now and former.get(key) != now[key]:
            raise _unlike(key, former.get(key), now[key])
    then, here = ([arm.get("name") for arm in found["arms"]] for found in (former, now))
    if then != here:
        raise _unlike("arms", then, here)
    for old, new in zip(former["arms"], now["arms"], strict=True):
        if old.get("asked") != new["asked"]:
            raise BadInput(f"--baseline: arm {new['name']} had other options: {_first_unlike(old, new)}")


def _unlike(key: str, then: Any, here: Any) -> BadInput:
    return BadInput(f"--baseline: expected the same {key}, {here} here, got {str(then)[:200]}")


def _first_unlike(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    before = old.get("asked")
    for part, values in new["asked"].items():
        was = before.get(part) if isinstance(before, dict) else None
        for key, value in values.items():
            if not isinstance(was, dict) or was.get(key) != value:
                return f"{key} {value} here, got {str(was.get(key) if isinstance(was, dict) else was)[:80]}"
    return "some are missing here"


@dataclass(frozen=True)
class Change:
    """An arm's median tok/s, then and now."""

    name: str
    then: float
    now: float

    @property
    def share(self) -> float:
        """0.1: a tenth faster now."""
        return self.now / self.then - 1

    def line(self) -> str:
        way = "slower" if self.share < 0 else "faster"
        rates = f"{self.now:.1f} against {self.then:.1f} tok/s"
        return f"{self.name}: {abs(self.share):.1%} {way} than the baseline ({rates})"


def changes(former: Mapping[str, Any], now: Sequence[Figures]) -> list[Change]:
    """Of the arms that were measured."""
    rates = {arm["name"]: float(arm["tokens_per_s"]["median"]) for arm in former["arms"]}
    return [
        Change(of_arm.arm.name, rates[of_arm.arm.name], median)
        for of_arm in now
        if (median := of_arm.rates["tokens_per_s"].median) is not None
    ]
