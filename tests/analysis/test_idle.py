"""Idle time by cause: a text of two stages worked out by hand, and the sum on anything at all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference import idle_by_gap
from reference.events import decode_run, make
from strata_tui import Engine
from strata_tui.analysis.doing import CAUSES
from strata_tui.analysis.idle import stage_times, stage_times_of, text_span, timelines
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Events, Kind, WindowFate

NONE = dict.fromkeys(CAUSES, 0)
MODEL = Path(__file__).parents[1] / "data/oracles/micro-qwen35-friendly.gguf"


def one(kind: Kind, start: int, end: int, window: int, stage: int = HOST_LANE, **rest: int) -> Events:
    return make(kind, start, end - start, window, stage, **rest)


# Window 1 serial; 2 with guess 3 behind it, which is rolled back and undone; 4 fresh, handed over by a flag.
TEXT = np.concatenate(
    [
        make(Kind.request_begin, 0, window=1, a=1),
        make(Kind.window, 10, window=1, rows=2),
        one(Kind.run, 15, 35, 1, 0),
        one(Kind.publish, 33, 35, 1, 0),
        one(Kind.run, 41, 61, 1, 1),
        one(Kind.verdict, 62, 65, 1, rows=2, a=1, b=2),
        one(Kind.commit, 64, 67, 1, 1),
        one(Kind.commit, 66, 68, 1, 0),
        *(one(Kind.draft_step, at, at + 5, 2, DRAFT_LANE) for at in (65, 70, 75, 80)),
        make(Kind.window, 77, window=2, rows=2),
        one(Kind.run, 80, 100, 2, 0),
        make(Kind.window, 90, window=3, rows=2, b=WindowFate.guess),
        one(Kind.commit, 102, 104, 2, 0, b=1),
        one(Kind.run, 104, 124, 3, 0),
        one(Kind.run, 103, 123, 2, 1),
        one(Kind.verdict, 124, 126, 2, rows=2, a=0, b=1),
        make(Kind.guess_rolled_back, 125, window=3),
        one(Kind.commit, 127, 128, 2, 1),
        one(Kind.undo, 129, 132, 2, 0),
        *(one(Kind.draft_step, at, at + 5, 4, DRAFT_LANE) for at in (126, 131)),
        make(Kind.window, 137, window=4, rows=2),
        one(Kind.run, 139, 159, 4, 0),
        one(Kind.wait_ready, 138, 160, 4, 1),
        one(Kind.run, 161, 181, 4, 1),
        one(Kind.verdict, 182, 184, 4, rows=2, a=0, b=1),
        one(Kind.commit, 183, 186, 4, 1),
        one(Kind.commit, 185, 187, 4, 0),
        make(Kind.request_end, 188, window=1),
    ]
)


def test_a_text_worked_out_by_hand() -> None:
    first, last = stage_times(TEXT, 2, 10, 190)
    assert first.run_ns == 18 + 3 * 20
    assert (first.publish_ns, first.commit_ns, first.undo_ns) == (2, 2 + 2 + 2, 3)
    assert first.idle_ns == {
        "hand_off": 0,
        "verdict": (65 - 35) + (126 - 124) + (184 - 159),
        "draft": (75 - 68) + (136 - 132),
        "undo": 129 - 126,
        "host": (15 - 10) + (66 - 65) + (80 - 75) + (102 - 100) + (139 - 136) + (185 - 184),
        "no_work": 190 - 187,
    }
    assert (last.run_ns, last.publish_ns, last.commit_ns, last.undo_ns) == (60, 0, 3 + 1 + 3, 0)
    assert last.idle_ns == {
        # While stage 0 runs windows 1, 2, 4 or commits ahead of 2; then what the waiting program overslept.
        "hand_off": 20 + 20 + 20 + (68 - 67) + (160 - 159),
        "verdict": (64 - 61) + (126 - 123) + (183 - 181),
        "draft": (75 - 68) + (136 - 132),  # stage 0 waited for it, and so did this one
        "undo": (129 - 128) + (132 - 129),
        "host": (15 - 10) + (41 - 35) + (80 - 75) + (103 - 100) + (127 - 126) + (139 - 136) + (161 - 160),
        "no_work": 190 - 186,
    }
    assert first.span_ns == last.span_ns == 180
    assert sum(first.idle_shares().values()) == pytest.approx((180 - first.busy_ns) / 180)


def test_the_last_stage_waits_for_the_verdict_ahead_of_a_kept_window() -> None:
    """Its rows are there at 30, the verdict at 45; where the rows come last, at 30, it is the hand-off."""
    kept = np.concatenate(
        [
            one(Kind.run, 0, 10, 1, 0),
            one(Kind.run, 20, 40, 1, 1),
            make(Kind.window, 5, window=2, rows=2, b=WindowFate.guess),
            one(Kind.run, 12, 30, 2, 0),
            one(Kind.verdict, 41, 45, 1, rows=2, a=1, b=2),
            one(Kind.run, 48, 60, 2, 1),
        ]
    )
    assert stage_times(kept, 2, 40, 48)[1].idle_ns == NONE | {
        "verdict": 5,
        "host": 3,
    }
    kept["dur_ns"][3] = 46 - 12
    assert stage_times(kept, 2, 40, 48)[1].idle_ns == NONE | {"hand_off": 6, "host": 2}


def test_held_back_and_between_requests_there_is_no_work() -> None:
    held = np.concatenate([TEXT, one(Kind.throttle, 112, 138, 0), one(Kind.paused, 138, 139, 0)])
    first, last = stage_times(held, 2, 10, 190)
    assert first.idle_ns["no_work"] == 3 + (129 - 124) + (139 - 132) and first.run_ns == 78
    assert last.idle_ns["no_work"] == 4 + (127 - 123) + (139 - 128)
    later = TEXT.copy()
    later["start_ns"] += 1000
    later["window"] += 10  # ids are never used again
    both = np.concatenate([TEXT, later])
    first, last = stage_times(both, 2, 10, 1190)
    assert first.idle_ns["no_work"] == (1000 - 188) + 3
    assert first.busy_ns == 2 * 89


def test_nothing_recorded_is_no_work() -> None:
    nothing = np.empty(0, EVENT_DTYPE)
    assert stage_times(nothing, 1, 5, 9)[0].idle_ns == NONE | {"no_work": 4}
    assert stage_times(TEXT, 0, 5, 9) == [] and text_span(nothing) is None
    assert text_span(TEXT) == (10, 184)


def all_of(events: Events, n_stages: int, t0: int, t1: int) -> None:
    for time in stage_times(events, n_stages, t0, t1):
        assert time.busy_ns + sum(time.idle_ns.values()) == time.span_ns == t1 - t0
        assert min(time.run_ns, time.publish_ns, time.commit_ns, time.undo_ns, *time.idle_ns.values()) >= 0
    for line in timelines(events, n_stages, t0, t1):
        assert (line.edges[0], line.edges[-1]) == (t0, t1) and (np.diff(line.edges) > 0).all()


def as_gap_by_gap(events: Events, n_stages: int, t0: int, t1: int) -> None:
    found = timelines(events, n_stages, t0, t1)
    for line, plain in zip(found, idle_by_gap.timelines(events, n_stages, t0, t1), strict=True):
        assert (line.edges.tolist(), line.doing.tolist()) == (plain.edges.tolist(), plain.doing.tolist())


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_events_the_parts_add_up(seed: int) -> None:
    """Not even what an engine could record: spans over one another, windows unknown, orders impossible."""
    rng = np.random.default_rng(seed)
    n, n_stages = int(rng.integers(0, 400)), int(rng.integers(1, 5))
    events = np.zeros(n, EVENT_DTYPE)
    events["start_ns"] = 1 << 40
    events["start_ns"] += rng.integers(0, 10_000, n).astype(np.uint64)
    events["dur_ns"] = rng.choice([0, 1, 50, 700], n)
    events["window"] = rng.integers(0, 30, n)
    events["kind"] = rng.integers(1, 30, n)
    events["stage"] = rng.choice([*range(n_stages), DRAFT_LANE, HOST_LANE], n)
    events["rows"] = rng.integers(0, 9, n)
    events["b"] = rng.integers(0, 5, n)
    begin = (1 << 40) + int(rng.integers(-500, 9_000))
    all_of(events, n_stages, begin, begin + int(rng.integers(1, 12_000)))
    as_gap_by_gap(events, n_stages, begin, begin + int(rng.integers(1, 12_000)))


def test_made_up_runs_add_up() -> None:
    for stages in (1, 2, 4):
        events = decode_run(50, stages, overlap=stages == 4)
        all_of(events, stages, int(events["start_ns"][0]), int(events["start_ns"][-1]) + 9)
        as_gap_by_gap(events, stages, int(events["start_ns"][0]), int(events["start_ns"][-1]) + 9)


def shifted(events: Events, at_ns: int, windows: int) -> Events:
    """The same text, begun at another time; ids of windows are never used again."""
    moved = events.copy()
    moved["start_ns"] += np.uint64(at_ns)
    moved["window"] += np.uint32(windows)
    return moved


@pytest.mark.parametrize("seed", range(12))
def test_many_texts_at_once_are_each_as_if_alone(seed: int) -> None:
    """Spans end amid their texts, and what the next one brings is not what a stage waited for."""
    rng = np.random.default_rng(seed)
    stages, texts, begins, spans, at = int(rng.integers(1, 5)), [], [], [], 0
    for number in range(9):
        n = int(rng.integers(1, 9))
        text = TEXT if stages == 2 and n > 6 else decode_run(n, stages, 3, seed, bool(number % 2))
        text = shifted(text, at, 100 * number)
        text["start_ns"][1:] += rng.integers(0, 3_000, len(text) - 1).astype(np.uint64) * (
            text["dur_ns"][1:] > 99
        )
        # Its last window commits nothing, and stage 0 still runs a guess that ended with the text.
        text = text[(text["kind"] != Kind.commit) | (text["window"] != text["window"].max())]
        verdict = int(text["start_ns"][text["kind"] == Kind.verdict].max())
        text = np.concatenate([text, one(Kind.run, verdict - 1, verdict + 9, 100 * number + 99, 0)])
        texts.append(text[np.argsort(text["start_ns"], kind="stable")])
        begins.append(int(text["start_ns"][0]))
        verdicts = text[text["kind"] == Kind.verdict]
        built = int(text["start_ns"][text["kind"] == Kind.window].min())
        spans.append((built, int((verdicts["start_ns"] + verdicts["dur_ns"]).max())))
        if number % 3 == 1:  # as where the other run's text was shorter
            spans[-1] = (built, int((verdicts["start_ns"] + verdicts["dur_ns"])[len(verdicts) // 2]))
        at += int((text["start_ns"] + text["dur_ns"]).max()) - begins[-1] + int(rng.integers(0, 2)) * 5_000
    together = stage_times_of(np.concatenate(texts), stages, spans, begins)
    for text, span, times in zip(texts, spans, together, strict=True):
        assert times == stage_times(text, stages, *span)
    assert stage_times_of(np.concatenate(texts), stages, [], begins) == []


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("stages", "windows"), [(1, 0), (2, 0), (2, 2), (3, 3)])
def test_a_real_run_adds_up(stages: int, windows: int, overlap: bool) -> None:
    settings: dict[str, Any] = {"pipeline_windows": windows} if stages > 1 else {}
    devices = ["even:1+commit=0.1"] * stages
    with Engine.open(
        MODEL, devices=devices, draft="replay:0.8", theta=0.0, overlap=overlap, **settings
    ) as engine:
        list(engine.session().generate([1, 2, 3], max_tokens=40, ignore_eos=True))
        events = engine.events()
    all_of(events, stages, int(events["start_ns"].min()), int(events["start_ns"].max()) + 1)
    span = text_span(events)
    assert span is not None
    all_of(events, stages, *span)
    as_gap_by_gap(events, stages, *span)
