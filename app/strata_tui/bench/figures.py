"""The figures of an arm over its runs, and beside the first arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strata_tui.bench.arms import Arm
from strata_tui.bench.interleaved import Results, text_group
from strata_tui.bench.one_run import Run
from strata_tui.bench.spread import Spread, by_round
from strata_tui.events import WindowFate

CLASSES = (WindowFate.fresh, WindowFate.kept_after_fresh, WindowFate.kept_after_kept)
DEPTHS = ("same_depth", "full_depth")
RATES = (
    "tokens_per_s",
    "ms_per_window",
    "tokens_per_window",
    "prefill_tokens_per_s",
    "time_to_first_token_ms",
)


@dataclass(frozen=True)
class Figures:
    """What an arm's runs amount to.

    Attributes:
        rates: by the key of RATES.
        classes: by the class of windows: how many there were in all, and ms of one.
        kept_of_decided: guesses kept, of those kept or rolled back.
        kept_of_windows: guesses kept, of all verified windows.
        speed: tok/s by round over the first arm's; of the first arm itself all 1.
        window_time: ms per window by round over the first arm's.
        over_bound: actual time / lower bound, by the key of DEPTHS, where bounds were told.
        other_text: is the text another one than the first arm's by definition?
    """

    arm: Arm
    runs: Sequence[Run]
    rates: dict[str, Spread]
    classes: dict[str, tuple[int, Spread]]
    guesses: dict[str, int]
    kept_of_decided: float | None
    kept_of_windows: float | None
    speed: Spread
    window_time: Spread
    over_bound: dict[str, Spread]
    other_text: bool

    @property
    def emulated(self) -> bool:
        return any(run.emulated for run in self.runs)

    @property
    def programs(self) -> int:
        """Of emulated devices, held to their times."""
        return sum(run.programs for run in self.runs)

    @property
    def overruns(self) -> int:
        """Of those, the ones that took longer than they should have lasted."""
        return sum(run.overruns for run in self.runs)


def figures(results: Results) -> list[Figures]:
    first = results.of(results.arms[0])
    return [_of_arm(arm, results.of(arm), results.arms[0], first) for arm in results.arms]


def _of_arm(arm: Arm, runs: Sequence[Run], first_arm: Arm, first: Sequence[Run]) -> Figures:
    guesses: dict[str, int] = {}
    for run in runs:
        for name, count in run.stats["guesses"].items():
            guesses[name] = guesses.get(name, 0) + count
    windows = sum(run.stats["windows"] for run in runs)
    kept = guesses.get("kept", 0)
    decided = kept + guesses.get("rolled_back", 0)
    return Figures(
        arm=arm,
        runs=runs,
        rates={name: Spread.of(_values(runs, name)) for name in RATES},
        classes={
            fate.name: (
                sum(run.stats["windows_by_class"][fate] for run in runs),
                Spread.of(_values(runs, f"ms_{fate.name}")),
            )
            for fate in CLASSES
        },
        guesses=guesses,
        kept_of_decided=kept / decided if decided else None,
        kept_of_windows=kept / windows if windows else None,
        speed=by_round(_values(runs, "tokens_per_s"), _values(first, "tokens_per_s")),
        window_time=by_round(_values(runs, "ms_per_window"), _values(first, "ms_per_window")),
        over_bound={depth: Spread.of([run.over_bound(depth) for run in runs]) for depth in DEPTHS},
        other_text=bool(runs and first) and text_group(arm, runs[0]) != text_group(first_arm, first[0]),
    )


def _values(runs: Sequence[Run], key: str) -> list[Any]:
    return [run.rates[key] for run in runs]
