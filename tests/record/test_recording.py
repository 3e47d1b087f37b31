"""Recordings: what goes in comes out, up to wherever the file was cut; nothing in a file is believed."""

import itertools
import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.events import decode_run, make
from strata_tui.analysis.pipeline_log import PipelineLog
from strata_tui.analysis.view import View
from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, Events, Kind
from strata_tui.options import GREEDY
from strata_tui.paced import HandOffTimes
from strata_tui.placement import SharedCores
from strata_tui.record.compare import compare
from strata_tui.record.comparison_report import comparison_json, comparison_lines
from strata_tui.record.playback import Playback
from strata_tui.record.recorder import Recorder
from strata_tui.record.recording import Recording, read_recording
from strata_tui.record.table import write_table
from strata_tui.record.trace import write_trace

HEADER: dict[str, Any] = {
    "program": "strata-tui 0",
    "machine": {"model": "a processor", "cores": 2},
    "model": "m.gguf",
    "name": "M",
    "model_sha256": "ab" * 32,
    "arch": "llama",
    "n_layers": 8,
    "context": 512,
    "stages": [
        {"device": "cpu 1 thread", "first_layer": 0, "last_layer": 3},
        {"device": "cpu 1 thread", "first_layer": 4, "last_layer": 7},
    ],
    "emulated": False,
    "has_draft_layer": True,
    "pipeline_max": 2,
    "switches": {"overlap": True, "theta": 0.2, "draft": "mtp"},
    "unix_offset_ns": 1_700_000_000_000_000_000,
}


def record(path: Path, events: Events, parts: int = 5, header: dict[str, Any] = HEADER) -> Path:
    """One request with these events, flushed at each part."""
    recorder = Recorder(path, lambda: header, piece=lambda token: f"w{token} ")
    recorder.begin(5, [1, 2, 3], "a prompt", GREEDY, 64)
    for i, some in enumerate(np.array_split(events, parts)):
        recorder.take(some)
        recorder.wrote(100 + i, [i], f"piece {i} ")
        if i == parts - 2:  # the end of a request writes what has been gathered
            recorder.end(100 + i, "length", "", {})
            recorder.begin(200, [4], "another", GREEDY)
    recorder.end(300, "stop", "", {})
    recorder.close(3)
    assert not recorder.error
    return path


def frames(data: bytes) -> list[int]:
    """Where each frame begins; by hand, from the format."""
    at, found = 12, []
    while at < len(data):
        found.append(at)
        at += 16 + struct.unpack_from("<I", data, at + 4)[0]
    assert at == len(data)
    return [*found, at]


def frame(kind: int, payload: bytes) -> bytes:
    body = zlib.compress(payload)
    sizes = struct.pack("<BxxxII", kind, len(body), len(payload))
    return sizes + struct.pack("<I", zlib.crc32(sizes + body)) + body


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    events = decode_run(200, stages=2, overlap=True)
    recording = read_recording(record(tmp_path / "a.strata", events))
    assert np.array_equal(recording.events, events)
    assert recording.note == "" and recording.dropped_events == 3
    assert (recording.model, recording.model_sha256, recording.arch) == ("m.gguf", "ab" * 32, "llama")
    assert recording.switches == {"overlap": True, "theta": 0.2, "draft": "mtp"}
    assert recording.machine == "a processor, 2 cores"
    first, second = recording.requests
    assert (first.prompt_tokens, first.prompt, first.max_tokens) == ((1, 2, 3), "a prompt", 64)
    assert first.tokens == [0, 1, 2, 3] and second.tokens == [4]
    assert "".join(piece.text for piece in first.pieces) == "piece 0 piece 1 piece 2 piece 3 "
    assert (first.finish, second.finish, second.end_ns) == ("length", "stop", 300)
    named = events[np.isin(events["kind"], [Kind.token, Kind.draft_token])]["a"]
    assert recording.vocabulary == {token: f"w{token} " for token in np.unique(named).tolist()}


def test_extreme_values_and_no_events(tmp_path: Path) -> None:
    most = (1 << 62) - 1
    window = [0xFFFFFFFF, 0, 9]
    events = make(Kind.run, [most, 0, 5], [0, most, 7], window=window, stage=1, rows=65535, a=-(2**31))
    assert np.array_equal(read_recording(record(tmp_path / "a.strata", events)).events, events)
    nothing = read_recording(record(tmp_path / "b.strata", np.empty(0, EVENT_DTYPE)))
    assert len(nothing.events) == 0 and len(nothing.requests) == 2
    write_trace(tmp_path / "b.json", nothing.events, nothing.trace_meta())
    write_table(tmp_path / "b.csv", nothing)
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "start_ns,dur_ns,kind,stage,window,rows,a,b,means,emulated"
    ]


def test_cut_off_anywhere_it_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """Fifty random bytes, and every edge of a frame; the reference counts whole frames by hand."""
    events = decode_run(400, stages=2)
    data = record(tmp_path / "a.strata", events, parts=9).read_bytes()
    edges = frames(data)
    counts = []  # events in the first n frames
    for begin in edges[:-1]:
        size = struct.unpack_from("<I", data, begin + 4)[0]
        is_events = data[begin] == 3
        payload = zlib.decompress(data[begin + 16 : begin + 16 + size])
        counts.append(struct.unpack_from("<I", payload)[0] if is_events else 0)
    draw = random.Random(4)
    cuts = [draw.randrange(len(data)) for _ in range(50)] + [e + d for e in edges for d in (-1, 0, 1)]
    cut = tmp_path / "cut.strata"
    lengths = set()
    for at in cuts:
        at = min(at, len(data))
        cut.write_bytes(data[:at])
        whole = sum(end <= at for end in edges[1:])
        if not whole:
            with pytest.raises(BadInput, match=r"before the end of its header|expected a recording"):
                read_recording(cut)
            continue
        recording = read_recording(cut)
        n = sum(counts[:whole])
        assert np.array_equal(recording.events, events[:n])
        if at == len(data):
            assert recording.note == ""
        elif at in edges:
            assert "was not closed" in recording.note
        else:
            assert (
                f"cut off or damaged at byte {edges[whole]:,}" in recording.note
                and "\n" not in recording.note
            )
        View(2).take(recording.events)
        lengths.add(n)
    assert len(lengths) > 2, "cuts fell before, between and behind frames of events"


def test_every_second_something_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that nobody closed, as a killed process leaves it."""
    import time

    monkeypatch.setattr("strata_tui.record.recorder.FLUSH_S", 0.02)
    recorder = Recorder(tmp_path / "a.strata", lambda: HEADER)
    events = decode_run(50)
    recorder.take(events)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if (tmp_path / "a.strata").stat().st_size > 2000:
            break
        time.sleep(0.01)
    recording = read_recording(tmp_path / "a.strata")
    assert np.array_equal(recording.events, events)
    assert "was not closed" in recording.note
    recorder.close()


def test_unknown_kinds_of_frames_and_events_are_passed_over(tmp_path: Path) -> None:
    events = decode_run(20)
    later = make(Kind.run, 7, 1, stage=0)
    later["kind"] = 200
    path = record(tmp_path / "a.strata", np.concatenate([events, later]))
    data = path.read_bytes()
    second = frames(data)[1]
    path.write_bytes(data[:second] + frame(77, b"from later on") + data[second:])
    assert np.array_equal(read_recording(path).events, events)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda d: b"GGUF" + d[4:], "expected a recording"),
        (lambda d: b"", "expected a recording"),
        (lambda d: d[:8] + b"\x02" + d[9:], "expected version 1.x, got 2.0"),
        (lambda d: d[:12] + frame(3, b"\0\0\0\0") + d[12:], "should be the header"),
        (lambda d: d + frame(1, json.dumps(HEADER).encode()), "second header"),
        (lambda d: d + struct.pack("<BxxxIII", 3, 1 << 31, 4, 0), "should hold 33,554,432 bytes at most"),
        (lambda d: d + struct.pack("<BxxxIII", 3, 4, 1 << 31, 0), "should hold 33,554,432 bytes at most"),
        (lambda d: d + frame(3, struct.pack("<I", 1 << 31)), "should hold 2,147,483,648 events"),
        (lambda d: d + frame(3, b""), "should hold 0 events"),
        (lambda d: d + frame(2, b"[" * 100_000), "should hold JSON"),
        (lambda d: d + frame(2, b'{"at_ns": NaN}'), "should hold JSON"),
        (lambda d: d + frame(2, b"[]"), "should hold a JSON object, holds list"),
        (lambda d: d + frame(2, b'{"at_ns": -1}'), "at_ns: expected a whole number from 0"),
        (lambda d: d + frame(2, b'{"at_ns": 1, "prompt_tokens": [true]}'), "expected token ids"),
        (lambda d: d + frame(4, b'{"pieces": [[1]]}'), "1: expected a value, got none"),
        (lambda d: d + frame(6, b'{"x": "y"}'), "vocabulary: expected token ids, got 'x'"),
    ],
)
def test_what_no_recorder_wrote_is_refused_in_one_line(tmp_path: Path, change: Any, refusal: str) -> None:
    path = record(tmp_path / "a.strata", decode_run(5))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadInput) as refused:
        read_recording(path)
    assert refusal in str(refused.value) and "\n" not in str(refused.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A frame that says 10 bytes and would unpack to 300 MB."""
    import tracemalloc

    body = zlib.compress(bytes(300_000_000))
    sizes = struct.pack("<BxxxII", 3, len(body), 10)
    path = record(tmp_path / "a.strata", decode_run(5))
    bomb = sizes + struct.pack("<I", zlib.crc32(sizes + body)) + body
    path.write_bytes(path.read_bytes() + bomb)
    tracemalloc.start()
    with pytest.raises(BadInput, match="should unpack to 10 bytes"):
        read_recording(path)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


STAGE = HEADER["stages"][0]


def test_which_lanes_shared_cores(tmp_path: Path) -> None:
    """Predictions of a replay rest on it; a lane that there is not has no program."""

    def read(*cores: dict[str, Any]) -> tuple[SharedCores, ...]:
        header = {**HEADER, "shared_cores": list(cores)}
        return read_recording(record(tmp_path / "a.strata", decode_run(3), header=header)).shared_cores

    assert read() == ()
    assert read_recording(record(tmp_path / "b.strata", decode_run(3))).shared_cores == ()
    assert read(
        {"lanes": [1, 0], "at_once": 1},
        {"lanes": [DRAFT_LANE, 77], "at_once": 2},
        {"lanes": [9], "at_once": 3},
    ) == (SharedCores((0, 1), 1), SharedCores((DRAFT_LANE,), 2))


def test_the_hand_offs_of_an_emulated_rig(tmp_path: Path) -> None:
    def read(**hand_off_ms: float) -> list[HandOffTimes | None]:
        first, second = HEADER["stages"]
        header = {**HEADER, "stages": [first, {**second, "hand_off_ms": hand_off_ms}]}
        path = record(tmp_path / "a.strata", decode_run(3), header=header)
        return [stage.hand_off_ms for stage in read_recording(path).stages]

    known = HandOffTimes(serial=9.2, overlapped=0.2, polled=0.4)
    assert read(serial=9.2, overlapped=0.2, polled=0.4, teleported=1.0) == [None, known]
    assert read(serial=9.2, overlapped=0.2) == [None, None], "a time that is missing is not 0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stages", []),
        ("stages", [{"device": "cpu", "first_layer": 0, "last_layer": 1}] * 33),
        ("stages", {}),
        ("stages", [[]]),
        ("stages", [{**STAGE, "hand_off_ms": {"serial": -1}}]),
        ("stages", [{**STAGE, "hand_off_ms": {"serial": 1e9}}]),
        ("stages", [{**STAGE, "hand_off_ms": [1]}]),
        ("shared_cores", 2),
        ("shared_cores", [{"lanes": [0, -1], "at_once": 1}]),
        ("shared_cores", [{"lanes": "01", "at_once": 1}]),
        ("shared_cores", [{"lanes": [0], "at_once": 0}]),
        ("shared_cores", [{"at_once": 1}]),
        ("n_layers", -1),
        ("n_layers", "8"),
        ("emulated", 1),
        ("switches", []),
        ("switches_in_force", []),
        ("model", 7),
        ("unix_offset_ns", 1 << 80),
    ],
)
def test_a_header_that_cannot_be(tmp_path: Path, key: str, value: Any) -> None:
    path = record(tmp_path / "a.strata", decode_run(3), header={**HEADER, key: value})
    with pytest.raises(BadInput, match="expected"):
        read_recording(path)


def test_the_switches_in_force_are_those_that_count(tmp_path: Path) -> None:
    header = {**HEADER, "switches_in_force": {"overlap": False, "theta": 0.1}}
    recording = read_recording(record(tmp_path / "a.strata", decode_run(3), header=header))
    assert recording.switches == {"overlap": False, "theta": 0.1}
    assert recording.asked == HEADER["switches"]
    assert recording.trace_meta().switches == recording.switches
    assert Playback(recording).switches.in_force() == recording.switches
    older = {**HEADER, "has_draft_layer": False, "switches": {"draft": "mtp", "pipeline_windows": 9}}
    recording = read_recording(record(tmp_path / "b.strata", decode_run(3), header=older))
    assert recording.switches == {"draft": "lookup", "pipeline_windows": 2}, "two windows were allocated"


def test_switches_of_later_versions_and_control_characters(tmp_path: Path) -> None:
    header = {**HEADER, "switches": {"warp": 9, "theta": "nan", "overlap": 1}, "name": "a\x1b[2Jb\nc"}
    recording = read_recording(record(tmp_path / "a.strata", decode_run(3), header=header))
    assert recording.switches == {"overlap": True}
    assert recording.name == "a[2Jb c"


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("stage", 2, Kind.run),
        ("stage", 253, Kind.commit),
        ("start_ns", 1 << 63, Kind.run),
        ("dur_ns", (1 << 64) - 1, Kind.run),
        ("rows", 65, Kind.window),
        ("b", 5, Kind.window),
        ("b", -1, Kind.guess_kept),
        ("a", 5, Kind.verdict),
        ("b", 1000, Kind.verdict),
    ],
)
def test_events_that_cannot_be(tmp_path: Path, field: str, value: int, kind: Kind) -> None:
    events = decode_run(5)
    odd = make(kind, 7, 1, stage=0, rows=4, a=1, b=1)
    odd[field] = value
    path = record(tmp_path / "a.strata", np.concatenate([events, odd]))
    with pytest.raises(BadInput, match=f"{field} of a {kind.name} event: expected"):
        read_recording(path)


def use(recording: Recording, folder: Path) -> None:
    """Everything that is done with one."""
    from strata_tui.analysis.lane_state import LaneState

    view = View(len(recording.stages))
    for some in np.array_split(recording.events, 3):
        view.take(some)
    if len(recording.events):
        end = int((recording.events["start_ns"] + recording.events["dur_ns"]).max())
        view.rates(end)
        view.picture(max(0, end - 10**9), end + 1, 80, end, LaneState.PAUSED)
        view.windows_before(end, 64)
    for request in recording.requests:
        assert all(type(token) is int for token in request.tokens)
    write_trace(folder / "fuzz.json", recording.events, recording.trace_meta())
    json.loads((folder / "fuzz.json").read_bytes())
    write_table(folder / "fuzz.csv", recording)
    PipelineLog().take(recording.events)
    try:
        comparison = compare(recording, recording, force=True)
    except BadInput as error:
        assert "got none" in str(error)
    else:
        json.dumps(comparison_json(comparison), allow_nan=False)
        comparison_lines(comparison)
    tape = Playback(recording, speed=1e9, clock=itertools.count(0, 10**9).__next__)
    while not tape.ended:
        tape.events()


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled; half of the time in a payload, with its sums set right again."""
    if draw.random() < 0.5:
        edges = frames(data)
        i = draw.randrange(len(edges) - 1)
        begin, end = edges[i], edges[i + 1]
        payload = bytearray(zlib.decompress(data[begin + 16 : end]))
        for _ in range(draw.randrange(1, 6)):
            if payload:
                payload[draw.randrange(len(payload))] = draw.choice([0, 1, 34, 44, 91, 127, 128, 255])
        if draw.random() < 0.2:
            del payload[draw.randrange(len(payload) + 1) :]
        return data[:begin] + frame(data[begin], bytes(payload)) + data[end:]
    out = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(out))
        what = draw.randrange(4)
        if what == 0:
            out[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            del out[at : at + draw.randrange(1, 40)]
        elif what == 2:
            out[at:at] = out[at : at + draw.randrange(1, 400)]
        else:
            out[at : at + 4] = bytes(draw.randrange(256) for _ in range(4))
        if not out:
            break
    return bytes(out)


def test_three_thousand_mutations_give_a_prefix_or_a_refusal(tmp_path: Path) -> None:
    data = record(tmp_path / "a.strata", decode_run(12, stages=2), parts=3).read_bytes()
    draw = random.Random(11)
    path = tmp_path / "fuzz.strata"
    refused = read = 0
    for _ in range(3000):
        path.write_bytes(mutated(data, draw))
        try:
            recording = read_recording(path)
        except BadInput as error:
            assert "\n" not in str(error)
            refused += 1
            continue
        read += 1
        if read % 12 == 0:
            use(recording, tmp_path)
    assert refused > 300 and read > 300


def test_a_recorder_that_cannot_write_says_so_and_stops_nothing(tmp_path: Path) -> None:
    def no_header() -> dict[str, Any]:
        raise OSError("the model has gone")

    recorder = Recorder(tmp_path / "a.strata", no_header)
    recorder._thread.join(5)
    recorder.take(decode_run(3))
    recorder.close()
    assert "the model has gone" in recorder.error
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "a.strata", lambda: HEADER, new=True)


def test_every_line_of_an_emulated_table_says_so(tmp_path: Path) -> None:
    path = record(tmp_path / "a.strata", decode_run(3), header={**HEADER, "emulated": True})
    write_table(tmp_path / "a.csv", read_recording(path))
    head, *lines = (tmp_path / "a.csv").read_text().splitlines()
    assert head.endswith(",emulated") and lines and all(line.endswith(",1") for line in lines)


def test_the_table_has_a_line_an_event_with_names(tmp_path: Path) -> None:
    import csv

    events = decode_run(10, stages=2)
    write_table(tmp_path / "a.csv", read_recording(record(tmp_path / "a.strata", events)))
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(events)
    for row, event in zip(rows, events, strict=True):
        assert int(row["start_ns"]) == int(event["start_ns"]) - int(events["start_ns"][0])
        assert row["kind"] == Kind(event["kind"]).name
        assert row["stage"] == {254: "draft", 255: "host"}.get(int(event["stage"]), str(event["stage"]))
        assert [int(row[name]) for name in ("dur_ns", "window", "rows", "a", "b")] == [
            int(event[name]) for name in ("dur_ns", "window", "rows", "a", "b")
        ]
    assert {row["emulated"] for row in rows} == {"0"}
    means = {row["kind"]: row["means"] for row in rows}
    token = events[events["kind"] == Kind.token][-1]["a"]
    assert means["token"] == json.dumps(f"w{token} ")
    assert (means["toggle"], means["window"], means["request_end"], means["run"]) == (
        "overlap=1",
        "fresh",
        "length",
        "",
    )
