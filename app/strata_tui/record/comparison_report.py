"""A comparison in words and as JSON: every figure with its unit and what it is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strata_tui.analysis.fate import CLASSES, Fate
from strata_tui.record.compare import Comparison, Side, stage_ms
from strata_tui.terminal_text import span
from strata_tui.tokenizer import printable

Figure = float | None
_CLASS_NAMES = {
    Fate.FRESH: "fresh",
    Fate.KEPT_AFTER_FRESH: "kept_after_fresh",
    Fate.KEPT_AFTER_KEPT: "kept_after_kept",
}


def figures(side: Side) -> dict[str, Any]:
    """Of one run; ms are verdict to verdict, less what was held back; stages over the span, per window."""
    windows, tokens, ms = side.n_windows, side.n_tokens, side.busy_ns / 1e6
    fates, busy = side.of("fate"), side.of("busy_ns")
    by_class = {_CLASS_NAMES[fate]: (fates == fate) for fate in CLASSES}
    return {
        "file": side.recording.file_name,
        "model": side.recording.model,
        "model_sha256": side.recording.model_sha256 or None,
        "emulated": side.recording.emulated,
        "devices": [stage.device for stage in side.recording.stages],
        "windows": windows,
        "tokens": tokens,
        "ms": ms,
        "ms_per_window": ms / windows if windows else None,
        "tokens_per_window": tokens / windows if windows else None,
        "tokens_per_s": tokens / ms * 1e3 if ms else None,
        "windows_by_class": {name: int(mine.sum()) for name, mine in by_class.items()},
        **{
            f"ms_{name}": float(busy[mine].sum()) / int(mine.sum()) / 1e6 if mine.any() else None
            for name, mine in by_class.items()
        },
        "stages": [
            {
                "first_layer": stage.first_layer,
                "last_layer": stage.last_layer,
                "ms_per_window": {name: spent / windows for name, spent in stage_ms(side, i).items()}
                if windows
                else {},
            }
            for i, stage in enumerate(side.recording.stages)
        ],
        "switches_flipped": side.toggles,
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The object of `compare --json`."""
    total, by_windows, by_ms = comparison.why()
    wrong = comparison.difference
    return {
        "identical": wrong is None if comparison.known else None,
        "first_difference": None
        if wrong is None
        else {"text": wrong.text, "index": wrong.index, "a": wrong.a, "b": wrong.b},
        "texts": comparison.texts,
        "tokens": comparison.tokens,
        "a": figures(comparison.a),
        "b": figures(comparison.b),
        "switches": {name: {"a": a, "b": b} for name, (a, b) in comparison.switches().items()},
        "difference_ms": {"total": total, "by_windows": by_windows, "by_ms_per_window": by_ms},
        "where": [
            {"from_token": begin, "to_token": end, "a_ms": a, "b_ms": b}
            for begin, end, a, b in comparison.blocks()
        ],
        "notes": comparison.notes,
    }


def comparison_lines(comparison: Comparison) -> list[str]:
    """For a person."""
    a, b = figures(comparison.a), figures(comparison.b)
    lines = [_about("A", a), _about("B", b), _texts(comparison)]
    flips = comparison.switches()
    told = ", ".join(f"{name} {_value(x)} and {_value(y)}" for name, (x, y) in flips.items())
    lines.append(f"switches, A and B: {told or 'the same in force at the start'}")
    for name, side in (("A", a), ("B", b)):
        if side["switches_flipped"]:
            lines.append(f"{name}: switches were flipped {side['switches_flipped']} times while it ran")
    lines += ["", f"{'':32}{'A':>10}{'B':>10}{'B / A':>9}"]
    windows = f"of {a['windows']:,} and {b['windows']:,} windows"
    for label, key, of in (
        ("ms per window", "ms_per_window", windows),
        ("tokens per window", "tokens_per_window", windows),
        ("tokens per s", "tokens_per_s", f"of {a['tokens']:,} and {b['tokens']:,} tokens"),
    ):
        lines.append(_row(label, a[key], b[key], of))
    for name in _CLASS_NAMES.values():
        n, m = a["windows_by_class"][name], b["windows_by_class"][name]
        if n or m:
            label = f"  ms, {name.replace('_', ' ')}"
            lines.append(_row(label, a[f"ms_{name}"], b[f"ms_{name}"], f"of {n:,} and {m:,} windows"))
    lines += _stage_lines(a, b)
    total, by_windows, by_ms = comparison.why()
    lines += [
        "",
        f"B took {total:+.1f} ms: {by_windows:+.1f} by the number of windows, {by_ms:+.1f} by ms per window",
        f"{'tokens':32}{'A, ms':>10}{'B, ms':>10}{'B - A':>9}",
    ]
    lines += [
        f"{f'  {begin} to {end - 1}':32}{x:10.1f}{y:10.1f}{y - x:+9.1f}"
        for begin, end, x, y in comparison.blocks()
    ]
    return lines + [f"note: {note}" for note in comparison.notes]


def _about(name: str, side: dict[str, Any]) -> str:
    emulated = ", EMULATED times" if side["emulated"] else ""
    return f"{name}  {side['file']}: {side['model']}, {' | '.join(side['devices'])}{emulated}"


def _texts(comparison: Comparison) -> str:
    wrong = comparison.difference
    n = f"{comparison.texts} text{'s' * (comparison.texts != 1)}, {comparison.tokens:,} tokens"
    if wrong is None:
        return f"{n}: {'identical' if comparison.known else 'not known to be the same'}"
    pieces = [
        printable(repr(side.recording.piece(token)), newlines=False)
        for side, token in ((comparison.a, wrong.a), (comparison.b, wrong.b))
    ]
    return (
        f"THE TEXTS DIFFER: text {wrong.text}, token {wrong.index}: A {wrong.a} {pieces[0]}, "
        f"B {wrong.b} {pieces[1]}; the figures are of the {comparison.tokens:,} tokens before"
    )


def _stage_lines(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    lines = []
    for i in range(max(len(a["stages"]), len(b["stages"]))):
        sides = [side["stages"][i] if i < len(side["stages"]) else None for side in (a, b)]
        layers = " and ".join(span(s["first_layer"], s["last_layer"]) if s else "-" for s in sides)
        lines.append(f"stage {i}, ms per window over the span; layers {layers}")
        x, y = (side["ms_per_window"] if side else {} for side in sides)
        for name in {**x, **y}:
            if max(x.get(name, 0.0), y.get(name, 0.0)) >= 0.005:
                lines.append(_row(f"  {_spent(name)}", x.get(name), y.get(name), ""))
    return lines


def _spent(name: str) -> str:
    return f"idle: {name[5:].replace('_', '-')}" if name.startswith("idle_") else name


def _row(label: str, a: Figure, b: Figure, of: str) -> str:
    show: Callable[[Figure], str] = lambda value: "-" if value is None else f"{value:.2f}"  # noqa: E731
    ratio = f"{b / a:.3f}" if a and b is not None else "-"
    return f"{label:32}{show(a):>10}{show(b):>10}{ratio:>9}  {of}".rstrip()


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return "not known" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
