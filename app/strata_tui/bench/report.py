"""What a bench says: a table, plain lines, the JSON object. Pure functions over its results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from strata_tui.bench.arms import Arm
from strata_tui.bench.baseline import Change
from strata_tui.bench.figures import DEPTHS, Figures, figures
from strata_tui.bench.interleaved import Results, notices
from strata_tui.bench.one_run import Request, Run
from strata_tui.bench.spread import distinguishable, in_words
from strata_tui.terminal_text import counted


@dataclass
class Bench:
    """A bench, whole or as far as it came.

    Attributes:
        about: model, model_sha256, arch, version.
        load: average over the last minute, before and after.
        changes: against a baseline, where there is one; `fail_above` is the loss that is too much.
    """

    about: Mapping[str, Any]
    machine: Mapping[str, Any]
    requests: Sequence[Request]
    fresh: bool
    results: Results
    bound: bool = False
    load: tuple[float | None, float | None] = (None, None)
    seconds: float = 0.0
    changes: Sequence[Change] = ()
    fail_above: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def too_slow(self) -> list[Change]:
        return [c for c in self.changes if self.fail_above is not None and c.share < -self.fail_above]

    @property
    def failed(self) -> bool:
        return self.results.identical is False or bool(self.too_slow)


def run_line(round_number: int, rounds: int, arm: Arm, run: Run) -> str:
    """A run as it ends."""
    r = run.rates
    return (
        f"round {round_number}/{rounds}  {arm.name}{_emulated(run.emulated)}: "
        f"{_show(r['ms_per_window'], '.3f')} ms per window, "
        f"{_show(r['tokens_per_window'], '.2f')} tokens per window, "
        f"{_show(r['tokens_per_s'], '.1f')} tok/s"
    )


HEAD = ("arm", "ms per window", "tokens per window", "tok/s", "prefill tok/s")


def table(bench: Bench) -> list[tuple[str, ...]]:
    """Head and one row an arm: medians with (least-most) over its runs."""
    first = bench.results.arms[0].name
    rows: list[tuple[str, ...]] = [(*HEAD, f"window time / {first}", f"tok/s / {first}")]
    for of_arm in figures(bench.results):
        rates = of_arm.rates
        rows.append(
            (
                of_arm.arm.name + _emulated(of_arm.emulated),
                rates["ms_per_window"].show(".3f"),
                rates["tokens_per_window"].show(".2f"),
                rates["tokens_per_s"].show(".1f"),
                rates["prefill_tokens_per_s"].show(",.0f"),
                of_arm.window_time.show(".3f"),
                of_arm.speed.show(".3f"),
            )
        )
    return rows


def head_lines(bench: Bench) -> list[str]:
    about, machine = bench.about, bench.machine
    request = bench.requests[0]
    done = min(len(runs) for runs in bench.results.runs.values())
    load = " before, ".join(_show(value, ".2f") for value in bench.load)
    emulated = any(of_arm.emulated for of_arm in figures(bench.results))
    way = "a process a run" if bench.fresh else "in one process"
    return [
        f"{about['model']}, sha256 {about['model_sha256'][:16]}, strata-tui {about['version']}",
        f"{machine['cpu']}, {machine['cores']} core{'s' * (machine['cores'] != 1)}, "
        f"kernels {machine['kernels']}, {machine['system']}; load {load} after"
        + ("; EMULATED devices: times are not this machine's" * emulated),
        f"{done} of {bench.results.rounds} rounds, arms in turn, {way}; "
        f"prompt {len(request.tokens):,} tokens, text {_lengths(bench.results)} tokens; "
        f"{_text_verdict(bench.results)}",
    ]


def detail_lines(bench: Bench) -> list[str]:
    """Classes of windows, guesses, and each arm beside the first in words."""
    of_arms = figures(bench.results)
    first = of_arms[0].arm.name + _emulated(of_arms[0].emulated)
    lines = []
    for of_arm in of_arms:
        name = of_arm.arm.name + _emulated(of_arm.emulated)
        if of_arm is not of_arms[0]:
            words = in_words(of_arm.speed, first)
            other = "; another text by definition (K/V type or kernels)" if of_arm.other_text else ""
            lines.append(f"{name}: {words}, tok/s {of_arm.speed.show('.3f')} of {first}'s by round{other}")
        if of_arm.guesses.get("built"):
            lines.append(f"{name}: {_classes(of_arm)}; {_kept(of_arm)}")
        if of_arm.over_bound["same_depth"].runs:
            same, full = (of_arm.over_bound[depth].show(".3f") for depth in DEPTHS)
            lines.append(f"{name}: actual / lower bound {same} at the same depth, {full} at full depth")
    lines += _overrun_lines(of_arms)
    lines += [f"{name}: {line}" for name, said in notices(bench.results).items() for line in said]
    lines += [f"DIFFERS: {line}" for line in bench.results.differences]
    lines += [change.line() for change in bench.changes]
    lines += [
        f"TOO SLOW: {c.name}, more than {bench.fail_above:.1%} below the baseline" for c in bench.too_slow
    ]
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]


def lines(bench: Bench, as_markdown: bool = False) -> list[str]:
    """The whole report."""
    if as_markdown:
        head, details = ([f"- {line}" for line in part(bench)] for part in (head_lines, detail_lines))
        return [*head, "", *markdown(table(bench)), "", *details]
    return [*head_lines(bench), "", *aligned(table(bench)), "", *detail_lines(bench)]


def settings(bench: Bench) -> dict[str, Any]:
    """What was asked for: all of it has to be the same in a baseline."""
    tokens = [request.tokens for request in bench.requests]
    return {
        "model_sha256": bench.about["model_sha256"],
        "machine": dict(bench.machine),
        "prompt": {"tokens": len(tokens[0]), "sha256": _sha256(tokens)},
        "max_tokens": bench.requests[0].max_tokens,
        "sampling": asdict(bench.requests[0].sampling),
        "fresh": bench.fresh,
        "bound": bench.bound,
        "arms": [{"name": arm.name, "asked": arm.asked} for arm in bench.results.arms],
    }


def json_object(bench: Bench) -> dict[str, Any]:
    results = bench.results
    of_arms = figures(results)
    return {
        **bench.about,
        **settings(bench),
        "emulated": any(of_arm.emulated for of_arm in of_arms),
        "identical": results.identical,
        "differences": results.differences,
        "rounds": results.rounds,
        "interrupted": results.interrupted,
        "load_average": {"before": bench.load[0], "after": bench.load[1]},
        "notices": [*bench.notes, *(f"{n}: {line}" for n, said in notices(results).items() for line in said)],
        "arms": [_arm_object(of_arm, results.arms[0].name) for of_arm in of_arms],
        "baseline": [{**asdict(c), "change": c.share} for c in bench.changes] or None,
        "seconds": round(bench.seconds, 3),
    }


def _arm_object(of_arm: Figures, first: str) -> dict[str, Any]:
    arm, last = of_arm.arm, of_arm.runs[-1] if of_arm.runs else None
    return {
        "name": arm.name,
        "flags": arm.flags,
        "asked": arm.asked,
        "switches": dict(last.in_force) if last else dict(arm.options.switches),
        "stages": [dict(stage) for stage in last.stages] if last else [],
        "emulated": of_arm.emulated,
        **{name: spread.json() for name, spread in of_arm.rates.items()},
        "classes": {
            name: {"windows": count, "ms": spread.json()} for name, (count, spread) in of_arm.classes.items()
        },
        "over_bound": {depth: spread.json() for depth, spread in of_arm.over_bound.items()},
        "windows": [run.stats["windows"] for run in of_arm.runs],
        "guesses": of_arm.guesses,
        "kept_of_decided": of_arm.kept_of_decided,
        "kept_of_windows": of_arm.kept_of_windows,
        "against_first": {
            "arm": first,
            "tokens_per_s": of_arm.speed.json(),
            "ms_per_window": of_arm.window_time.json(),
            "distinguishable": distinguishable(of_arm.speed),
            "in_words": "the first arm" if arm.name == first else in_words(of_arm.speed, first),
            "other_text": of_arm.other_text,
        },
        "overruns": {"programs": of_arm.programs, "overran": of_arm.overruns},
        "finish": [run.finish for run in of_arm.runs],
        "tokens_sha256": [_sha256([run.tokens]) for run in of_arm.runs],
    }


def _sha256(texts: Sequence[Sequence[int]]) -> str:
    """Of token ids in decimal, one a line; as in check."""
    return hashlib.sha256("".join(f"{t}\n" for text in texts for t in text).encode()).hexdigest()


def _show(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _emulated(is_so: bool) -> str:
    return " [emulated]" if is_so else ""


def _lengths(results: Results) -> str:
    lengths = sorted({len(run.tokens) for runs in results.runs.values() for run in runs})
    return "-" if not lengths else f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]}-{lengths[-1]}"


def _text_verdict(results: Results) -> str:
    if results.identical is None:
        return "no texts were compared"
    if results.identical:
        kinds = {group for _, group in results.groups}
        within = "" if len(kinds) == 1 else " within each K/V type and set of kernels"
        cut = "".join(
            f"; with --ctx {context} a text ends after {counted(n, 'token')}: compared as far as it goes"
            for context, n in sorted(results.cut_short.items())
        )
        return f"{counted(results.compared + len(results.groups), 'text')} identical{within}{cut}"
    return f"TEXTS DIFFER ({len(results.differences)})"


def _classes(of_arm: Figures) -> str:
    return "ms per window " + ", ".join(
        f"{name.replace('_', ' ')} {spread.show('.2f')} x {count}"
        for name, (count, spread) in of_arm.classes.items()
    )


def _overrun_lines(of_arms: Sequence[Figures]) -> list[str]:
    return [
        f"{of_arm.arm.name} [emulated]: {of_arm.overruns} of {of_arm.programs} programs took longer "
        "to compute than they should have lasted: these times are slower than what was to be emulated"
        for of_arm in of_arms
        if of_arm.emulated and of_arm.overruns
    ]


def _kept(of_arm: Figures) -> str:
    g = of_arm.guesses
    shares = (
        f"{_show(share, '.0%')} of {what}"
        for share, what in (
            (of_arm.kept_of_decided, "guesses decided"),
            (of_arm.kept_of_windows, "all windows"),
        )
    )
    return (
        f"guesses {g['built']}: {g['gated']} gated, {g['late']} late, {g['launched']} launched; "
        f"kept {g['kept']}: {', '.join(shares)}"
    )
