"""The numbers of a run, from counters and events made by hand."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from strata_tui.analysis.explained import Explained
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Events, Kind, WindowFate
from strata_tui.report import (
    hand_off_lines,
    pipeline_line,
    rates,
    request_lines,
    run_json,
    summary_lines,
    wasted_ms,
)

MS = 1_000_000

STATS: dict[str, Any] = {
    "prompt_tokens": 100,
    "cached_tokens": 20,
    "generated": 30,
    "windows": 12,
    "windows_overlapped": 5,
    "prompt_windows": 0,
    "drafted": 24,
    "accepted": 18,
    "drafted_per_position": [10, 8, 6, 0],
    "accepted_per_position": [9, 6, 3, 0],
    "prefill_rows": 79,
    "prefill_ns": 500 * MS,
    "first_token_ns": 520 * MS,
    "window_ns": 240 * MS,
    "windows_by_class": [7, 4, 1],
    "window_ns_by_class": [196 * MS, 40 * MS, 4 * MS],
    "guesses": {
        "built": 14,
        "gated": 2,
        "late": 1,
        "launched": 11,
        "kept": 5,
        "rolled_back": 5,
        "ended": 1,
        "bonus_wrong": 3,
        "draft_wrong": 2,
        "forced": 0,
        "second_choice_right": 1,
    },
    "drafting_stopped": False,
}


def _emptied(value: Any) -> Any:
    """The same counters when nothing happened."""
    if isinstance(value, dict):
        return dict.fromkeys(value, 0)
    return [0] * len(value) if isinstance(value, list) else 0


NOTHING = {key: _emptied(value) for key, value in STATS.items()}


def event(kind: Kind, start_ms: float, ms: float = 0, stage: int = HOST_LANE, **more: int) -> tuple[int, ...]:
    rest = (more.get(name, 0) for name in ("rows", "a", "b"))
    return (int(start_ms * MS), int(ms * MS), more.get("window", 1), int(kind), stage, *rest)


def events(*rows: tuple[int, ...]) -> Events:
    return np.array(list(rows), EVENT_DTYPE)


# Two stages. A chunk (window 1); a prompt window (2); then in 20 ms windows 3, serial, and 4, ahead.
RUN = events(
    event(Kind.launch, 0, stage=1, window=1),
    event(Kind.prefill_chunk, 0, 10, stage=0, window=1),
    event(Kind.prefill_chunk, 10, 10, stage=1, window=1),
    event(Kind.window, 20, window=2, b=WindowFate.prompt),
    event(Kind.launch, 20, stage=1, window=2),
    event(Kind.run, 20, 5, stage=0, window=2, b=1),
    event(Kind.run, 25, 5, stage=1, window=2, b=1),
    event(Kind.commit, 29, 2, stage=0, window=2),  # of its 2 ms 1 lies in the span of the text
    event(Kind.window, 30, window=3),
    event(Kind.launch, 30, stage=0, window=3),
    event(Kind.run, 31, 4, stage=0, window=3),
    event(Kind.publish, 34, 1, stage=0, window=3),  # inside the run
    event(Kind.launch, 35, stage=1, window=3),
    event(Kind.wait_ready, 35, 0.5, stage=1, window=3),
    event(Kind.run, 36, 3, stage=1, window=3),
    event(Kind.verdict, 39, 1, window=3),
    event(Kind.draft_step, 40, 2, stage=DRAFT_LANE, window=3),
    event(Kind.window, 42, window=4),
    event(Kind.launch, 42, stage=0, window=4),
    event(Kind.launch, 42, stage=1, window=4, a=1),
    event(Kind.run, 42, 4, stage=0, window=4),
    event(Kind.wait_ready, 42, 4, stage=1, window=4),
    event(Kind.run, 46, 3, stage=1, window=4),
    event(Kind.verdict, 49, 1, window=4),
)


def test_rates_by_hand() -> None:
    got = rates(STATS)
    assert got["prefill_tokens_per_s"] == pytest.approx(79 / 0.5)
    assert got["time_to_first_token_ms"] == pytest.approx(520)
    assert got["tokens_per_s"] == pytest.approx(125)
    assert got["ms_per_window"] == pytest.approx(20)
    assert (got["ms_fresh"], got["ms_kept_after_fresh"], got["ms_kept_after_kept"]) == (28, 10, 4)
    assert got["guesses"] == STATS["guesses"]
    assert got["tokens_per_window"] == pytest.approx(2.5)
    assert got["accepted_per_position"] == pytest.approx(
        [0.9, 0.75, 0.5]
    )  # of the windows that had such a draft


def test_nothing_decoded_has_no_rates() -> None:
    got = rates(NOTHING)
    for name in (
        "prefill_tokens_per_s",
        "time_to_first_token_ms",
        "tokens_per_s",
        "ms_per_window",
        "ms_fresh",
        "ms_kept_after_fresh",
        "ms_kept_after_kept",
        "tokens_per_window",
    ):
        assert got[name] is None
    assert got["accepted_per_position"] == []


def test_hand_offs_count_windows_and_not_chunks() -> None:
    assert hand_off_lines(RUN, 2) == [
        "strata: hand-off stage 0 -> 1: overlapped (1 window), serial (2 windows)"
    ]
    assert hand_off_lines(RUN[:3], 2) == ["strata: hand-off stage 0 -> 1: none"]
    assert hand_off_lines(RUN, 1) == []


def test_the_pipeline_line() -> None:
    assert pipeline_line(STATS) == (
        "strata pipeline: windows 12, launched 11, kept 5, rolled back 5, gated 2, "
        "ms fresh 28.00, kept after fresh 10.00, kept after kept 4.00"
    )
    assert pipeline_line(NOTHING).endswith("ms fresh -, kept after fresh -, kept after kept -")


# Behind window 3: guess 5, whose second stage still runs at the verdict, and guess 6, which is kept.
GUESSES = events(
    event(Kind.run, 35, 3, stage=0, window=5),
    event(Kind.run, 38, 2, stage=1, window=5),
    event(Kind.guess_rolled_back, 40, window=5, a=2, b=1),
    event(Kind.run, 46, 1, stage=0, window=6),
    event(Kind.guess_kept, 50, window=6, a=1, b=WindowFate.kept_after_fresh),
    event(Kind.undo, 51, 4, stage=0, window=3),
)


def test_what_was_rolled_back_is_wasted() -> None:
    assert wasted_ms(RUN) == 0 and wasted_ms(events()) == 0
    assert wasted_ms(np.concatenate([RUN, GUESSES])) == pytest.approx(5)


def test_the_reports_of_a_request() -> None:
    both = np.concatenate([RUN, GUESSES])
    plain = request_lines(both, 2, STATS)
    assert plain == [*hand_off_lines(both, 2), pipeline_line(STATS)]
    assert request_lines(both, 2, STATS, {"pipeline_log"}) == plain
    decode, first, second = request_lines(both, 2, STATS, {"decode_timing", "split_timing"})[2:]
    assert decode == (
        "strata timing: ms per window 20.000: fresh 28.000 (of 7), kept after fresh 10.000 (of 4), "
        "kept after kept 4.000 (of 1); tokens per window 2.500; "
        "draft 0.167, verdict 0.167, commit 0.500 ms per window"
    )
    assert first == (
        "strata timing: stage 0: run 17.00, wait 0.00, staging 0.00, launch 0.00, sync 0.00, "
        "hand-off 1.00, commit 2.00, undo 4.00, lost 3.00 ms"
    )
    assert second.endswith("undo 0.00, lost 2.00 ms")
    assert "tokens per window -" in request_lines(events(), 0, NOTHING, {"decode_timing"})[-1]


def test_emulated_times_are_marked_in_every_line() -> None:
    asked = {"decode_timing", "split_timing"}
    lines = request_lines(RUN, 2, STATS, asked, emulated=True)
    timed = [line for line in lines if "ms" in line]
    assert len(timed) == 4 and all(line.endswith(" [emulated]") for line in timed)
    assert not any("emulated" in line for line in request_lines(RUN, 2, STATS, asked))


def test_kernels_by_stage_and_rows() -> None:
    kernels = [
        {"stage": 0, "rows": 2, "programs": 0, "ns": {"commit": 2 * MS}},
        {
            "stage": 0,
            "rows": 5,
            "programs": 7,
            "ns": {"norm": 1 * MS, "Q4_K": 6 * MS, "commit": 1 * MS, "attention": 3 * MS},
        },
        {"stage": 1, "rows": 0, "programs": 1, "ns": {"head": 2 * MS}},
        {"stage": DRAFT_LANE, "rows": 1, "programs": 9, "ns": {"pick": MS // 2, "Q8_0": MS // 2}},
    ]
    got = request_lines(events(), 0, {**STATS, "kernels": kernels}, {"verify_profile"})[1:]
    assert got == [
        "strata profile: stage 0, 5 rows, 7 programs, 10.00 ms: "
        "Q4_K 6.00 (60%), attention 3.00 (30%), norm 1.00 (10%)",
        "strata profile: stage 1, chunks, 1 program, 2.00 ms: head 2.00 (100%)",
        "strata profile: draft layer, 1 row, 9 programs, 1.00 ms: pick 0.50 (50%), Q8_0 0.50 (50%)",
        "strata profile: stage 0, commits, 3.00 ms: 2 rows 2.00, 5 rows 1.00",
    ]
    _, head, *marked = request_lines(events(), 0, {**STATS, "kernels": kernels}, {"verify_profile"}, True)
    assert head == "strata profile: what is computed here, not the emulated rig's times"
    assert marked == [line + " [computed here]" for line in got]


def test_the_summary_shows_the_three_rates_together() -> None:
    prompt, text, drafts, guesses = summary_lines(STATS, "length", 0)
    assert prompt == "prompt: 100 tokens, 20 of them cached, read at 158 tok/s; first token after 520.0 ms"
    assert text.startswith(
        "text: 30 tokens (length), 125.0 tok/s = 2.50 tokens per window / 20.00 ms per window"
    )
    assert (
        drafts == "drafts: 18 of 24 accepted (75%); by position, of the windows that had one: 0.90 0.75 0.50"
    )
    assert guesses == (
        "guesses: 5 of 10 kept (50%), 1 ended with the text; 2 gated, 1 late; "
        "misses: 2 drafts wrong, 3 bonus wrong (second choice right: 1)"
    )
    assert "7 events were dropped" in summary_lines(STATS, "stop", 7)[-1]
    assert len(summary_lines(NOTHING, "cancel", 0)) == 2


def test_the_object_is_whole_when_nothing_happened() -> None:
    stages = [SimpleNamespace(device="cpu 1 thread", first_layer=i, last_layer=i) for i in (0, 1)]
    about = {"model": "m", "model_sha256": "0", "arch": "llama", "emulated": False}
    text = {"token_ids": [], "text": "", "finish": "cancel"}
    known = Explained(RUN, 2, 0)
    busy, idle = (run_json(about, stages, {}, stats, RUN, text, 0, known) for stats in (STATS, NOTHING))
    assert busy.keys() == idle.keys()
    assert None not in busy.values()
    assert json.loads(json.dumps(idle, allow_nan=False))["finish"] == "cancel"
