"""A trace loads in Perfetto's own UI, which finds in it what was recorded and no error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto import Perfetto, missing, perfetto
from tests.tui.fake_engine import FakeEngine

from reference.events import START_NS, decode_run, make
from strata_tui.engine import Engine
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, Kind
from strata_tui.record.trace import SLICES, TraceMeta, trace_meta, write_trace

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

STAGES = (("cpu 0", 0, 3), ("cpu 1", 4, 7), ("cpu 2", 8, 11))
FATES = (
    "select display_value, count() from args join slice using (arg_set_id) "
    "where slice.name = 'window' and key = 'args.fate' group by display_value"
)
META = TraceMeta("m.gguf", "0" * 64, "qwen35", STAGES, {"overlap": True})


@pytest.fixture(scope="module")
def ui() -> Iterator[Perfetto]:
    with perfetto() as page:
        yield page


def one(ui: Perfetto, sql: str) -> Any:
    return ui.query(sql)[0][0]


def test_a_run_of_three_stages(ui: Perfetto, tmp_path: Path) -> None:
    n = 300
    events = decode_run(windows=n, stages=3, overlap=True)
    write_trace(tmp_path / "run.json.gz", events, META)
    ui.load(tmp_path / "run.json.gz")
    assert ui.errors() == []
    names = {name for (name,) in ui.query("select name from process where name is not null")}
    stages = {f"stage {i}: {device}, layers {a}-{b}" for i, (device, a, b) in enumerate(STAGES)}
    assert names == stages | {"draft layer", "host"}

    drawn = ui.query("select ts, dur from slice where name = 'run' order by ts")
    runs = events[events["kind"] == Kind.run]
    zero = int(events["start_ns"].min())
    assert drawn == [[int(run["start_ns"]) - zero, int(run["dur_ns"])] for run in runs]

    arrows = ui.query(
        "select writer.name, reader.name, count() from flow join slice writer on writer.id = slice_out "
        "join slice reader on reader.id = slice_in group by writer.name, reader.name"
    )
    assert arrows == [["publish", "run", 2 * n]]
    assert one(ui, "select count() from slice where name = 'window'") == n
    assert one(ui, "select count() from slice where name = 'verdict' and dur = 0") == n  # the marks
    assert one(ui, "select count() from slice where name = 'overlap = 1'") == 1
    rates = [value for (value,) in ui.query("select value from counter")]
    emitted = int(events[events["kind"] == Kind.verdict]["b"].sum())
    seconds = (int(events["start_ns"].max()) - START_NS) / 1e9
    assert rates[-1] == 0 and np.median(rates) == pytest.approx(emitted / seconds, rel=0.1)
    known = ui.query(
        "select distinct key from args join slice using (arg_set_id) where slice.name = 'window'"
    )
    assert {"args.drafted", "args.accepted", "args.fate", "args.text"} <= {key for (key,) in known}


def test_guesses_kept_and_rolled_back(ui: Perfetto, tmp_path: Path) -> None:
    engine = FakeEngine(stage_ms=(2.0, 2.0, 2.0), acceptance=0.85)
    engine.switches.pipeline_windows = 3
    engine.session().start([1, 2, 3], 400, None, [])
    parts = []
    for _ in range(200):
        engine.clock.advance(20)
        parts.append(engine.events())
    events = np.concatenate(parts)
    write_trace(tmp_path / "guesses.json.gz", events, META)
    ui.load(tmp_path / "guesses.json.gz")
    assert ui.errors() == []
    kind = events["kind"]
    lost = events["window"][kind == Kind.guess_rolled_back]
    runs_lost = np.count_nonzero((kind == Kind.run) & np.isin(events["window"], lost))
    assert one(ui, "select count() from slice where name = 'run, rolled back'") == runs_lost > 0
    assert (
        one(ui, "select count() from slice where name = 'run'")
        == np.count_nonzero(kind == Kind.run) - runs_lost
    )
    fates = dict(ui.query(FATES))
    assert fates["rolled_back"] == len(lost)
    assert fates["kept_after_fresh"] + fates["kept_after_kept"] == np.count_nonzero(kind == Kind.guess_kept)
    assert one(ui, "select count() from slice where name like 'miss: %'") == np.count_nonzero(
        kind == Kind.miss
    )


def test_back_to_back_slices_keep_their_nanoseconds(ui: Perfetto, tmp_path: Path) -> None:
    """Slices that touch, at times whose decimals no double holds, an hour in; none may be dropped."""
    lengths = np.array([1, 3, 7, 999, 1001, 1, 0, 5, 0, 0, 13] * 300)
    starts = np.cumsum(lengths) - lengths
    for offset in (0, 3_600_000_000_005):
        events = np.concatenate([make(Kind.error, 1), make(Kind.run, 1 + offset + starts, lengths, 1, 0)])
        write_trace(tmp_path / f"{offset}.json", events, META)
        ui.load(tmp_path / f"{offset}.json")
        assert ui.errors() == []
        drawn = ui.query("select ts, dur from slice where name = 'run' order by ts, dur")
        assert drawn == [[offset + int(s), int(d)] for s, d in zip(starts, lengths, strict=True)]


def test_anything_recorded_makes_a_trace_without_errors(ui: Perfetto, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    events = np.zeros(3000, EVENT_DTYPE)
    events["start_ns"] = START_NS + rng.integers(0, 50_000, len(events))
    events["dur_ns"] = rng.choice([0, 1, 999, 20_000], len(events))
    events["kind"] = rng.integers(0, 40, len(events))
    events["stage"] = rng.choice([0, 1, 77, 253, DRAFT_LANE, 255], len(events))
    events["window"] = rng.integers(0, 60, len(events))
    events["a"], events["b"] = rng.integers(-(2**31), 2**31, (2, len(events)))
    pieces = ['"', "\\", "\0\x1b[31m", "\ud83d", "é☃", "%d"]
    meta = TraceMeta('a"b\n', "0", "x", (), piece=lambda token: pieces[token % len(pieces)])
    write_trace(tmp_path / "noise.json", events, meta)
    ui.load(tmp_path / "noise.json")
    assert ui.errors() == []
    spans = np.isin(events["kind"], [int(kind) for kind in SLICES])
    threads = "select id from thread_track"
    assert one(ui, f"select count() from slice where track_id in ({threads})") == np.count_nonzero(spans)


def test_a_trace_that_begins_in_the_middle_of_windows(ui: Perfetto, tmp_path: Path) -> None:
    events = decode_run(windows=20, stages=3, overlap=True)
    write_trace(tmp_path / "cut.json.gz", events[151:], META)
    ui.load(tmp_path / "cut.json.gz")
    assert ui.errors() == []
    runs_left = np.count_nonzero(events[151:]["kind"] == Kind.run)
    assert one(ui, "select count() from slice where name = 'run'") == runs_left


@pytest.mark.parametrize("overlap", [False, True])
def test_a_real_run(ui: Perfetto, tmp_path: Path, overlap: bool) -> None:
    """The embedded model over three stages, a prompt of several chunks, the overlap flipped on the way."""
    with Engine.open(stages=3, threads=1, chunk=64, overlap=overlap) as engine:
        session = engine.session()
        prompt = engine.tokens_of("It was a cold night. " * 40)
        list(session.generate(prompt, max_tokens=20, ignore_eos=True))
        engine.switches.overlap = not overlap  # between two texts: within one it may have ended already
        windows = session.stats()["windows"]
        list(session.generate([*prompt, 1], max_tokens=20, ignore_eos=True))
        events = engine.events()
        stats = session.stats()
        write_trace(tmp_path / f"real-{overlap}.json.gz", events, trace_meta(engine))
    ui.load(tmp_path / f"real-{overlap}.json.gz")
    assert ui.errors() == []
    spans = np.isin(events["kind"], [int(kind) for kind in SLICES])
    on_threads = "track_id in (select id from thread_track)"
    assert one(ui, f"select count() from slice where {on_threads}") == np.count_nonzero(spans)
    assert one(ui, "select count() from slice where name = 'window'") == windows + stats["windows"]
    n_chunks = np.count_nonzero((events["kind"] == Kind.prefill_chunk) & (events["stage"] == 0))
    assert n_chunks > 1
    assert one(ui, "select count() from flow") == 2 * (windows + stats["windows"] + n_chunks)
    assert one(ui, f"select count() from slice where name = 'overlap = {int(not overlap)}'") == 1


def test_a_real_run_of_guesses(ui: Perfetto, tmp_path: Path) -> None:
    """Three windows in flight on three stages; the embedded model, drafts dialled to come true often."""
    switches = {"pipeline_windows": 3, "draft": "replay:0.9", "overlap": True}
    with Engine.open(stages=3, threads=1, theta=0.0, **switches) as engine:
        session = engine.session()
        prompt = engine.tokens_of("It was a cold night.")
        replay = session.record_plain(prompt, max_tokens=120)
        engine.events()
        session.start(prompt, max_tokens=120, replay=replay)
        session.to_the_end()
        events, stats = engine.events(), session.stats()
        write_trace(tmp_path / "guesses.json.gz", events, trace_meta(engine))
    guesses = stats["guesses"]
    assert guesses["kept"] and guesses["rolled_back"]
    ui.load(tmp_path / "guesses.json.gz")
    assert ui.errors() == []
    fates = dict(ui.query(FATES))
    assert fates.get("rolled_back", 0) == guesses["rolled_back"]
    kept = fates.get("kept_after_fresh", 0) + fates.get("kept_after_kept", 0)
    assert kept == guesses["kept"] and fates["fresh"] == stats["windows_by_class"][0]
    assert one(ui, "select count() from slice where name = 'guess kept'") == guesses["kept"]
    assert one(ui, "select count() from slice where name = 'undo'") > 0
    ran = one(ui, "select count() from slice where name in ('run', 'run, rolled back')")
    assert ran == np.count_nonzero(events["kind"] == Kind.run)
