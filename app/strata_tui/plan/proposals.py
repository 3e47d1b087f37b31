"""Which switches a placement could be run with, and what each would give: modelled from recorded texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata_tui.analysis.what_if import Prediction, Setting, WhatIf
from strata_tui.paced import HandOffTimes
from strata_tui.placement import SharedCores
from strata_tui.plan.measuring import Measured

IN_FLIGHT = (2, 3, 4)  # and as many as there are stages
SHORT_DRAFTS = (2, 1)
THETAS = (0.2, 0.0)
CHOSEN = ("overlap", "pipeline_windows", "theta", "draft", "draft_max")


@dataclass(frozen=True)
class Proposal:
    """Switches on a split, with what they would give; `prediction` is modelled, never measured."""

    split: tuple[int, ...]
    switches: Mapping[str, Any]
    prediction: Prediction

    @property
    def name(self) -> str:
        s = self.switches
        parts = ["overlap" if s["overlap"] else "serial"]
        if s["pipeline_windows"]:
            parts.append(f"{s['pipeline_windows']} in flight, theta {s['theta']:g}")
        if s["draft_max"]:
            parts.append(f"{s['draft_max']} draft{'s' * (s['draft_max'] != 1)}")
        return ", ".join(parts)


def as_asked(n_stages: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the switches that a plan chooses come to on so many stages.

    Args:
        values: of `CHOSEN`.
    """
    drafts = values["draft_max"] if values["draft"] != "none" else 0
    flight = min(values["pipeline_windows"], n_stages)
    return {
        "overlap": values["overlap"] and n_stages > 1,
        "pipeline_windows": flight if flight > 1 and drafts else 0,
        "theta": round(values["theta"], 6),  # the engine holds it in single precision
        "draft_max": drafts,
    }


def candidates(n_stages: int, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was asked for of `as_asked`, then other values; drafts are never longer."""
    drafts = asked["draft_max"]
    lengths = [drafts, *(n for n in SHORT_DRAFTS if n < drafts)]
    flights = [0]
    if n_stages > 1 and drafts:
        flights += sorted({n for n in (*IN_FLIGHT, n_stages) if n <= n_stages})
    thetas = list(dict.fromkeys((asked["theta"], *THETAS)))
    found = [dict(asked)]
    for length in lengths:
        for overlap in (False, True)[: 2 if n_stages > 1 else 1]:
            for flight in flights:
                for theta in thetas if flight else thetas[:1]:
                    one = {
                        "overlap": overlap,
                        "pipeline_windows": flight,
                        "theta": theta,
                        "draft_max": length,
                    }
                    if one not in found:
                        found.append(one)
    return found


def in_order(proposal: Proposal) -> tuple[bool, float]:
    """The best first."""
    return proposal.prediction.unsure, -proposal.prediction.tokens_per_s


def propose(
    split: Sequence[int],
    serial: Measured,
    pipelined: Measured | None,
    asked: Mapping[str, Any],
    shared_cores: Sequence[SharedCores] = (),
    hand_offs: Sequence[HandOffTimes | None] = (),
) -> list[Proposal]:
    """Every candidate on this split, the most tokens per second first; those that are unsure come last.

    Args:
        serial: one window at a time.
        pipelined: guesses of all depths, recorded too: what runs side by side is predicted from it, since
            stages may be slower side by side than alone.
        asked: see `as_asked`.
        shared_cores, hand_offs: see `Engine`.
    """
    n_stages = len(split) + 1

    def model(measured: Measured) -> WhatIf:
        recorded = Setting.of(dict(measured.run.in_force))
        return WhatIf(measured.events, n_stages, recorded, shared_cores, hand_offs)

    models = {False: model(serial), True: model(pipelined or serial)}
    proposals = []
    for switches in candidates(n_stages, asked):
        recorded = pipelined if switches["pipeline_windows"] and pipelined is not None else serial
        setting = Setting.of({**recorded.run.in_force, **switches}, allocated=max(2, n_stages))
        prediction = models[bool(switches["pipeline_windows"])].predict(setting)
        proposals.append(Proposal(tuple(split), switches, prediction))
    return sorted(proposals, key=in_order)
