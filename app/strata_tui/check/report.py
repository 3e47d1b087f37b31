"""What a check says: a line an arm, the verdict, the JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from strata_tui.check.arms import Arm, Text
from strata_tui.check.compare import Outcome
from strata_tui.check.coverage import counts, uncovered
from strata_tui.check.plan import Mode, covered_combinations
from strata_tui.check.run import Result, tokens_sha256
from strata_tui.terminal_text import counted

FATES = ("launched", "kept", "rolled_back")


@dataclass(frozen=True)
class Summary:
    """A check, whole or as far as it came.

    Attributes:
        about: the model, the numerics and where plain decoding ran.
        arms: every arm that there is.
        planned: those to be run; fewer results than these: it was interrupted.
        differences: of the serial arm from itself, then of arms.
    """

    about: Mapping[str, Any]
    mode: Mode
    seed: int
    arms: Sequence[Arm]
    planned: Sequence[Arm]
    references: Mapping[Text, Outcome]
    serial_differences: Sequence[str]
    results: Sequence[Result]
    seconds: float

    @property
    def identical(self) -> bool | None:
        """None: nothing was compared."""
        if not self.results and not self.serial_differences:
            return None
        return not self.serial_differences and all(result.identical for result in self.results)

    @property
    def interrupted(self) -> bool:
        return len(self.results) < len(self.planned)

    @cached_property
    def combinations(self) -> dict[str, tuple[int, int]]:
        """By kind: how many the arms that were run have, of how many there are."""
        return covered_combinations([result.arm for result in self.results], self.arms)

    @cached_property
    def uncovered(self) -> list[str]:
        lines = list(uncovered(self.results))
        if self.interrupted:
            lines.insert(0, f"interrupted after {len(self.results)} of {len(self.planned)} arms")
        return lines

    @property
    def differences(self) -> list[str]:
        """One line each: the arm with its prompt, and what differs."""
        return [
            *self.serial_differences,
            *(f"{r.arm.name}: {difference}" for r in self.results for difference in r.differences),
        ]


def arm_line(number: int, count: int, result: Result) -> str:
    verdict = "identical" if result.identical else "DIFFERS: " + "; ".join(result.differences)
    happened = f"{result.stats['windows']:3} windows"
    if result.arm.guesses:
        happened += f", {result.fate('launched')} launched, {result.fate('kept')} kept"
    return f"{number:{len(str(count))}}/{count}  {result.arm.name}: {happened}: {verdict}"


def verdict_lines(summary: Summary) -> list[str]:
    results, about = summary.results, summary.about
    lines = [
        f"{about['model']}, numerics {about['numerics']}: {len(results)} of {len(summary.arms)} arms, "
        f"{summary.mode.n_tokens} tokens each, against plain decoding on {about['device']}, "
        f"seed {summary.seed}, {summary.seconds:.0f} s"
    ]
    if about["numerics"] == "portable":
        lines.append(
            "a backend of its own: kernels without fused multiply-add; its texts may differ from others'"
        )
    pairs, named, triples = (f"{n} of {total}" for n, total in summary.combinations.values())
    lines.append(
        f"combinations met: {pairs} pairs, {named} triples of stages, windows in flight and miss or depth, "
        f"{triples} of all triples"
    )
    lines.append("met: " + ", ".join(f"{count:,} {name}" for name, count in counts(results).items()))
    late, ended = (sum(r.fate(fate) for r in results) for fate in ("late", "ended"))
    windows = sum(r.stats["windows"] for r in results)
    lines.append(f"also: {windows:,} windows, {late:,} guesses late, {ended:,} in flight when the text ended")
    lines += [f"DIFFERS: {line}" for line in summary.differences]
    lines += [f"NOT COVERED: {line}" for line in summary.uncovered]
    if summary.identical is None:
        return [*lines, "nothing was compared"]
    differing = sum(not r.identical for r in results)
    if summary.serial_differences:
        lines.append("the serial arm differs from itself: no arm can be compared with it")
    elif differing:
        lines.append(f"{differing} of {len(results)} arms differ from plain decoding")
    else:
        texts = f"{counted(len(results), 'text')} and states are those of plain decoding"
        lines.append(texts + (", but the run does not cover what it claims" if summary.uncovered else ""))
    return lines


def json_object(summary: Summary) -> dict[str, Any]:
    return {
        **summary.about,
        "mode": summary.mode.name,
        "seed": summary.seed,
        "tokens_per_arm": summary.mode.n_tokens,
        "identical": summary.identical,
        "covered": not summary.uncovered,
        "reference_sha256": tokens_sha256(*(outcome.tokens for outcome in summary.references.values())),
        "references": [
            {
                "prompt": prompt,
                "sampling": sampling,
                "ending": ending,
                "finish": outcome.finish,
                "tokens": len(outcome.tokens),
                "tokens_sha256": tokens_sha256(outcome.tokens),
            }
            for (prompt, sampling, ending), outcome in summary.references.items()
        ],
        "arms": [_arm_object(result) for result in summary.results],
        "coverage": {
            "arms_possible": len(summary.arms),
            "arms_planned": len(summary.planned),
            "combinations": {
                name: {"covered": n, "of": total} for name, (n, total) in summary.combinations.items()
            },
            "met": counts(summary.results),
            "missing": summary.uncovered,
        },
        "differences": summary.differences,
        "interrupted": summary.interrupted,
        "seconds": round(summary.seconds, 3),
    }


def _arm_object(result: Result) -> dict[str, Any]:
    arm = result.arm
    return {
        "name": arm.name,
        "stages": arm.stages,
        "switches": arm.switches,
        "sampling": arm.sampling,
        "prompt": arm.prompt,
        "ending": arm.ending,
        "finish": result.outcome.finish or "error",
        "tokens": len(result.outcome.tokens),
        "tokens_sha256": tokens_sha256(result.outcome.tokens),
        "windows": result.stats["windows"],
        **{name: result.fate(name) for name in FATES},
        "guesses": dict(result.guesses),
        "identical": result.identical,
        "differences": list(result.differences),
        "seconds": round(result.seconds, 4),
    }
