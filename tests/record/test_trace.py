"""The trace file against what was recorded: times to the nanosecond, tracks, arrows, windows, marks."""

import gzip
import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tui.fake_engine import FakeEngine

from reference.events import START_NS, decode_run, make
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, Events, Kind, MissCause, WindowFate
from strata_tui.record.trace import SLICES, TraceMeta, write_trace
from strata_tui.record.tracks import place

META = TraceMeta("m.gguf", "0" * 64, "qwen35", (("cpu 0", 0, 5), ("cpu 1", 6, 11)), {"overlap": False})


def written(path: Path, events: Events, meta: TraceMeta = META) -> list[dict[str, Any]]:
    write_trace(path, events, meta)
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()

    def refused(token: str) -> Any:
        raise AssertionError(f"{token} in a trace")

    records: list[dict[str, Any]] = json.loads(data, parse_constant=refused, parse_float=str)["traceEvents"]
    return records


def ns(time: Any) -> int:
    """A time as it stands in the file, in nanoseconds; exactly three decimals."""
    assert re.fullmatch(r"\d+\.\d{3}", str(time)), time
    return int(str(time).replace(".", ""))


def of(records: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [record for record in records if record["ph"] == phase]


def slices_at(records: list[dict[str, Any]], moment: dict[str, Any]) -> list[dict[str, Any]]:
    """The slices that are open on a moment's thread."""
    return [
        s
        for s in of(records, "X")
        if s["tid"] == moment["tid"] and 0 <= ns(moment["ts"]) - ns(s["ts"]) < ns(s["dur"])
    ]


def assert_nested_or_apart(records: list[dict[str, Any]]) -> None:
    """On one thread only a publish may lie in another slice."""
    threads = defaultdict(list)
    for slice_ in of(records, "X"):
        begin = ns(slice_["ts"])
        threads[slice_["tid"]].append((begin, begin + ns(slice_["dur"]), slice_["name"]))
    for tid, slices in threads.items():
        runs = [(begin, end) for begin, end, name in slices if name in {"run", "prefill"}]
        outer = sorted(s for s in slices if s[2] != "publish" or not runs)
        for (_, end, _), (begin, _, _) in pairwise(outer):
            assert end <= begin, (tid, end, begin)
        for begin, end, name in slices:
            if name == "publish" and runs:
                assert any(a <= begin and end <= b for a, b in runs), tid


def test_every_span_is_drawn_to_the_nanosecond(tmp_path: Path) -> None:
    events = decode_run(windows=9)
    drawn = sorted((ns(s["ts"]), ns(s["dur"])) for s in of(written(tmp_path / "t.json", events), "X"))
    spans = events[np.isin(events["kind"], [int(kind) for kind in SLICES])]
    zero = int(events["start_ns"].min())
    assert drawn == sorted((int(e["start_ns"]) - zero, int(e["dur_ns"])) for e in spans)


def test_stages_are_processes_and_lanes_threads(tmp_path: Path) -> None:
    records = written(tmp_path / "t.json.gz", decode_run(windows=3))
    names = {r["pid"]: r["args"]["name"] for r in records if r["name"] == "process_name"}
    threads = {r["tid"]: (r["pid"], r["args"]["name"]) for r in records if r["name"] == "thread_name"}
    stages = {"stage 0: cpu 0, layers 0-5", "stage 1: cpu 1, layers 6-11"}
    assert set(names.values()) == stages | {"draft layer", "host"}
    assert not set(names) & set(threads)
    runs = [r for r in of(records, "X") if r["name"] == "run"]
    assert {threads[r["tid"]] for r in runs} == {(1, "run"), (2, "run")}
    assert all(threads[r["tid"]][0] == r["pid"] for r in of(records, "X"))


def test_a_hand_off_is_an_arrow_from_publish_to_the_next_run(tmp_path: Path) -> None:
    records = written(tmp_path / "t.json", decode_run(windows=5, stages=3))
    begins, ends = of(records, "s"), of(records, "f")
    assert len(begins) == len(ends) == 5 * 2
    assert len({r["id"] for r in begins}) == 10
    for begin, end in zip(begins, sorted(ends, key=lambda r: r["id"]), strict=True):
        assert begin["id"] == end["id"] and end["bp"] == "e" and end["pid"] == begin["pid"] + 1
        inside = slices_at(records, begin)
        assert {s["name"] for s in inside} == {"run", "publish"}
        read = [s for s in slices_at(records, end) if s["ts"] == end["ts"]]
        assert [s["name"] for s in read] == ["run"]
        assert {s["args"]["window"] for s in inside + read} == {read[0]["args"]["window"]}


def test_a_window_lasts_from_its_making_to_its_verdict(tmp_path: Path) -> None:
    events = decode_run(windows=4)
    records = written(tmp_path / "t.json", events)
    begins = {r["id2"]["local"]: r for r in of(records, "b")}
    ends = {r["id2"]["local"]: r for r in of(records, "e")}
    assert list(begins) == list(ends) == ["0x1", "0x2", "0x3", "0x4"]
    zero = int(events["start_ns"].min())
    for verdict in events[events["kind"] == Kind.verdict]:
        key = hex(verdict["window"])
        assert ns(ends[key]["ts"]) == int(verdict["start_ns"] + verdict["dur_ns"]) - zero
        assert ends[key]["args"]["accepted"] == verdict["a"] and ends[key]["args"]["fate"] == "fresh"
        tokens = events[(events["kind"] == Kind.token) & (events["window"] == verdict["window"])]["a"]
        assert ends[key]["args"]["text"].split() == [str(t) for t in tokens]
        assert begins[key]["args"]["drafted"] == 3


@pytest.mark.parametrize(
    ("kind", "fate"),
    [
        (Kind.guess_rolled_back, "rolled_back"),
        (Kind.guess_gated, "gated"),
        (Kind.guess_late, "late"),
        (Kind.guess_ended, "ended"),
    ],
)
def test_a_guess_ends_with_its_fate(tmp_path: Path, kind: Kind, fate: str) -> None:
    guess = np.concatenate([make(Kind.window, 1000, window=7, rows=4), make(kind, 5000, window=7)])
    (end,) = of(written(tmp_path / "t.json", guess), "e")
    assert end["args"]["fate"] == fate and ns(end["ts"]) == 4000


def pipelined(n_stages: int = 3) -> Events:
    """Texts with guesses kept and rolled back, to their end."""
    engine = FakeEngine(stage_ms=(2.0,) * n_stages, acceptance=0.85)
    engine.switches.pipeline_windows = n_stages
    parts = []
    for _ in range(2):
        session = engine.session()
        session.start([1, 2, 3], 100, None, [])
        while session.running:
            engine.clock.advance(20)
            parts.append(engine.events())
    engine.clock.advance(100)
    return np.concatenate([*parts, engine.events()])


def test_fates_of_guesses_are_in_names_arguments_and_marks(tmp_path: Path) -> None:
    events = pipelined()
    records = written(tmp_path / "t.json", events)
    kinds = {kind: events[events["kind"] == kind] for kind in Kind}
    lost = set(kinds[Kind.guess_rolled_back]["window"].tolist())
    kept = {int(e["window"]): WindowFate(e["b"]).name for e in kinds[Kind.guess_kept]}
    assert lost and set(kept.values()) == {"kept_after_fresh", "kept_after_kept"}

    runs = [r for r in of(records, "X") if r["name"].startswith("run")]
    assert len(runs) == len(kinds[Kind.run])
    for run in runs:
        window = run["args"]["window"]
        assert (run["name"] == "run, rolled back") == (window in lost) == ("cname" in run)
        assert (run["args"]["fate"] == "rolled_back") == (window in lost)
        assert run["args"]["fate"] == kept.get(window, run["args"]["fate"])
    names = [r["name"] for r in records]
    assert names.count("commit ahead of the verdict") == np.count_nonzero(kinds[Kind.commit]["b"] == 1) > 0
    assert names.count("undo") == len(kinds[Kind.undo]) > 0

    begins = {r["args"]["window"]: r["args"] for r in of(records, "b")}
    ends = {int(r["id2"]["local"], 16): r["args"] for r in of(records, "e")}
    for guess in kinds[Kind.guess_built]:
        begin = begins[guess["window"]]
        assert float(begin["estimate"]) == guess["a"] / 1e6 and begin["forced_to_miss"] == 0
        assert len(begin["guessed_row_0"].split()) == 1 and len(begin["drafts"].split(" | ")) == 4
    assert all(ends[window]["fate"] == "rolled_back" and "accepted" not in ends[window] for window in lost)
    assert all(ends[window]["fate"] == fate and "accepted" in ends[window] for window, fate in kept.items())

    marks = [mark["name"] for mark in of(records, "i")]
    for kind in ("gated", "launched", "kept", "rolled back", "late", "ended"):
        assert marks.count(f"guess {kind}") == len(kinds[Kind["guess_" + kind.replace(" ", "_")]]), kind
    misses = [mark for mark in of(records, "i") if mark["name"].startswith("miss: ")]
    assert len(misses) == len(kinds[Kind.miss]) > 0
    causes = {MissCause(cause).name.replace("_", " ") for cause in kinds[Kind.miss]["a"]}
    assert {mark["name"] for mark in misses} == {f"miss: {cause}" for cause in causes}
    assert sum(m["args"]["second_choice_right"] for m in misses) == kinds[Kind.miss]["b"].sum()
    assert_nested_or_apart(records)


def test_prompt_windows_and_those_in_flight_end_with_what_is_left_of_them(tmp_path: Path) -> None:
    events = np.concatenate(
        [
            make(Kind.window, 0, window=1, rows=8, b=WindowFate.prompt),
            make(Kind.run, 10, 20, 1, 0),
            make(Kind.run, 40, 20, 1, 1),
            make(Kind.window, 70, window=2, rows=4),
            make(Kind.run, 80, 15, 2, 0),
            make(Kind.prefill_chunk, 5, 100, 3, 0),
        ]
    )
    ends = {r["id2"]["local"]: r for r in of(written(tmp_path / "t.json", events), "e")}
    assert {key: (ns(r["ts"]), r["args"]["fate"]) for key, r in ends.items()} == {
        "0x1": (60, "prompt"),
        "0x2": (95, "in_flight"),
    }


def test_decode_rate_is_tokens_over_time(tmp_path: Path) -> None:
    """10 verdicts of 3 tokens, one each 100 ms: 30 tok/s at every one but the first; 0 at the end."""
    verdicts = make(Kind.verdict, np.arange(10) * 100_000_000, 1000, np.arange(10), rows=4, a=2, b=3)
    end = make(Kind.request_end, 2_000_000_000)
    counted = of(written(tmp_path / "t.json", np.concatenate([verdicts, end])), "C")
    assert [r["args"]["tok/s"] for r in counted] == ["30.0"] * 9 + ["0.0"]


def test_switches_and_verdicts_are_marks(tmp_path: Path) -> None:
    marks = of(written(tmp_path / "t.json", decode_run(windows=4)), "i")
    assert sum(mark["name"] == "verdict" for mark in marks) == 4
    assert sum(mark["name"] == "overlap = 1" for mark in marks) == 1
    assert all(mark["s"] == "p" for mark in marks)


def test_hostile_text_stays_inside_its_quotes(tmp_path: Path) -> None:
    pieces = ['"', "\\", "\n\r\t\0\x1b[31m\x7f", "\ud83d", "é☃", "</script>", "%d %s {}"]
    stages = (('cpu "0"', 0, 0),)
    meta = TraceMeta('a"b\\\n', "0", "x", stages, piece=lambda token: pieces[token % len(pieces)])
    records = written(tmp_path / "t.json", decode_run(windows=20), meta)
    text = "".join(r["args"]["text"] for r in of(records, "e"))
    assert "␀␛[31m␡" in text and '"' in text and "%d %s {}" in text
    assert all(c >= " " for c in text)


def test_overlapping_spans_go_to_further_threads(tmp_path: Path) -> None:
    """Random spans of every kind, stage and length, zero lengths and doubled windows among them."""
    rng = np.random.default_rng(3)
    events = np.zeros(4000, EVENT_DTYPE)
    events["start_ns"] = START_NS + rng.integers(0, 100_000, len(events))
    events["dur_ns"] = rng.choice([0, 1, 999, 1000, 20_000], len(events))
    events["kind"] = rng.integers(0, 40, len(events))  # unknown ones too
    events["stage"] = rng.choice([0, 1, 2, 77, 253, DRAFT_LANE, 255], len(events))
    events["window"] = rng.integers(0, 60, len(events))
    events["a"] = rng.integers(-(2**31), 2**31, len(events))
    events["b"] = rng.integers(-(2**31), 2**31, len(events))
    records = written(tmp_path / "t.json", events)
    assert_nested_or_apart(records)
    known = np.isin(events["kind"], [int(kind) for kind in SLICES])
    assert len(of(records, "X")) == np.count_nonzero(known)
    assert [r["id2"] for r in of(records, "b")] == [r["id2"] for r in of(records, "e")]
    for begin, end in zip(of(records, "b"), of(records, "e"), strict=True):
        assert ns(begin["ts"]) <= ns(end["ts"])


def test_a_trace_cut_at_its_start_is_whole(tmp_path: Path) -> None:
    """Whatever a ring has let go, begins and ends stay in pairs and arrows whole."""
    events = decode_run(windows=6, stages=3, overlap=True)
    for cut in range(0, len(events), 7):
        records = written(tmp_path / "t.json", events[cut:])
        assert len(of(records, "b")) == len(of(records, "e"))
        assert {r["id"] for r in of(records, "s")} == {r["id"] for r in of(records, "f")}
        assert_nested_or_apart(records)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_no_events_make_a_valid_trace(tmp_path: Path, name: str) -> None:
    records = written(tmp_path / name, np.empty(0, EVENT_DTYPE))
    assert {r["ph"] for r in records} == {"M"}


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("before")

    def broken(token: int) -> str:
        raise ValueError("no such token")

    with pytest.raises(ValueError, match="no such token"):
        write_trace(path, decode_run(windows=2), TraceMeta("m", "0", "x", (), piece=broken))
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


def test_emulated_runs_say_so(tmp_path: Path) -> None:
    stages = (("paced: rig", 0, 1),)
    meta = TraceMeta("m", "0", "x", stages, emulated=True, dropped_events=3, unix_offset_ns=0)
    path = tmp_path / "t.json"
    records = written(path, decode_run(windows=1), meta)
    assert all("emulated" in r["args"]["name"] for r in records if r["name"] == "process_name")
    about = json.loads(path.read_text())["otherData"]
    assert about["emulated"] is True and about["dropped_events"] == 3
    assert about["start"].startswith("1970-01-01T02:15:23.456")  # START_NS after the epoch


def test_the_first_free_track_is_taken() -> None:
    start = np.array([0, 5, 10, 10, 12, 30])
    end = np.array([10, 15, 12, 11, 13, 40])
    assert place(np.zeros(6, np.int64), start, end).tolist() == [0, 1, 2, 0, 0, 0]
    assert place(np.arange(6), start, end).tolist() == [0] * 6
    assert place(*np.zeros((3, 0), np.int64)).tolist() == []
