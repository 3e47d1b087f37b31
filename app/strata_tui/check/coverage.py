"""Did the arms do what they are for? A proof that met no rolled-back guess proves nothing about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from strata_tui.check.arms import Arm
from strata_tui.check.run import Result


@dataclass(frozen=True)
class Effect:
    """Something that must have happened, if any arm could make it happen."""

    name: str
    expected_of: Callable[[Arm], bool]
    count: Callable[[Result], int]


def _kept_from_depth(depth: int) -> Callable[[Result], int]:
    """Guesses kept that were launched with so many windows ahead of them, or more."""
    return lambda result: sum(result.stats["kept_at_depth"][depth:])


def _kept_with(n_stages: int) -> Effect:
    return Effect(
        f"guesses kept on {n_stages} stages",
        lambda arm: arm.may_keep and arm.stages == n_stages,
        lambda result: result.fate("kept"),
    )


EFFECTS = (
    Effect("windows overlapped", lambda arm: arm.overlap, lambda r: r.stats["windows_overlapped"]),
    Effect("drafts accepted", lambda arm: arm.draft != "none", lambda r: r.stats["accepted"]),
    Effect(
        "drafts rejected",
        lambda arm: arm.draft != "none",
        lambda r: r.stats["drafted"] - r.stats["accepted"],
    ),
    Effect(
        "windows cut short by an end token",
        lambda arm: arm.ending == "token" and arm.drafts_go_on,
        lambda r: int(r.cut_by_end),
    ),
    Effect("guesses kept", lambda arm: arm.may_keep, lambda r: r.fate("kept")),
    *(_kept_with(n) for n in (2, 3, 4)),
    Effect("guesses rolled back", lambda arm: arm.launches, lambda r: r.fate("rolled_back")),
    Effect("guesses forced to miss", lambda arm: arm.force_miss > 0, lambda r: r.fate("forced")),
    Effect("guesses gated", lambda arm: arm.guesses and arm.theta > 1, lambda r: r.fate("gated")),
    Effect("commits undone", lambda arm: arm.launches, lambda r: r.stats["undone"]),
    Effect(
        "windows kept after kept ones",
        lambda arm: arm.may_keep,
        lambda r: r.stats["windows_by_class"][2],
    ),
    Effect(
        "guesses kept behind a guess",
        lambda arm: arm.may_keep and arm.pipeline_windows > 2 and arm.spec_depth > 1,
        _kept_from_depth(2),
    ),
    Effect(
        "guesses kept on a part of the front stages",
        lambda arm: arm.may_keep and arm.reaches_part,
        lambda r: sum(reached < r.arm.stages - 1 for reached in r.front_stages["kept"]),
    ),
    Effect(
        "guesses kept with all front stages done",
        lambda arm: arm.may_keep and not arm.reaches_part,
        lambda r: sum(reached == r.arm.stages - 1 for reached in r.front_stages["kept"]),
    ),
    Effect(
        "guesses rolled back on several stages",
        lambda arm: arm.launches and arm.stages > 2 and arm.spec_depth > 1,
        lambda r: sum(reached > 1 for reached in r.front_stages["rolled_back"]),
    ),
)


def counts(results: Sequence[Result]) -> dict[str, int]:
    """How often each effect was met, of those that an arm could have."""
    found = {}
    for effect in EFFECTS:
        able = [result for result in results if effect.expected_of(result.arm)]
        if able:
            found[effect.name] = sum(effect.count(result) for result in able)
    return found


def broken_promise(result: Result) -> str:
    """What one arm did that it can't have been asked for; "" if nothing."""
    arm = result.arm
    for name, asked in arm.switches.items():
        in_force = result.in_force[name]
        same = abs(in_force - asked) < 1e-6 if isinstance(asked, float) else in_force == asked
        if not same:
            return f"{name} {asked} was asked for, {in_force} was in force"
    for may, fate, why in (
        (arm.guesses, "built", "there can be none"),
        (arm.launches, "launched", "none should pass the gate"),
        (arm.may_keep, "kept", "all were forced to miss"),
    ):
        if not may and result.fate(fate):
            return f"{result.fate(fate)} guesses {fate}, although {why}"
    for whole, parts in (
        ("built", ("gated", "late", "launched")),
        ("launched", ("kept", "rolled_back", "ended")),
    ):
        shares = [result.fate(part) for part in parts]
        if result.fate(whole) != sum(shares):
            given = " + ".join(f"{n} {part}" for n, part in zip(shares, parts, strict=True))
            return f"{result.fate(whole)} guesses {whole}, but {given}"
    return ""


def uncovered(results: Sequence[Result]) -> Iterable[str]:
    """What keeps the run from proving what it claims, one line each."""
    for name, count in counts(results).items():
        if count == 0:
            yield f"no {name}"
    broken: dict[str, list[Arm]] = {}
    for result in results:
        promise = broken_promise(result) if not result.outcome.error else ""
        if promise:
            broken.setdefault(promise, []).append(result.arm)
    for promise, arms in broken.items():
        others = f" and {len(arms) - 1} more" if len(arms) > 1 else ""
        yield f"{promise}: {arms[0].name}{others}"
