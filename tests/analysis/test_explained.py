"""What the summary and the JSON of a run say of its time, from events made by hand."""

import numpy as np
import pytest

from reference.events import make
from strata_tui.analysis.explained import Explained
from strata_tui.events import EVENT_DTYPE, Kind, WindowFate

MS = 1_000_000
NONE = dict.fromkeys(("hand_off", "verdict", "draft", "undo", "host", "no_work"), 0)

# Two stages, 30 to 50 ms: window 3 is launched on stage 1 by the host, window 4 by a flag.
RUN = np.concatenate(
    [
        make(Kind.commit, 29 * MS, 2 * MS, 2, 0, b=0),
        make(Kind.window, 30 * MS, window=3, rows=1),
        make(Kind.run, 31 * MS, 4 * MS, 3, 0),
        make(Kind.wait_ready, 35 * MS, MS // 2, 3, 1),
        make(Kind.run, 36 * MS, 3 * MS, 3, 1),
        make(Kind.verdict, 39 * MS, 1 * MS, 3, rows=1, b=1),
        make(Kind.window, 42 * MS, window=4, rows=1),
        make(Kind.run, 42 * MS, 4 * MS, 4, 0),
        make(Kind.wait_ready, 42 * MS, 4 * MS, 4, 1),
        make(Kind.run, 46 * MS, 3 * MS, 4, 1),
        make(Kind.verdict, 49 * MS, 1 * MS, 4, rows=1, b=1),
    ]
)


def test_idle_shares_and_stages_at_work() -> None:
    """Stage 0 waits for the verdicts at 40 and 50 and for the host till 42; a third stage for those alone."""
    got = Explained(RUN, 3, 0)
    first, second, third = (stage["idle"] for stage in got.stage_times())
    assert first == pytest.approx(NONE | {"verdict": 9 / 20, "host": 2 / 20})
    assert second == pytest.approx(NONE | {"hand_off": 9.5 / 20, "verdict": 2 / 20, "host": 2.5 / 20})
    assert third == NONE | {"verdict": 1}
    assert got.stages_busy_mean == pytest.approx((1 + 4 + 4 + 3 + 3) / 20)


def test_times_and_shares_of_a_stage_are_of_one_span() -> None:
    """30 to 50 ms: the prompt's chunk before counts for nothing, of the commit from 29 on one ms does."""
    prompt = make(Kind.prefill_chunk, 0, 10 * MS, 1, [0, 1])
    waits = make(Kind.wait_ready, 10 * MS, 25 * MS, 1, 0)  # of it 5 ms lie within
    got = Explained(np.concatenate([prompt, waits, RUN]), 2, 0)
    assert got.text_ms == 20
    first, second = got.stage_times()
    assert (first["run_ms"], first["wait_ms"]) == (1 + 4 + 4, 5)
    assert (second["run_ms"], second["wait_ms"]) == (3 + 3, 0.5 + 4)
    for stage in (first, second):
        assert stage["run_ms"] / got.text_ms + sum(stage["idle"].values()) == pytest.approx(1)


def test_the_bound_and_the_lines() -> None:
    """The shortest hand-off is 0 (window 4), the verdict 1, the draft chain 2: 4 + 3 + 1 + 2 + 4 + 3 + 1."""
    got = Explained(RUN, 2, 0)
    assert got.bound() == {"actual_ms": 50 - 31, "same_depth_ms": 18, "full_depth_ms": 18}
    assert got.lines() == [
        "stages at work: 0 45% (idle: verdict 45%, host 10%); "
        "1 30% (idle: hand-off 48%, host 12%, verdict 10%)",
        "bound: 19.0 ms, 1.06 x what these stages and verdicts allow at this depth (18.0 ms), "
        "1.06 x at full depth (18.0 ms)",
    ]


def test_nothing_decoded_has_nothing_to_explain() -> None:
    for events in (np.empty(0, EVENT_DTYPE), make(Kind.window, 3, window=1, b=WindowFate.prompt)):
        got = Explained(events, 2, 0)
        assert got.stage_times() == [{"run_ms": None, "wait_ms": None, "idle": None}] * 2
        assert got.text_ms is None and got.stages == [] and got.bound() is None and got.lines() == []
        assert got.stages_busy_mean is None
