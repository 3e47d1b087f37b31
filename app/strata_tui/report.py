"""What a request amounted to: the numbers of `run --json`, its summary, and the lines of its log.

Pure functions over the engine's counters and events.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from strata_tui.events import DRAFT_LANE, Events, Kind, WindowFate
from strata_tui.marks import COMPUTED_HERE, EMULATED
from strata_tui.terminal_text import counted


class Explained(Protocol):
    """What `analysis.explained` knows of a text."""

    def stage_times(self) -> list[dict[str, Any]]: ...

    @property
    def text_ms(self) -> float | None: ...

    def bound(self) -> dict[str, float] | None: ...

    @property
    def stages_busy_mean(self) -> float | None: ...


def per_second(count: float, ns: float) -> float | None:
    return count / ns * 1e9 if count and ns > 0 else None


def rates(stats: dict[str, Any]) -> dict[str, Any]:
    """Rates of one request; each names its denominator in its key.

    tokens_per_s counts the tokens of verify windows over their time, verdict to verdict, without what a rate
    cap or a pause held back.
    """
    windows = stats["windows"]
    ms_per_window = stats["window_ns"] / windows / 1e6 if windows else None
    accepted_at = [
        accepted / had
        for accepted, had in zip(stats["accepted_per_position"], stats["drafted_per_position"], strict=True)
        if had
    ]
    return {
        "prefill_tokens_per_s": per_second(stats["prefill_rows"], stats["prefill_ns"]),
        "time_to_first_token_ms": stats["first_token_ns"] / 1e6 if stats["generated"] else None,
        "tokens_per_s": per_second(stats["generated"], stats["window_ns"]),
        "ms_per_window": ms_per_window,
        **{f"ms_{name}": ms for name, ms in ms_by_class(stats).items()},
        "tokens_per_window": stats["generated"] / windows if windows else None,
        "windows": windows,
        "drafted": stats["drafted"],
        "accepted": stats["accepted"],
        "accepted_per_position": accepted_at,
        "guesses": dict(stats["guesses"]),
        "windows_overlapped": stats["windows_overlapped"],
        "cached_tokens": stats["cached_tokens"],
        "prompt_tokens": stats["prompt_tokens"],
    }


def ms_by_class(stats: dict[str, Any]) -> dict[str, float | None]:
    """Mean ms per window, verdict to verdict: fresh, kept_after_fresh, kept_after_kept."""
    of_classes = zip(WindowFate, stats["windows_by_class"], stats["window_ns_by_class"], strict=False)
    return {fate.name: ns / n / 1e6 if n else None for fate, n, ns in of_classes}


def wasted_ms(events: Events) -> float:
    """Device time of the programs of windows that were rolled back."""
    lost = events["window"][_is_roll_back(events)]
    runs = events[(events["kind"] == Kind.run) & np.isin(events["window"], lost)]
    return float(runs["dur_ns"].sum()) / 1e6


def _is_roll_back(events: Events) -> npt.NDArray[np.bool_]:
    return np.asarray(events["kind"] == Kind.guess_rolled_back)


def hand_off_lines(events: Events, n_stages: int) -> list[str]:
    """One line a boundary: the hand-offs in force and the windows that went over each, chunks left out."""
    windows = events["window"][events["kind"] == Kind.window]
    launches = events[(events["kind"] == Kind.launch) & np.isin(events["window"], windows)]
    lines = []
    for stage in range(1, n_stages):
        here = launches[launches["stage"] == stage]
        ahead = int((here["a"] == 1).sum())
        serial = len(here) - ahead
        counts = [
            f"{name} ({n} window{'s' if n > 1 else ''})"
            for name, n in (("overlapped", ahead), ("serial", serial))
            if n
        ]
        lines.append(f"strata: hand-off stage {stage - 1} -> {stage}: {', '.join(counts) or 'none'}")
    return lines


def pipeline_line(stats: dict[str, Any]) -> str:
    """The `strata pipeline:` line; classes without a window have no ms."""
    g = stats["guesses"]
    guesses = (
        f"launched {g['launched']}, kept {g['kept']}, rolled back {g['rolled_back']}, gated {g['gated']}"
    )
    ms = ", ".join(
        f"{name.replace('_', ' ')} {'-' if value is None else f'{value:.2f}'}"
        for name, value in ms_by_class(stats).items()
    )
    return f"strata pipeline: windows {stats['windows']}, {guesses}, ms {ms}"


def decode_timing_line(events: Events, stats: dict[str, Any]) -> str:
    """STRATA_DECODE_TIMING: ms per window by class, tokens per window, and what else a window costs."""
    windows = stats["windows"]

    def each(ns: float) -> str:
        return f"{ns / windows / 1e6:.3f}" if windows else "-"

    def spent(*kinds: Kind) -> str:
        return each(events["dur_ns"][np.isin(events["kind"], kinds)].sum())

    classes = ", ".join(
        f"{name.replace('_', ' ')} {'-' if ms is None else f'{ms:.3f}'} (of {n})"
        for (name, ms), n in zip(ms_by_class(stats).items(), stats["windows_by_class"], strict=True)
    )
    tokens = f"{stats['generated'] / windows:.3f}" if windows else "-"
    return (
        f"strata timing: ms per window {each(stats['window_ns'])}: {classes}; tokens per window {tokens}; "
        f"draft {spent(Kind.draft_step)}, verdict {spent(Kind.verdict)}, "
        f"commit {spent(Kind.commit, Kind.undo)} ms per window"
    )


_SPENT = {
    "run": Kind.run,
    "wait": Kind.wait_ready,
    "staging": Kind.stage_inputs,
    "launch": Kind.launch,
    "sync": Kind.sync,
    "hand-off": Kind.publish,
    "commit": Kind.commit,
    "undo": Kind.undo,
}


def split_timing_lines(events: Events, n_stages: int) -> list[str]:
    """STRATA_SPLIT_TIMING: a line a stage, ms over the text.

    The hand-off lies inside the run, and so does what is lost: the runs of windows rolled back.
    """
    lines = []
    for stage in range(n_stages):
        here = events[events["stage"] == stage]
        spent = {name: here["dur_ns"][here["kind"] == kind].sum() / 1e6 for name, kind in _SPENT.items()}
        spent["lost"] = wasted_ms(events[(events["stage"] == stage) | _is_roll_back(events)])
        shown = ", ".join(f"{name} {ms:.2f}" for name, ms in spent.items())
        lines.append(f"strata timing: stage {stage}: {shown} ms")
    return lines


def kernel_lines(stats: dict[str, Any], emulated: bool = False) -> list[str]:
    """STRATA_VERIFY_PROFILE: a line a stage and number of rows, ms of each kind of kernel over the text.

    The clock is that of the thread which runs them, waits for the stage's other threads included. The rows
    are those of windows, prompt windows and draft passes; commits are programs of their own, a line a stage.
    """
    lines = []
    commits: dict[str, dict[str, float]] = {}
    for entry in stats["kernels"]:
        name = "draft layer" if entry["stage"] == DRAFT_LANE else f"stage {entry['stage']}"
        rows = {0: "chunks", 1: "1 row"}.get(entry["rows"], f"{entry['rows']} rows")
        kinds = dict(entry["ns"])
        if commit := kinds.pop("commit", 0):
            commits.setdefault(name, {})[rows] = commit / 1e6
        if not entry["programs"]:
            continue
        whole = sum(kinds.values())
        longest_first = sorted(kinds.items(), key=lambda kind: -kind[1])
        shares = ", ".join(f"{kind} {ns / 1e6:.2f} ({ns / whole:.0%})" for kind, ns in longest_first)
        programs = f"{entry['programs']} program" + "s" * (entry["programs"] != 1)
        lines.append(f"strata profile: {name}, {rows}, {programs}, {whole / 1e6:.2f} ms: {shares}")
    for name, by_rows in commits.items():
        parts = ", ".join(f"{rows} {ms:.2f}" for rows, ms in by_rows.items())
        lines.append(f"strata profile: {name}, commits, {sum(by_rows.values()):.2f} ms: {parts}")
    if emulated and lines:
        lines = [line + COMPUTED_HERE for line in lines]
        lines.insert(0, "strata profile: what is computed here, not the emulated rig's times")
    return lines


def request_lines(
    events: Events,
    n_stages: int,
    stats: dict[str, Any],
    reports: Collection[str] = (),
    emulated: bool = False,
) -> list[str]:
    """All lines of a request that has ended.

    Args:
        events: of this request.
        reports: names of `switches.REPORTS`.
        emulated: the devices' times are another rig's: each line with times says so.
    """
    timed = [pipeline_line(stats)]
    if "decode_timing" in reports:
        timed.append(decode_timing_line(events, stats))
    if "split_timing" in reports:
        timed += split_timing_lines(events, n_stages)
    lines = [*hand_off_lines(events, n_stages), *(line + EMULATED * emulated for line in timed)]
    if "verify_profile" in reports:
        lines += kernel_lines(stats, emulated)
    return lines


def pace_lines(kept: Sequence[dict[str, Any]]) -> list[str]:
    """One line if programs of emulated devices took longer to compute than they should have lasted.

    Args:
        kept: `Engine.pace_kept` of the request.
    """
    late = []
    for of in kept:
        if of["overruns"]:
            where = "draft layer" if of["stage"] == DRAFT_LANE else f"stage {of['stage']} {of['kind']}"
            share = of["overruns"] / of["programs"]
            late.append(
                f"{where}: {of['overruns']} of {of['programs']} programs ({share:.0%}), "
                f"by {of['worst_over_ns'] / 1e6:.2f} ms at most"
            )
    return [f"strata pace: longer than emulated: {'; '.join(late)}"] if late else []


def summary_lines(
    stats: dict[str, Any], finish: str, dropped_events: int, emulated: bool = False
) -> list[str]:
    """For a person: ms per window, tokens per window and tok/s always together."""
    r = rates(stats)

    def show(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    prefill = show(r["prefill_tokens_per_s"], ",.0f")
    cached = f", {r['cached_tokens']} of them cached" if r["cached_tokens"] else ""
    lines = ["EMULATED devices: tokens and verdicts are real, times are the rig's"] if emulated else []
    lines += [
        f"prompt: {counted(r['prompt_tokens'], 'token')}{cached}, read at {prefill} tok/s; "
        f"first token after {show(r['time_to_first_token_ms'], '.1f')} ms",
        f"text: {counted(stats['generated'], 'token')} ({finish}), {show(r['tokens_per_s'], '.1f')} tok/s = "
        f"{show(r['tokens_per_window'], '.2f')} tokens per window / "
        f"{show(r['ms_per_window'], '.2f')} ms per window, "
        f"{counted(r['windows'], 'window')} ({r['windows_overlapped']} overlapped)",
    ]
    if r["drafted"]:
        shares = " ".join(f"{share:.2f}" for share in r["accepted_per_position"])
        lines.append(
            f"drafts: {r['accepted']} of {r['drafted']} accepted ({r['accepted'] / r['drafted']:.0%}); "
            f"by position, of the windows that had one: {shares}"
        )
    g = r["guesses"]
    if g["launched"]:
        decided = g["kept"] + g["rolled_back"]
        kept = f"{g['kept']} of {decided} kept" + (f" ({g['kept'] / decided:.0%})" if decided else "")
        wrong = f"{g['draft_wrong']} drafts wrong, {g['bonus_wrong']} bonus wrong"
        lines.append(
            f"guesses: {kept}, {g['ended']} ended with the text; {g['gated']} gated, {g['late']} late; "
            f"misses: {wrong} (second choice right: {g['second_choice_right']})"
        )
    if dropped_events:
        lines.append(f"{dropped_events:,} events were dropped: times by stage are too low")
    return lines


def run_json(
    model: dict[str, Any],
    stages: Sequence[Any],
    switches: dict[str, Any],
    stats: dict[str, Any],
    events: Events,
    text: dict[str, Any],
    dropped_events: int,
    explained: Explained,
) -> dict[str, Any]:
    """The object of `run --json`: every key of the contract.

    Args:
        model: model, model_sha256, arch, emulated.
        stages: the engine's.
        switches: in force at the end.
        text: token_ids, text, finish.
        explained: where its time went.
    """
    placed = [
        {"device": s.device, "first_layer": s.first_layer, "last_layer": s.last_layer, **times}
        for s, times in zip(stages, explained.stage_times(), strict=True)
    ]
    return {
        **model,
        "devices": [s.device for s in stages],
        "stages": placed,
        "text_ms": explained.text_ms,
        "switches": switches,
        **text,
        **rates(stats),
        "wasted_ms": wasted_ms(events),
        "bound": explained.bound(),
        "stages_busy_mean": explained.stages_busy_mean,
        "dropped_events": dropped_events,
    }
