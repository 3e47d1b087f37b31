"""Why decoding takes as long as it does, over the last windows: to be read before a switch is flipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata_tui.analysis.bound import Bound, Measured, actual_ns, guesses_in_flight, lower_bound, measured
from strata_tui.analysis.doing import CAUSES
from strata_tui.analysis.fate import Fate
from strata_tui.analysis.findings import Finding, Situation, findings
from strata_tui.analysis.guesses import GuessCounts, count_guesses
from strata_tui.analysis.idle import StageTime, stage_times
from strata_tui.analysis.passages import passages, texts
from strata_tui.analysis.view import Mark, View
from strata_tui.events import Events, Kind

MOST_WINDOWS = 100  # more cost time and tell no more
FEWEST_WINDOWS = 8  # since the last flip; with fewer, what was before it counts too
PARTS = ("run", "commit", "undo", *(f"idle_{cause}" for cause in CAUSES))
"""How a stage's time is told; `run` includes the publish. Their shares sum to 1."""


@dataclass(frozen=True)
class Bounds:
    """ms per window: as it was, and what no schedule goes below at the same depth and at full depth."""

    actual_ms: float
    same_depth_ms: float
    full_depth_ms: float


@dataclass(frozen=True)
class Why:
    """Of a stretch of decoding.

    Attributes:
        since: the flip that it begins with; "" = just the last windows.
        stages: per stage the share of the time in each of PARTS.
        bounds: None where a run is missing (events were dropped).
        path: of the critical path at the same depth (part, stage, share), the largest first.
        findings: what it means, the heaviest first; never empty.
    """

    t0_ns: int
    t1_ns: int
    windows: int
    since: str
    stages: tuple[tuple[float, ...], ...]
    bounds: Bounds | None
    path: tuple[tuple[str, int, float], ...]
    guesses: GuessCounts
    findings: tuple[Finding, ...]

    @property
    def seconds(self) -> float:
        return (self.t1_ns - self.t0_ns) / 1e9

    @property
    def stages_busy(self) -> float:
        """Stages at work on average."""
        return sum(sum(shares[:3]) for shares in self.stages)


def explain(view: View, until_ns: int, switches: dict[str, Any], pipeline_max: int) -> Why | None:
    """The windows verified by `until_ns`, since the last flip; None before there are some.

    Args:
        switches: in force.
        pipeline_max: windows in flight that there is memory for.
    """
    stretch = _stretch(view, until_ns)
    if stretch is None:
        return None
    before, t0, t1, n, since = stretch
    around = view.events_between(before, t1)
    times = stage_times(around, view.n_stages, t0, t1)
    stages = tuple(_shares(time) for time in times)
    within = around[around["start_ns"].astype(np.int64) >= t0]
    bounds, path = _bounds(within, view.n_stages, int(switches.get("pipeline_windows") or 0))
    guesses = count_guesses(within)
    verdicts = within[within["kind"] == Kind.verdict]
    told = findings(
        Situation(
            stages=tuple(dict(zip(PARTS, shares, strict=True)) for shares in stages),
            switches=switches,
            pipeline_max=pipeline_max,
            guesses=guesses,
            path=path,
            over_full=bounds.actual_ms / bounds.full_depth_ms if bounds else None,
            drafted=int(verdicts["rows"].astype(np.int64).sum()) - len(verdicts),
            accepted=int(verdicts["a"].sum()),
        )
    )
    return Why(t0, t1, n, since, stages, bounds, path, guesses, told)


def _stretch(view: View, until_ns: int) -> tuple[int, int, int, int, str] | None:
    """From when events count, begin and end of the stretch, its windows, and the flip it begins with."""
    rows = view.windows.rows
    end = int(np.searchsorted(rows["start_ns"], until_ns, side="right"))
    near = rows[max(0, end - 4 * MOST_WINDOWS) : end]
    ended = near["end_ns"]
    verified = near[(near["accepted"] >= 0) & (near["fate"] != Fate.PROMPT) & (ended <= until_ns)]
    if not len(verified):
        return None
    verified = verified[-MOST_WINDOWS:]
    since = ""
    flip = last_flip(view.marks, until_ns)
    if flip is not None:
        after = verified[verified["start_ns"] >= flip.at_ns]
        if FEWEST_WINDOWS <= len(after) < len(verified):
            verified, since = after, flip.text
    t0, t1 = int(verified["start_ns"][0]), int(verified["end_ns"].max())
    first = int(np.searchsorted(near["id"], verified["id"][0]))
    return int(near["start_ns"][max(0, first - 2)]), t0, t1, len(verified), since


def last_flip(marks: Sequence[Mark] | Any, until_ns: int) -> Mark | None:
    """The last switch that took effect by then; the cap on the pace is none."""
    return next(
        (
            mark
            for mark in reversed(marks)
            if mark.kind == "toggle" and mark.at_ns <= until_ns and not mark.text.startswith("rate=")
        ),
        None,
    )


def _shares(time: StageTime) -> tuple[float, ...]:
    work = (time.run_ns + time.publish_ns, time.commit_ns, time.undo_ns)
    return tuple(ns / time.span_ns for ns in (*work, *time.idle_ns.values()))


def _bounds(
    events: Events, n_stages: int, windows_in_flight: int
) -> tuple[Bounds | None, tuple[tuple[str, int, float], ...]]:
    """Over all texts of these events."""
    actual = same = full = n = 0
    spent: dict[tuple[str, int], int] = {}
    for text in texts(events):
        windows = passages(text)
        nodes: list[Measured] = measured(windows, n_stages)
        if not nodes:
            continue
        bound: Bound = lower_bound(nodes, guesses_in_flight(nodes, windows_in_flight))
        actual += actual_ns(windows, text, n_stages)
        same += bound.ns
        full += lower_bound(nodes).ns
        n += len(nodes)
        for span in bound.path:
            spent[span.part, span.stage] = spent.get((span.part, span.stage), 0) + span.dur_ns
    if not n or same <= 0 or full <= 0:
        return None, ()
    path = sorted(((part, stage, ns / same) for (part, stage), ns in spent.items()), key=lambda p: -p[2])
    return Bounds(actual / n / 1e6, same / n / 1e6, full / n / 1e6), tuple(path)
