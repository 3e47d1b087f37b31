"""Every switch: its flag, its environment name, its default, what it accepts. A flag wins over the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from strata_tui.errors import BadInput

MAX_DRAFTS = 7


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    parse.__doc__ = f"a whole number from {low} to {high}"
    return parse


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError
        return value

    parse.__doc__ = f"a number from {low:g} to {high:g}"
    return parse


def _on_off(text: str) -> bool:
    """0 or 1"""
    return {"0": False, "1": True, "off": False, "on": True}[text.strip().lower()]


def _draft(text: str) -> str:
    """mtp, lookup, none or replay:Q with Q from 0 to 1"""
    source, colon, quality = text.partition(":")
    if colon:
        if source != "replay" or not 0 <= float(quality) <= 1:
            raise ValueError
        return f"replay:{float(quality):g}"
    return {"mtp": "mtp", "lookup": "lookup", "none": "none"}[text]


@dataclass(frozen=True)
class Switch:
    """A switch of the decode loop; `parse`'s docstring says what it accepts."""

    name: str  # in Python, TOML and traces
    flag: str
    environment: str  # "" = none
    default: Any
    parse: Callable[[str], Any]
    meaning: str

    def read(self, text: str, where: str) -> Any:
        """The value of a text; `where` names its flag, variable or key in the error."""
        try:
            return self.parse(text)
        except (ValueError, KeyError):
            raise BadInput(f"{where}: expected {self.parse.__doc__}, got {text!r}") from None


SWITCHES = (
    Switch("overlap", "--overlap", "STRATA_SPLIT_OVERLAP", False, _on_off, "launch the next stage ahead of its input"),
    Switch(
        "pipeline_windows",
        "--pipeline-windows",
        "STRATA_PIPELINE_WINDOWS",
        0,
        _whole(0, 32),
        "windows in flight",
    ),
    Switch("draft", "--draft", "", None, _draft, "where drafts come from; mtp if the file has it, else lookup"),
    Switch("draft_max", "--draft-max", "", 4, _whole(0, MAX_DRAFTS), "drafts a window at most"),
    Switch("draft_min_p", "--draft-min-p", "", 0.0, _number(0, 1), "drafting stops below this probability"),
    Switch(
        "theta", "--theta", "STRATA_PIPELINE_THETA", 0.2, _number(0, 1e6), "guesses below this estimate are gated"
    ),
    Switch("short_read", "--short-read", "", 64, _whole(0, 1 << 20), "prompt rests read through windows"),
    Switch("rate", "--rate", "", 0.0, _number(0, 1e6), "tokens per second at most; 0 = no cap"),
)
BY_NAME = {switch.name: switch for switch in SWITCHES}

TEST_SWITCHES = ("STRATA_PIPELINE_FORCE_MISS", "STRATA_PIPELINE_SPEC_DEPTH", "STRATA_PIPELINE_LOG")
"""Read only with STRATA_PIPELINE_DEBUG=1; they come with pipelined windows."""

WITHOUT_COUNTERPART = {
    "STRATA_IQ_MT_MIN": "kernels here are row-invariant already",
    "STRATA_SPLIT_OWN": "each stage always owns its device",
    "STRATA_STAGE_TRIM": "a stage allocates what it needs",
    "STRATA_PF_FUSED": "prefill has one way here",
    "STRATA_PF_GEMM": "prefill has one way here",
    "STRATA_PF_SWITCH_MIN_T": "prefill has one way here",
}
"""Switches of the upstream engine that mean nothing here, with the reason."""


def from_environment(environment: Mapping[str, str] = os.environ) -> tuple[dict[str, Any], list[str]]:
    """Switches set in the environment.

    Returns:
        Values by name, and a line for each variable that is set and means nothing.

    Raises:
        BadInput: a value that its switch doesn't accept.
    """
    debug = environment.get("STRATA_PIPELINE_DEBUG") == "1"
    values: dict[str, Any] = {}
    notes: list[str] = []
    for switch in SWITCHES:
        text = environment.get(switch.environment, "") if switch.environment else ""
        if not text:
            continue
        if switch.name == "theta" and not debug:
            notes.append(f"{switch.environment} is read only with STRATA_PIPELINE_DEBUG=1; --theta needs none")
            continue
        values[switch.name] = switch.read(text, switch.environment)
    for name in TEST_SWITCHES:
        if environment.get(name):
            why = "it comes with pipelined windows" if debug else "it is read only with STRATA_PIPELINE_DEBUG=1"
            notes.append(f"{name} is set and not used: {why}")
    for name, why in WITHOUT_COUNTERPART.items():
        if environment.get(name):
            notes.append(f"{name} is set and has no counterpart here: {why}")
    return values, notes


def resolve(
    flags: Mapping[str, Any], profile: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> tuple[dict[str, Any], list[str]]:
    """Flag over environment over profile over default (None stays None: the engine decides by the file)."""
    from_env, notes = from_environment(environment)
    values = {
        switch.name: next(
            (source[switch.name] for source in (flags, from_env, profile) if source.get(switch.name) is not None),
            switch.default,
        )
        for switch in SWITCHES
    }
    return values, notes
