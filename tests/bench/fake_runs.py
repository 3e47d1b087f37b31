"""Runs with times as asked, and a runner that hands them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from strata_tui.bench.arms import Arm
from strata_tui.bench.one_run import Request, Run
from strata_tui.options import Placement, RunOptions

TEXT = tuple(range(100, 120))
REQUEST = Request(tokens=(1, 2, 3), max_tokens=20)


def arm(name: str, kv: str = "f16", **switches: Any) -> Arm:
    return Arm(name, "", RunOptions(placement=Placement(kv=kv), switches=switches))


def run(ms: float = 10.0, tokens: Sequence[int] = TEXT, kept: int = 0, **fields: Any) -> Run:
    """10 windows of `ms` each; `kept` of 4 guesses came true, those windows took half the time."""
    fresh = 10 - kept
    guesses = dict.fromkeys(
        ("gated", "late", "ended", "bonus_wrong", "draft_wrong", "forced", "second_choice_right"), 0
    )
    stats = {
        "windows": 10,
        "generated": len(tokens),
        "window_ns": int((fresh + kept / 2) * ms * 1e6),
        "windows_by_class": [fresh, kept, 0],
        "window_ns_by_class": [int(fresh * ms * 1e6), int(kept * ms / 2 * 1e6), 0],
        "guesses": guesses | {"built": 4, "launched": 4, "kept": kept, "rolled_back": 4 - kept},
        "accepted_per_position": [5],
        "drafted_per_position": [10],
        "drafted": 10,
        "accepted": 5,
        "prefill_rows": 3,
        "prefill_ns": 3_000_000,
        "first_token_ns": 4_000_000,
        "windows_overlapped": 0,
        "cached_tokens": 0,
        "prompt_tokens": 3,
    }
    return Run(tokens=tuple(tokens), stats=stats, **{"finish": "length", "context": 256, **fields})


class FakeRunner:
    """`give` makes the run of an arm in a round from 0 on; `log` has what was asked for."""

    def __init__(self, give: Callable[[Arm, int], Run]) -> None:
        self.give = give
        self.log: list[tuple[str, tuple[int, ...]]] = []

    def run(self, arm: Arm, request: Request, replay: Sequence[int] = ()) -> Run:
        n = sum(name == arm.name for name, _ in self.log)
        self.log.append((arm.name, tuple(replay)))
        return self.give(arm, n)

    def close(self) -> None:
        pass
