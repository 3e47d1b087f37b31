"""Why a text took as long as it did: where each stage's time went, and what its stages would have allowed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from strata_tui.analysis.bound import Bound, Measured, actual_ns, guesses_in_flight, lower_bound, measured
from strata_tui.analysis.idle import StageTime, stage_times, text_span
from strata_tui.analysis.passages import Passage, passages
from strata_tui.events import Events, Kind


@dataclass(frozen=True)
class Explained:
    """One text.

    Args:
        events: of one request.
        windows_in_flight: of the same-depth bound; 0 = serial.
    """

    events: Events
    n_stages: int
    windows_in_flight: int

    @cached_property
    def windows(self) -> list[Passage]:
        return passages(self.events)

    @cached_property
    def stages(self) -> list[StageTime]:
        """From the first verify window to the last verdict; empty where nothing was decoded."""
        return stage_times(self.events, self.n_stages, *self._span) if self._span else []

    @cached_property
    def _span(self) -> tuple[int, int] | None:
        return text_span(self.events)

    @property
    def text_ms(self) -> float | None:
        """How long that is; None where nothing was decoded."""
        return (self._span[1] - self._span[0]) / 1e6 if self._span else None

    @cached_property
    def _measured(self) -> list[Measured]:
        return measured(self.windows, self.n_stages)

    @cached_property
    def same_depth(self) -> Bound:
        return lower_bound(self._measured, guesses_in_flight(self._measured, self.windows_in_flight))

    @cached_property
    def full_depth(self) -> Bound:
        return lower_bound(self._measured)

    @property
    def stages_busy_mean(self) -> float | None:
        """Stages at work on average."""
        return sum(time.busy_ns / time.span_ns for time in self.stages) if self.stages else None

    def stage_times(self) -> list[dict[str, Any]]:
        """Of each stage, all over `text_ms`: run_ms at work, wait_ms in programs that wait for their input,
        idle as shares by cause. run_ms / text_ms and the shares sum to 1. None where nothing was decoded."""
        if not self._span:
            return [dict.fromkeys(("run_ms", "wait_ms", "idle")) for _ in range(self.n_stages)]
        return [
            {
                "run_ms": time.busy_ns / 1e6,
                "wait_ms": self._wait_ns(stage, *self._span) / 1e6,
                "idle": time.idle_shares(),
            }
            for stage, time in enumerate(self.stages)
        ]

    def _wait_ns(self, stage: int, t0: int, t1: int) -> int:
        waits = self.events[(self.events["kind"] == Kind.wait_ready) & (self.events["stage"] == stage)]
        begin = waits["start_ns"].astype(np.int64)
        within = np.clip(begin + waits["dur_ns"].astype(np.int64), t0, t1) - np.clip(begin, t0, t1)
        return int(within.sum())

    def bound(self) -> dict[str, float] | None:
        """ms: actual_ms, same_depth_ms, full_depth_ms. None: no text, or events of it were dropped."""
        if not self._measured:
            return None
        return {
            "actual_ms": actual_ns(self.windows, self.events, self.n_stages) / 1e6,
            "same_depth_ms": self.same_depth.ns / 1e6,
            "full_depth_ms": self.full_depth.ns / 1e6,
        }

    def lines(self) -> list[str]:
        """For a person, two at most."""
        lines = []
        if self.stages:
            lines.append("stages at work: " + "; ".join(map(_stage_text, range(self.n_stages), self.stages)))
        ms = self.bound()
        if ms and self.n_stages > 1:
            same, full = ms["actual_ms"] / ms["same_depth_ms"], ms["actual_ms"] / ms["full_depth_ms"]
            lines.append(
                f"bound: {ms['actual_ms']:,.1f} ms, {same:.2f} x what these stages and verdicts allow at "
                f"this depth ({ms['same_depth_ms']:,.1f} ms), {full:.2f} x at full depth "
                f"({ms['full_depth_ms']:,.1f} ms)"
            )
        return lines


def _stage_text(stage: int, time: StageTime) -> str:
    """Of the idle time the causes that weigh a percent or more, the heaviest first."""
    idle = sorted(time.idle_shares().items(), key=lambda item: -item[1])
    causes = ", ".join(f"{cause.replace('_', '-')} {share:.0%}" for cause, share in idle if share >= 0.01)
    return f"{stage} {time.busy_ns / time.span_ns:.0%}" + (f" (idle: {causes})" if causes else "")
