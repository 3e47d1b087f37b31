"""Two runs aligned at token index; figures worked out by hand, from the times in reference/events.py."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.record.test_recording import HEADER

from reference.events import DRAFT_NS, HOP_NS, STAGE_NS, decode_run
from strata_tui.errors import BadInput
from strata_tui.events import Events, Kind
from strata_tui.options import Sampling
from strata_tui.record.compare import compare
from strata_tui.record.comparison_report import comparison_json, comparison_lines
from strata_tui.record.recorder import Recorder
from strata_tui.record.recording import Recording, read_recording


def run(
    folder: Path, windows: int = 40, rows: int = 4, tokens: list[int] | None = None, **changes: object
) -> Recording:
    """A run whose text is 0, 1, 2 .., or `tokens`; `changes` go into its header."""
    events = decode_run(windows, rows=rows)
    n = int(events[events["kind"] == Kind.verdict]["b"].sum())
    path = folder / "a.strata"
    recorder = Recorder(path, lambda: {**HEADER, **changes})
    begin = int(events["start_ns"][0])
    recorder.begin(begin, [1, 2, 3], "p", Sampling())
    recorder.take(events)
    recorder.wrote(begin + 1, tokens or list(range(n)), "")
    recorder.end(begin + 2, "length", "", {})
    recorder.close()
    return read_recording(path)


def verdicts(events: Events) -> Events:
    return events[events["kind"] == Kind.verdict]


def period_ns(rows: int) -> int:
    """From one verdict to the next, by the definition of these events."""
    return 2 * (STAGE_NS + HOP_NS) + 30_000 + (rows - 1) * DRAFT_NS + 20_000


def test_a_run_against_itself(tmp_path: Path) -> None:
    a = run(tmp_path)
    told = comparison_json(compare(a, a))
    assert told["identical"] is True and told["first_difference"] is None
    emitted = int(verdicts(a.events)["b"].sum())
    assert told["tokens"] == told["a"]["tokens"] == emitted
    # the first window is timed from when it was built: a whole period less the draft chain behind it
    first = 10_000 + 2 * (STAGE_NS + HOP_NS) - HOP_NS + 4_000 + 6_000
    ms = (39 * period_ns(4) + first) / 1e6
    assert told["a"]["ms"] == pytest.approx(ms)
    assert told["a"]["ms_per_window"] == pytest.approx(ms / 40)
    assert told["a"]["tokens_per_s"] == pytest.approx(emitted / ms * 1e3)
    assert told["a"]["tokens_per_window"] == emitted / 40
    assert told["a"]["windows_by_class"] == {"fresh": 40, "kept_after_fresh": 0, "kept_after_kept": 0}
    assert told["difference_ms"] == {"total": 0, "by_windows": 0, "by_ms_per_window": 0}
    assert sum(block["a_ms"] for block in told["where"]) == pytest.approx(ms)
    (run_0, run_1) = (stage["ms_per_window"]["run"] for stage in told["a"]["stages"])
    assert run_1 == pytest.approx(STAGE_NS / 1e6)
    assert run_0 == pytest.approx((STAGE_NS - 2_000) / 1e6), "less the publish within it"
    for stage in told["a"]["stages"]:
        whole = (39 * period_ns(4) + first) / 1e6 / 40
        assert sum(stage["ms_per_window"].values()) == pytest.approx(whole), "run and idle are the span"


def test_other_drafts_other_windows_and_the_same_text(tmp_path: Path) -> None:
    a, b = run(tmp_path, 40, 4), run(tmp_path, 40, 2, switches={"overlap": False, "draft_max": 1})
    short = int(verdicts(b.events)["b"].sum())
    comparison = compare(a, b)
    told = comparison_json(comparison)
    assert told["tokens"] == short and told["identical"] is True
    assert told["b"]["windows"] == 40 and told["a"]["windows"] < 40
    cumulated = np.cumsum(verdicts(a.events)["b"])
    assert told["a"]["windows"] == int((cumulated <= short).sum())
    total = told["difference_ms"]
    assert total["by_windows"] + total["by_ms_per_window"] == pytest.approx(total["total"])
    blocks = told["where"]
    assert sum(x["b_ms"] - x["a_ms"] for x in blocks) == pytest.approx(total["total"])
    assert total["by_windows"] > 0 > total["by_ms_per_window"], "more windows, shorter ones"
    assert [x["from_token"] for x in blocks[1:]] == [x["to_token"] for x in blocks[:-1]]
    assert told["switches"] == {
        "overlap": {"a": True, "b": False},
        "theta": {"a": 0.2, "b": None},
        "draft": {"a": "mtp", "b": None},
        "draft_max": {"a": None, "b": 1},
    }
    assert any("the first" in note for note in told["notes"])
    lines = "\n".join(comparison_lines(comparison))
    assert "identical" in lines and "overlap 1 and 0" in lines and "and 40 windows" in lines


def test_each_text_has_its_own_events(tmp_path: Path) -> None:
    one = run(tmp_path)
    request, n = one.requests[0], len(one.events)
    later = one.events.copy()
    later["start_ns"] += 10**12
    later["window"] += 1000
    second = replace(request, begin_ns=request.begin_ns + 10**12)
    both = replace(one, requests=[request, second], events=np.concatenate([later, one.events]))
    side = compare(both, both).a
    alone = compare(one, one).a
    assert len(both.events) == 2 * n
    assert [windows["id"].tolist() for windows in side.windows] == [
        alone.windows[0]["id"].tolist(),
        (alone.windows[0]["id"] + 1000).tolist(),
    ]
    assert side.busy_ns == 2 * alone.busy_ns and side.stages == [*alone.stages, *alone.stages]


def test_texts_that_differ_are_told_with_their_index(tmp_path: Path) -> None:
    a = run(tmp_path)
    tokens = list(a.requests[0].tokens)
    tokens[17] = 999
    comparison = compare(a, run(tmp_path, tokens=tokens))
    told = comparison_json(comparison)
    assert told["identical"] is False
    assert told["first_difference"] == {"text": 1, "index": 17, "a": 17, "b": 999}
    assert told["tokens"] == 17 and told["a"]["tokens"] <= 17
    assert any("THE TEXTS DIFFER: text 1, token 17" in line for line in comparison_lines(comparison))


def test_what_is_not_comparable(tmp_path: Path) -> None:
    a = run(tmp_path)
    request = a.requests[0]

    def refused(b: Recording, reason: str, force: bool = True) -> None:
        with pytest.raises(BadInput, match=reason):
            compare(a, b, force)

    refused(replace(a, model_sha256="cd" * 32), "expected runs of one model, got m.gguf .abab")
    refused(replace(a, requests=[replace(request, prompt_tokens=(1, 9, 3))]), "token 1 is 2 and 9")
    refused(replace(a, requests=[replace(request, prompt_tokens=(1, 2))]), "got two: 3 and 2 tokens")
    warm = {**request.sampling, "temperature": 0.7}
    refused(replace(a, requests=[replace(request, sampling=warm)]), "temperature 0 and 0.7")
    refused(replace(a, requests=[replace(request, emitted=(0, 1))]), "from its start, got none")
    refused(replace(a, emulated=True), "emulated device and .* measured ones; --force", force=False)
    assert compare(a, replace(a, emulated=True), force=True).notes
    a = replace(a, kv="f16", numerics="fma16")
    refused(replace(a, kv="f32"), "K/V cells f16 in .* and f32 in .*; --force", force=False)
    refused(replace(a, numerics="portable"), "kernels fma16 in .* and portable in .*", force=False)
    assert "another text" in compare(a, replace(a, kv="f32"), force=True).notes[0]
    assert not compare(a, replace(a, kv="", numerics="")).notes  # of a file that does not tell
    seeded = {**request.sampling, "seed": 9}
    compare(a, replace(a, requests=[replace(request, sampling=seeded)]))  # greedy: no seed is looked at


def test_recordings_without_windows(tmp_path: Path) -> None:
    a = run(tmp_path)
    empty = replace(a, events=a.events[:0])
    told = comparison_json(compare(empty, empty))
    assert told["a"]["ms_per_window"] is None and told["a"]["windows"] == 0
    assert comparison_lines(compare(empty, a))
