"""A paced profile made of a recording: what the recorded rig would do, on any machine.

Only what was recorded is told: a profile says in a comment what each number is the median of, and what had to
be taken for another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, mode
from typing import Any

import numpy as np

from strata_tui.analysis.costs import Costs, read_costs
from strata_tui.analysis.passages import Passage, complete, passages
from strata_tui.errors import BadInput
from strata_tui.events import Events, Kind
from strata_tui.options import DeviceChoice, Profile
from strata_tui.paced import MAX_PROGRAM_MS, HandOffTimes, Points, Rig, StageTimes
from strata_tui.record.recording import Recording

FEWEST = 8  # windows that times are told from
SLOPE_FROM = 256  # positions between a text's halves, so that longer contexts can be told from noise
SURE = 3.0  # standard errors
SWITCHES = ("overlap", "pipeline_windows", "theta", "draft_max", "chain_ahead", "spec_depth")


def profile_of(recording: Recording) -> tuple[Profile, dict[str, str]]:
    """The profile, and where its numbers come from, by key (see `profile_text`).

    Raises:
        BadInput: no text of the recording has all its events.
    """
    n_stages = len(recording.stages)
    text = _longest_text(recording)
    costs = read_costs(text, passages(text), n_stages)
    assert costs is not None
    windows = complete(passages(text), n_stages)
    stages: list[StageTimes] = []
    comments: dict[str, str] = {}
    for stage in range(n_stages):
        times = _stage(costs, windows, recording.events, stage)
        stages.append(times.times)
        comments |= {f"paced.stages[{stage}].{key}": said for key, said in times.comments.items()}
    name = re.sub(r"[^\w.-]+", "-", recording.file_name.removesuffix(".strata")).strip(".-") or "recorded"
    rig = Rig(
        name,
        tuple(stages),
        _hand_off(costs, [stage.hand_off_ms for stage in recording.stages[1:]]),
        verdict_ms=_ms(costs.verdict),
        draft_ms=_ms(costs.draft),
        commit_ms=_ms(costs.commit),
        undo_ms=_ms(costs.undo),
    )
    emulated = ", itself emulated" if recording.emulated else ""
    devices = Counter(stage.device for stage in recording.stages)
    where = ", ".join(f"{n}x {device}" if n > 1 else device for device, n in devices.items())
    profile = Profile(
        name=name,
        description=f"{n_stages} stages as recorded in {recording.file_name}{emulated}",
        sources=(f"{recording.file_name}: {recording.model} on {where}; {recording.machine}{emulated}",),
        stages=n_stages,
        devices=(DeviceChoice("paced", rig=rig),),
        rig=rig,
        switches=_switches(recording),
    )
    comments[""] = f"Made of a recording: medians over one text of {len(windows)} windows."
    if recording.emulated:
        comments[""] += "\nEMULATED: what was recorded was itself held to another rig's times."
    comments |= _taken_for_another(text)
    if any(stage.hand_off_ms for stage in recording.stages[1:]):
        comments["paced.hand_off_ms"] = "as the emulated rig had them"
    return profile, comments


def _switches(recording: Recording) -> dict[str, Any]:
    """As in force when the recording began; fractions as given, not as single precision holds them."""
    values = {key: recording.switches[key] for key in SWITCHES if key in recording.switches}
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}


def _taken_for_another(text: Events) -> dict[str, str]:
    """What was not timed by itself, by key."""
    said = ["polled as overlapped"]
    launches = text[(text["kind"] == Kind.launch) & (text["stage"] > 0)]
    if not launches["a"].any():
        said.insert(0, "no hand-off was overlapped: taken as serial less the host's part")
    elif launches["a"].all():
        said.insert(0, "no hand-off was serial: taken as overlapped and the host's part")
    comments = {"paced.hand_off_ms": "; ".join(said)}
    if not (text["kind"] == Kind.undo).any():
        comments["paced.undo_ms"] = "none was recorded: taken as a commit"
    return comments


def _longest_text(recording: Recording) -> Events:
    """Of the texts that have all their events; most windows."""
    events = recording.events[np.argsort(recording.events["start_ns"], kind="stable")]
    texts = np.split(events, np.flatnonzero(events["kind"] == Kind.request_begin))
    counts = [len(complete(passages(text), len(recording.stages))) for text in texts]
    longest = int(np.argmax(counts))
    if counts[longest] < FEWEST:
        raise BadInput(
            f"[profiles] {recording.file_name}: expected a text of {FEWEST} windows or more with all its "
            f"events, got {counts[longest]} at most"
        )
    return texts[longest]


@dataclass(frozen=True)
class _Stage:
    times: StageTimes
    comments: dict[str, str]


def _stage(costs: Costs, windows: Sequence[Passage], events: Events, stage: int) -> _Stage:
    slope, middle = _slope(windows, stage)
    counts = {rows: sum(window.rows == rows for window in windows) for rows in sorted(costs.by_rows[stage])}
    at_0 = {rows: _ms(max(0.0, costs.run(stage, rows) - slope * middle / 1000)) for rows in counts}
    known = {rows: ms for rows, ms in at_0.items() if rows}
    run = tuple(known.items()) or ((1, at_0[0]),)
    first, last = windows[0].position, windows[-1].position
    comments = {
        "run_ms": f"of {_listed(counts)} windows" + ", whose rows are not known" * (not known),
        "run_ms_per_1k": f"of positions {first} to {last}; run_ms is that at 0",
    }
    chunks, chunk_counts = _chunks(events, stage)
    comments["chunk_ms"] = f"of {_listed(chunk_counts)} chunks"
    return _Stage(StageTimes(run, round(slope, 6), chunks), comments)


def _listed(counts: dict[int, int]) -> str:
    """By their rows."""
    return ", ".join(map(str, counts.values()))


def _slope(windows: Sequence[Passage], stage: int) -> tuple[float, float]:
    """ms more for each 1,000 positions, 0 where none can be told; and the middle position."""
    usual = mode(window.rows for window in windows)
    common = [window for window in windows if window.rows == usual]
    half = len(common) // 2
    if half < FEWEST:
        return 0.0, 0.0
    parts = common[:half], common[-half:]
    at = [float(np.mean([w.position for w in part])) for part in parts]
    ms = [np.array([w.run_ns[stage] for w in part]) / 1e6 for part in parts]
    if at[1] - at[0] < SLOPE_FROM:
        return 0.0, 0.0
    # Of a median, for the spread that lies between the quartiles.
    error = [1.25 * float(np.subtract(*np.percentile(part, [75, 25]))) / 1.35 / half**0.5 for part in ms]
    more = float(np.median(ms[1]) - np.median(ms[0]))
    if more <= SURE * float(np.hypot(*error)):
        return 0.0, 0.0
    return more / (at[1] - at[0]) * 1000, float(np.mean(at))


def _chunks(events: Events, stage: int) -> tuple[Points, dict[int, int]]:
    """Of all texts."""
    mine = events[(events["kind"] == Kind.prefill_chunk) & (events["stage"] == stage)]
    rows = sorted(set(mine["rows"].tolist()))
    of_rows = {n: mine["dur_ns"][mine["rows"] == n] for n in rows if 0 < n < 100_000}
    points = tuple((n, _ms(float(np.median(ns)) / 1e6)) for n, ns in of_rows.items())
    return points, {n: len(ns) for n, ns in of_rows.items()}


def _hand_off(costs: Costs, emulated: Sequence[HandOffTimes | None]) -> HandOffTimes:
    """Those of the rig that was emulated, where the recording names them: a text tells one kind of them."""
    if costs.n_stages == 1:
        return HandOffTimes(launch=_ms(costs.launch))
    known = next((hand_off for hand_off in emulated if hand_off), None)
    if known:
        return replace(known, launch=_ms(costs.launch))
    serial, overlapped = median(costs.serial_hand_off), median(costs.overlapped_hand_off)
    return HandOffTimes(_ms(costs.launch), _ms(serial), _ms(overlapped), polled=_ms(overlapped))


def _ms(ms: float) -> float:
    """To the nanosecond, within what a profile takes."""
    return min(MAX_PROGRAM_MS, max(0.0, round(ms, 6)))
