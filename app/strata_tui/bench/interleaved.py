"""Arms in turn, A B A B: the runs of a bench, and whether their texts are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strata_tui.bench.arms import Arm
from strata_tui.bench.engines import Runner
from strata_tui.bench.one_run import Request, Run


@dataclass
class Results:
    """Runs by arm and round, as far as they came.

    Attributes:
        runs: by the arm's name, one a round.
        differences: between texts that have to be equal, one line each.
        groups: of texts that have to be equal, by what they depend on: the first one and whose it is.
        compared: texts that had another one to be equal to.
        cut_short: tokens of texts that ended with their context where another arm's had room; by context.
    """

    arms: Sequence[Arm]
    rounds: int
    runs: dict[str, list[Run]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    groups: dict[tuple[Any, ...], tuple[str, Run]] = field(default_factory=dict)
    compared: int = 0
    cut_short: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runs = {arm.name: [] for arm in self.arms}

    @property
    def identical(self) -> bool | None:
        """None: no text had another to be compared with."""
        return not self.differences if self.compared else None

    @property
    def interrupted(self) -> bool:
        return any(len(runs) < self.rounds for runs in self.runs.values())

    def of(self, arm: Arm) -> list[Run]:
        return self.runs[arm.name]

    def add(self, arm: Arm, request: Request, run: Run) -> None:
        self.runs[arm.name].append(run)
        who = f"{arm.name}, round {len(self.runs[arm.name])}"
        group = (request, text_group(arm, run))
        if group not in self.groups:
            self.groups[group] = who, run
            return
        self.compared += 1
        other, reference = self.groups[group]
        difference = first_difference(*_as_far_as_both_go(run, reference))
        if difference:
            self.differences.append(f"{who}: {difference} (of {other})")
        if len(run.tokens) > len(reference.tokens):  # the next one is held against the longest
            self.groups[group] = who, run
        for one, by in ((run, reference), (reference, run)):
            if one.is_cut_short_of(by):
                self.cut_short[one.context] = len(one.tokens)


def text_group(arm: Arm, run: Run) -> tuple[Any, ...]:
    """What a text depends on beside prompt and sampling: the type of K/V cells, the kernels of each layer."""
    return arm.placement.kv, run.backend


def _as_far_as_both_go(run: Run, reference: Run) -> tuple[Sequence[int], Sequence[int]]:
    """The tokens of both; of two contexts the larger one's text is cut where the smaller one was full."""
    if run.is_cut_short_of(reference):
        return run.tokens, reference.tokens[: len(run.tokens)]
    if reference.is_cut_short_of(run):
        return run.tokens[: len(reference.tokens)], reference.tokens
    return run.tokens, reference.tokens


def first_difference(got: Sequence[int], expected: Sequence[int]) -> str:
    """Where a text leaves another; "" if it doesn't."""
    for i, (a, b) in enumerate(zip(got, expected, strict=False)):
        if a != b:
            return f"token {i} is {a}, expected {b}"
    if len(got) != len(expected):
        return f"{len(got)} tokens, expected {len(expected)}"
    return ""


def interleave(
    arms: Sequence[Arm], requests: Sequence[Request], runner: Runner, results: Results
) -> Iterator[tuple[int, Arm, Run]]:
    """Every arm once a round, a request a round; adds each run to `results`, then yields it.

    Raises:
        BadInput, StrataError: see `run_once`.
    """
    replays: dict[tuple[Any, ...], tuple[int, ...]] = {}  # what an arm of the placement gave for the request
    for i, request in enumerate(requests):
        for arm in arms:
            key = (request, arm.placement)
            run = runner.run(arm, request, replays.get(key, ()) if arm.replays else ())
            replays.setdefault(key, run.tokens)
            results.add(arm, request, run)
            yield i, arm, run


def notices(results: Results) -> Mapping[str, list[str]]:
    """What the engine said during each arm's runs, each line once."""
    return {
        name: list(dict.fromkeys(line for run in runs for line in run.notices))
        for name, runs in results.runs.items()
    }
