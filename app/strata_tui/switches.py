"""Every switch: its names, its default, what it accepts. A flag wins over the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from strata_tui.errors import BadInput

MAX_DRAFTS = 7


@dataclass(frozen=True)
class Accepts:
    """A kind of value: `read` makes it of a text, or raises ValueError or KeyError; `what` names it."""

    read: Callable[[str], Any]
    what: str


def _whole(low: int, high: int) -> Accepts:
    def read(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    return Accepts(read, f"a whole number from {low} to {high}")


def _number(low: float, high: float) -> Accepts:
    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high:  # so that nan is refused too
            raise ValueError
        return value

    return Accepts(read, f"a number from {low:g} to {high:g}")


def _read_draft(text: str) -> str:
    source, colon, quality = text.partition(":")
    if colon:
        if source != "replay" or not 0 <= float(quality) <= 1:
            raise ValueError
        return f"replay:{float(quality):g}"
    return {"mtp": "mtp", "lookup": "lookup", "none": "none"}[text]


def _read_rate(text: str) -> float:
    rate = float(text)
    if rate != 0 and not 0.001 <= rate <= 1e6:
        raise ValueError
    return rate


RATE = Accepts(_read_rate, "0 (no cap) or a number from 0.001 to 1e+06")
ON_OFF = Accepts(
    lambda text: {"0": False, "1": True, "off": False, "on": True}[text.strip().lower()], "0 or 1"
)
DRAFT = Accepts(_read_draft, "mtp, lookup, none or replay:Q with Q from 0 to 1")


@dataclass(frozen=True)
class Switch:
    """A live switch of the decode loop."""

    name: str  # in Python, TOML and traces
    environment: str  # "" = none
    default: Any  # None: the engine decides by the file
    accepts: Accepts
    meaning: str
    has_flag: bool = True
    only_debug: bool = False  # its variable is read only with STRATA_PIPELINE_DEBUG=1

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def read(self, text: str, where: str) -> Any:
        """The value of a text; `where` names its flag, variable or key in the error."""
        return _read(self.accepts, text, where)


SWITCHES = (
    Switch("overlap", "STRATA_SPLIT_OVERLAP", False, ON_OFF, "launch the next stage ahead of its input"),
    Switch("pipeline_windows", "STRATA_PIPELINE_WINDOWS", 0, _whole(0, 32), "windows in flight"),
    Switch("draft", "", None, DRAFT, "where drafts come from; mtp if the file has it, else lookup"),
    Switch("draft_max", "", 4, _whole(0, MAX_DRAFTS), "drafts a window at most"),
    Switch("draft_min_p", "", 0.0, _number(0, 1), "drafting stops below this probability"),
    Switch(
        "theta",
        "STRATA_PIPELINE_THETA",
        0.2,
        _number(0, 1e6),
        "guesses below this estimate are gated; above 1: no guesses",
        only_debug=True,
    ),
    Switch("short_read", "", 64, _whole(0, 1 << 20), "prompt rests up to this long are read through windows"),
    Switch("rate", "", 0.0, RATE, "tokens per second at most; 0: no cap"),
    Switch(
        "force_miss",
        "STRATA_PIPELINE_FORCE_MISS",
        None,
        _whole(0, 1 << 30),
        "every n-th guess is made wrong; 0: none",
        has_flag=False,
        only_debug=True,
    ),
    Switch(
        "spec_depth",
        "STRATA_PIPELINE_SPEC_DEPTH",
        None,
        _whole(0, 32),
        "guesses stay on the first k front stages",
        has_flag=False,
        only_debug=True,
    ),
    Switch(
        "chain_ahead",
        "",
        None,
        ON_OFF,
        "the draft chain runs ahead of the verdict",
        has_flag=False,
    ),
)
BY_NAME = {switch.name: switch for switch in SWITCHES}

REPORTS = {
    "pipeline_log": "STRATA_PIPELINE_LOG",  # only with STRATA_PIPELINE_DEBUG=1
    "decode_timing": "STRATA_DECODE_TIMING",
    "split_timing": "STRATA_SPLIT_TIMING",
    "verify_profile": "STRATA_VERIFY_PROFILE",
}
"""What can be told of each request beside its two lines, and the variable that asks for it."""

FLAGS_WITHOUT_COUNTERPART = {
    "--pcie-frac": "no experts are streamed over a bus",
    "--adapt-every": "no experts are moved while decoding",
    "--adapt-async": "no experts are moved while decoding",
    "--split-device": "--device names each stage's device",
}
VARIABLES_WITHOUT_COUNTERPART = {
    "STRATA_IQ_MT_MIN": "kernels here are row-invariant already",
    "STRATA_SPLIT_OWN": "each stage always owns its device",
    "STRATA_STAGE_TRIM": "a stage allocates what it needs",
    "STRATA_PF_": "prefill has one way here",  # and what follows
}
"""Switches of the upstream engine that mean nothing here, with the reason: each that is set gives a line."""


def as_they_can_be(
    asked: Mapping[str, Any], n_stages: int, allocated: int, has_draft_layer: bool
) -> dict[str, Any]:
    """What an engine makes of the switches that it is asked for: those that can't apply are left as they can.

    Args:
        allocated: windows in flight that there is memory for; 0, or 2 or more.
    """
    values = dict(asked)
    if n_stages == 1 and "overlap" in values:
        values["overlap"] = False
    windows = values.get("pipeline_windows", 0)
    if (windows > 0 and n_stages == 1) or (windows == 1 and n_stages != 2):
        values["pipeline_windows"] = 0
    elif windows > max(1, allocated):
        values["pipeline_windows"] = allocated
    if values.get("draft") == "mtp" and not has_draft_layer:
        values["draft"] = "lookup"
    return values


def without_counterpart(name: str, why: str) -> str:
    return f"{name} is set and has no counterpart here: {why}"


def from_environment(environment: Mapping[str, str] = os.environ) -> tuple[dict[str, Any], list[str]]:
    """Switches set in the environment.

    Returns:
        Values by name, and a line for each variable that is set and means nothing.

    Raises:
        BadInput: a value that its switch doesn't accept.
    """
    debug = _debug(environment)
    values: dict[str, Any] = {}
    notes: list[str] = []
    for switch in SWITCHES:
        text = environment.get(switch.environment, "") if switch.environment else ""
        if not text:
            continue
        if switch.only_debug and not debug:
            notes.append(_only_with_debug(switch.environment) + ("; --theta needs none" * switch.has_flag))
            continue
        values[switch.name] = switch.read(text, switch.environment)
    for name in sorted(environment):
        for start, why in VARIABLES_WITHOUT_COUNTERPART.items():
            if environment[name] and (name == start or (start.endswith("_") and name.startswith(start))):
                notes.append(without_counterpart(name, why))
    return values, notes


def reports(environment: Mapping[str, str] = os.environ) -> tuple[frozenset[str], list[str]]:
    """Reports that the environment asks for, and a line for each that can't be had.

    Raises:
        BadInput: a value other than 0 or 1.
    """
    asked: set[str] = set()
    notes: list[str] = []
    for name, variable in REPORTS.items():
        text = environment.get(variable, "")
        if not text:
            continue
        if name == "pipeline_log" and not _debug(environment):
            notes.append(_only_with_debug(variable))
        elif _read(ON_OFF, text, variable):
            asked.add(name)
    return frozenset(asked), notes


def _debug(environment: Mapping[str, str]) -> bool:
    text = environment.get("STRATA_PIPELINE_DEBUG", "")
    return bool(text) and bool(_read(ON_OFF, text, "STRATA_PIPELINE_DEBUG"))


def _only_with_debug(variable: str) -> str:
    return f"{variable} is set and not used: it is read only with STRATA_PIPELINE_DEBUG=1"


def _read(accepts: Accepts, text: str, where: str) -> Any:
    try:
        return accepts.read(text)
    except (ValueError, KeyError):
        raise BadInput(f"{where}: expected {accepts.what}, got {text[:80]!r}") from None


def resolve(
    flags: Mapping[str, Any], profile: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], list[str]]:
    """Flag over environment over profile over default (None stays None: the engine decides by the file)."""
    from_env, notes = from_environment(environment)
    values = {switch.name: switch.default for switch in SWITCHES}
    for source in (profile, from_env, flags):
        values.update({name: value for name, value in source.items() if value is not None})
    return values, notes
