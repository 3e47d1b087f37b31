"""What every schedule keeps to, whatever the clock does: simulated or recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from reference.recorded import Recording
from strata_tui.analysis.schedule import Window
from strata_tui.events import Kind

TOLERANCE_MS = 1e-9  # of sums of floats


def broken_rules(windows: Sequence[Window], guesses: int, overlap: bool = False) -> list[str]:
    """A line for each place at which the windows of one text break a rule; `guesses` in flight at most.

    With `overlap` a recorded reader begins when its input is published, a moment before its writer's end.
    """
    return [*_on_stages(windows, overlap), *_between_windows(windows, guesses)]


def _on_stages(windows: Sequence[Window], overlap: bool) -> Iterator[str]:
    n_stages = max(len(window.start_ms) for window in windows)
    for stage in range(n_stages):
        on_stage = [window for window in windows if len(window.start_ms) > stage]
        for before, window in pairwise(sorted(on_stage, key=lambda w: (w.start_ms[stage], w.end_ms[stage]))):
            if not _after(window.start_ms[stage], before.end_ms[stage]):
                yield f"stage {stage} ran windows {before.id} and {window.id} at once"
    for window in windows:
        if window.verified != (len(window.start_ms) == n_stages):
            yield f"window {window.id}, {window.fate}, ran on {len(window.start_ms)} of {n_stages} stages"
        for stage, (start, end) in enumerate(zip(window.start_ms[:-1], window.end_ms[:-1], strict=True)):
            if window.verified and not _after(window.start_ms[stage + 1], start if overlap else end):
                yield f"window {window.id} began on stage {stage + 1} before its input from stage {stage}"


def _between_windows(windows: Sequence[Window], guesses: int) -> Iterator[str]:
    launched = [window for window in windows if window.start_ms]
    for ahead, window in pairwise(launched):
        if window.fate == "fresh":
            continue
        last = len(window.start_ms) - (1 if window.verified else 0)
        for stage in range(last):
            if len(ahead.end_ms) <= stage or not _after(window.start_ms[stage], ahead.end_ms[stage]):
                yield f"guess {window.id} began on stage {stage} before the end of window {ahead.id} there"
        if not 1 <= window.depth <= guesses:
            yield f"guess {window.id} was launched {window.depth} windows behind, of {guesses} at most"
    for before, window in pairwise([window for window in windows if window.verified]):
        waits = 0 if window.fate == "fresh" else -1
        if not _after(window.start_ms[waits], before.verdict_ms):
            yield f"window {window.id}, {window.fate}, ran on stage {waits} before the verdict of {before.id}"
        if window.kept and before.accepted + 1 != before.rows:
            yield f"window {window.id} was kept behind {before.accepted} of {before.rows - 1} drafts"


def _after(ms: float, other_ms: float) -> bool:
    return ms >= other_ms - TOLERANCE_MS


def broken_commits(recording: Recording) -> list[str]:
    """A line for each stage that does not hold what the verdicts say: the last commit or undo counts."""
    held: dict[tuple[int, int], int] = {}
    broken = []
    for commit in recording.commits:
        where = commit.window, commit.stage
        if commit.kind == Kind.undo and where not in held:
            broken.append(f"window {commit.window} undone on stage {commit.stage}, not committed there")
        if commit.kind == Kind.commit and where in held:
            broken.append(f"window {commit.window} committed twice on stage {commit.stage}")
        held[where] = commit.rows
    for window in recording.verified:
        for stage in range(len(window.start_ms)):
            rows = held.get((window.id, stage), 0)
            if rows != window.accepted + 1:
                said = f"{rows} rows, its verdict says {window.accepted + 1}"
                broken.append(f"window {window.id} left stage {stage} with {said}")
    return broken
