"""A run as a Chrome Trace Event file, which opens in Perfetto.

What Perfetto asks for, and what this therefore does: times are microseconds from the trace's start, the
nanoseconds as three decimals; slices that overlap on one track are dropped without a word, so that one that
would goes to a further track; no track has a process's number; a hand-off's arrow starts inside the writer's
slice and ends inside the reader's; a window's begin and end share an id that no other window has.

Records are written kind by kind, not by time: Perfetto sorts them. A trace of a ring that has let its oldest
events go begins in the middle of windows; these are drawn from the first event that is left of them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from strata_tui.events import (
    DRAFT_LANE,
    DRAFTS,
    HOST_LANE,
    IN_MILLIONTHS,
    Events,
    Finish,
    Kind,
    MissCause,
    SwitchId,
)
from strata_tui.files import whole_file
from strata_tui.record.tracks import Ints, place
from strata_tui.record.windows import windows_of
from strata_tui.terminal_text import layers

if TYPE_CHECKING:
    from strata_tui.engine import Engine

MAX_EVENTS = 4_000_000  # the newest are kept: more would not load
RECORDS_A_WRITE = 8192
CONTROL_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
FIRST_TID = 1000  # above every pid
TRACK_BITS = 32  # of a thread's code: (pid, lane), track
RATE_SPAN_NS = 1_000_000_000  # that the counter "decode rate" looks back
RATE_STEP_NS = 20_000_000  # at most one point of it


@dataclass(frozen=True)
class TraceMeta:
    """What stands in the file beside the events.

    Attributes:
        stages: device, first and last layer of each.
        unix_offset_ns: what added to an event's time gives the wall clock; None = not known.
        piece: text of a token, for the windows' arguments; None = ids only.
    """

    model: str
    model_sha256: str
    arch: str
    stages: tuple[tuple[str, int, int], ...]
    switches: Mapping[str, Any] = field(default_factory=dict)
    emulated: bool = False
    dropped_events: int = 0
    unix_offset_ns: int | None = None
    piece: Callable[[int], str] | None = None


def trace_meta(engine: Engine) -> TraceMeta:
    """The meta of an engine's events."""
    import time

    from strata_tui.errors import BadInput

    try:
        piece = engine.tokenizer.piece
    except BadInput:  # a file without a usable tokenizer runs on ids
        piece = None
    return TraceMeta(
        model=engine.model.file_name,
        model_sha256=engine.model.sha256,
        arch=engine.model.architecture,
        stages=tuple((s.device, s.first_layer, s.last_layer) for s in engine.stages),
        switches=engine.switches.in_force(),
        emulated=engine.emulated,
        dropped_events=engine.dropped_events,
        unix_offset_ns=time.time_ns() - engine.now_ns(),
        piece=piece,
    )


def write_trace(path: Path | str, events: Events, meta: TraceMeta) -> None:
    """Write a trace; `.gz` at the end of the name compresses it. The file appears whole or not at all.

    Args:
        events: [n] in any order; of kinds not known here nothing is drawn.

    Raises:
        OSError: it can't be written.
    """
    path = Path(path)
    with whole_file(path) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, filename="", mtime=0) as packed:
                _write(packed, events, meta)
        else:
            _write(raw, events, meta)


def _write(file: IO[bytes] | gzip.GzipFile, events: Events, meta: TraceMeta) -> None:
    trace = _Trace(events, meta)
    about = json.dumps(trace.about(), default=str)
    file.write(f'{{"displayTimeUnit":"ms","otherData":{about},"traceEvents":[\n'.encode())
    separator = b""
    for records in trace.records():
        if records:
            file.write(separator + ",\n".join(records).encode())
            separator = b",\n"
    file.write(b"\n]}\n")


@dataclass(frozen=True)
class _Slice:
    """How a span is drawn: its name, its lane within the process, its arguments and their fields.

    Perfetto colours slices by their names: what is lost, or ahead of its verdict, has a name of its own.
    """

    name: str
    lane: str
    arguments: tuple[tuple[str, str], ...] = ()


# A slice inside another comes after it.
SLICES = {
    Kind.run: _Slice("run", "run", (("rows", "rows"), ("position", "a"), ("prompt", "b"))),
    Kind.prefill_chunk: _Slice("prefill", "run", (("rows", "rows"), ("position", "a"))),
    Kind.publish: _Slice("publish", "publish", (("rows", "rows"),)),
    Kind.wait_ready: _Slice("wait for hand-off", "wait"),
    Kind.commit: _Slice("commit", "commit", (("rows", "rows"), ("before_verdict", "b"))),
    Kind.undo: _Slice("undo", "commit", (("rows", "rows"),)),
    Kind.snapshot: _Slice("snapshot", "commit"),
    Kind.stage_inputs: _Slice("stage inputs", "host", (("rows", "rows"),)),
    Kind.launch: _Slice("launch", "host", (("rows", "rows"), ("ahead", "a"))),
    Kind.sync: _Slice("sync", "host"),
    Kind.draft_step: _Slice("draft", "draft", (("step", "a"), ("token", "b"), ("caught_up", "rows"))),
    Kind.verdict: _Slice("verdict", "verdict", (("rows", "rows"), ("accepted", "a"), ("emitted", "b"))),
    Kind.throttle: _Slice("throttled", "held back"),
    Kind.paused: _Slice("paused", "held back"),
}
LOST_RUN = "run, rolled back"
COMMIT_AHEAD = "commit ahead of the verdict"
MARKS = {
    Kind.verdict: "verdict",
    Kind.guess_gated: "guess gated",
    Kind.guess_launched: "guess launched",
    Kind.guess_kept: "guess kept",
    Kind.guess_rolled_back: "guess rolled back",
    Kind.guess_late: "guess late",
    Kind.guess_ended: "guess ended",
    Kind.error: "error",
}
LANES = ("run", "publish", "wait", "commit", "host", "draft", "verdict", "held back")
# Always drawn in the host's process, whichever stage they concern.
OF_HOST = (Kind.verdict, Kind.throttle, Kind.paused)


class _Trace:
    """The records of one trace, in blocks.

    Attributes (all [n], by start):
        start: nanoseconds since the first event.
        end: likewise.
        pid: process, the stage + 1; draft layer and host as stages 254 and 255.
        tid: thread of a span, 0 for a moment.
    """

    def __init__(self, events: Events, meta: TraceMeta) -> None:
        events = events[np.isin(events["kind"], [int(kind) for kind in Kind])][-MAX_EVENTS:]
        self.meta = meta
        self.events = events = events[np.argsort(events["start_ns"], kind="stable")]
        self.first_ns = int(events["start_ns"][0]) if len(events) else 0
        self.start: Ints = (events["start_ns"] - np.uint64(self.first_ns)).astype(np.int64)
        self.end: Ints = self.start + events["dur_ns"].astype(np.int64)
        self.pid: Ints = events["stage"].astype(np.int64) + 1
        self.pid[self._at(*OF_HOST)] = HOST_LANE + 1
        self.pid[self._at(Kind.draft_step)] = DRAFT_LANE + 1
        self.fate_of_run = self._fates_of_runs()
        self._name_threads()

    def about(self) -> dict[str, Any]:
        """What stands beside the records."""
        meta = self.meta
        about = {
            "model": meta.model,
            "model_sha256": meta.model_sha256,
            "arch": meta.arch,
            "stages": [f"{device}, {layers(first, last)}" for device, first, last in meta.stages],
            "switches": dict(meta.switches),
            "emulated": meta.emulated,
            "events": len(self.events),
            "dropped_events": meta.dropped_events,
        }
        if meta.unix_offset_ns is not None:
            start = datetime.fromtimestamp((self.first_ns + meta.unix_offset_ns) / 1e9, UTC)
            about["start"] = start.isoformat(timespec="milliseconds")
        return about

    def records(self) -> Iterator[list[str]]:
        """Every record, in the order that Perfetto needs among those of one moment."""
        yield self._names()
        for kind, drawn in SLICES.items():
            yield from self._slices(kind, drawn)
        yield from self._hand_offs()
        yield from self._windows()
        yield from self._rate()
        yield from self._moments()

    def _at(self, *kinds: Kind) -> Ints:
        return np.flatnonzero(np.isin(self.events["kind"], [int(kind) for kind in kinds]))

    def _name_threads(self) -> None:
        """Spread the spans over threads: one a lane, more where they overlap; `publish` inside its run."""
        lane_of = np.zeros(256, np.int64)
        for kind, drawn in SLICES.items():
            lane_of[kind] = LANES.index(drawn.lane)
        inner, outer = self._inside_its_run()
        outside = np.isin(self.events["kind"], [int(kind) for kind in SLICES])
        outside[inner] = False
        spans = np.flatnonzero(outside)
        lane = self.pid[spans] * len(LANES) + lane_of[self.events["kind"][spans]]
        track = place(lane, self.start[spans], self.end[spans])
        threads, which = np.unique(lane << TRACK_BITS | track, return_inverse=True)
        self.threads: list[int] = threads.tolist()
        self.tid: Ints = np.zeros(len(self.events), np.int64)
        self.tid[spans] = FIRST_TID + which
        self.tid[inner] = self.tid[outer]

    def _fates_of_runs(self) -> npt.NDArray[Any]:
        """What became of the window of each run, [n runs]."""
        self.windows = windows_of(self.events, self.start, self.end)
        of_run = self.events["window"][self._at(Kind.run)].astype(np.int64)
        known = np.isin(of_run, self.windows.ids)
        fates = np.full(len(of_run), "in_flight", object)
        fates[known] = self.windows.fate[np.searchsorted(self.windows.ids, of_run[known])]
        return fates

    def _inside_its_run(self) -> tuple[Ints, Ints]:
        """Publishes that lie inside the run of their stage and window, and these runs."""
        writers = self._first_of(self._at(Kind.run, Kind.prefill_chunk))
        publishes = self._first_of(self._at(Kind.publish))
        inner, outer = _matching(publishes, self._key(publishes), writers, self._key(writers))
        inside = (self.start[outer] <= self.start[inner]) & (self.end[inner] <= self.end[outer])
        return inner[inside], outer[inside]

    def _key(self, at: Ints, stages_on: int = 0) -> Ints:
        """One number for (window, stage + stages_on)."""
        window: Ints = self.events["window"][at].astype(np.int64)
        stage: Ints = self.events["stage"][at].astype(np.int64)
        return window * 512 + stage + stages_on

    def _first_of(self, at: Ints) -> Ints:
        """Of events of one (window, stage) only the first: a healthy run has no second."""
        return at[np.unique(self._key(at), return_index=True)[1]]

    def _names(self) -> list[str]:
        """Processes and threads by name, stages first."""
        named = {HOST_LANE + 1: "host"}
        for stage, (device, first, last) in enumerate(self.meta.stages):
            named[stage + 1] = f"stage {stage}: {device}, {layers(first, last)}"
        for thread in self.threads:
            pid = (thread >> TRACK_BITS) // len(LANES)
            named.setdefault(pid, "draft layer" if pid == DRAFT_LANE + 1 else f"stage {pid - 1}")
        records = []
        emulated = " (emulated)" if self.meta.emulated else ""
        for pid, name in sorted(named.items()):
            records.append(_meta("process_name", name + emulated, pid=pid))
            records.append(_meta("process_sort_index", pid, pid=pid))
        for i, thread in enumerate(self.threads):
            code, track = thread >> TRACK_BITS, thread & (1 << TRACK_BITS) - 1
            lane = LANES[code % len(LANES)]
            ids = {"pid": code // len(LANES), "tid": FIRST_TID + i}
            records.append(_meta("thread_name", f"{lane} {track + 1}" if track else lane, **ids))
            records.append(_meta("thread_sort_index", i, **ids))
        return records

    def _slices(self, kind: Kind, drawn: _Slice) -> Iterator[list[str]]:
        at = self._at(kind)
        arguments = "".join(f',"{label}":%d' for label, _ in drawn.arguments)
        name = np.full(len(at), drawn.name, object)
        colour = np.full(len(at), "", object)
        fate = np.full(len(at), "", object)
        if kind == Kind.run:
            lost = self.fate_of_run == "rolled_back"
            name[lost], colour[lost] = LOST_RUN, ',"cname":"terrible"'
            fate = np.array([f',"fate":"{name}"' for name in self.fate_of_run], object)
        elif kind == Kind.commit:
            name[self.events["b"][at] == 1] = COMMIT_AHEAD
        yield from _lines(
            f'{{"ph":"X","pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d,"name":"%s"%s,'
            f'"args":{{"window":%d%s{arguments}}}}}',
            self.pid[at],
            self.tid[at],
            *_us(self.start[at]),
            *_us(self.end[at] - self.start[at]),
            name,
            colour,
            self.events["window"][at],
            fate,
            *(self.events[source][at] for _, source in drawn.arguments),
        )

    def _hand_offs(self) -> Iterator[list[str]]:
        """An arrow from where a stage publishes a window to where the next one begins to run it."""
        writers = self._first_of(self._at(Kind.publish))
        readers = self._first_of(self._at(Kind.run, Kind.prefill_chunk))
        writer, reader = _matching(writers, self._key(writers, stages_on=1), readers, self._key(readers))
        forward = self.start[writer] <= self.start[reader]
        writer, reader = writer[forward], reader[forward]
        ids = np.arange(1, len(writer) + 1)
        for phase, at in (('"ph":"s"', writer), ('"ph":"f","bp":"e"', reader)):
            yield from _lines(
                f'{{{phase},"cat":"hand-off","name":"hand-off","id":%d,"pid":%d,"tid":%d,"ts":%d.%03d}}',
                ids,
                self.pid[at],
                self.tid[at],
                *_us(self.start[at]),
            )

    def _windows(self) -> Iterator[list[str]]:
        """Async slices, from when a window was built to its verdict or to what became of a guess."""
        windows = self.windows
        before, after = np.full((2, len(windows.ids)), "", object)  # arguments at the begin and at the end
        known = windows.built >= 0
        built = self.events[windows.built[known]]
        is_guessed = (self.events["kind"] == Kind.draft_token) & (self.events["rows"] == 0)
        is_draft = (self.events["kind"] == Kind.draft_token) & ~is_guessed
        drafts = self._text(is_draft, " | ", windows.ids[known])
        n_drafts = np.maximum(built["rows"].astype(np.int64) - 1, 0)
        before[known] = _texts(',"position":%d,"drafted":%d,"drafts":"%s"', built["a"], n_drafts, drafts)
        known = windows.guess >= 0
        guess = self.events[windows.guess[known]]
        estimate = np.divmod(np.maximum(guess["a"].astype(np.int64), 0), 1_000_000)
        bonus = self._text(is_guessed, "", windows.ids[known])
        arguments = ',"guessed_row_0":"%s","estimate":%d.%06d,"forced_to_miss":%d'
        before[known] += _texts(arguments, bonus, *estimate, guess["b"])
        known = windows.verdict >= 0
        verdict = self.events[windows.verdict[known]]
        text = self._text(self.events["kind"] == Kind.token, "", windows.ids[known])
        after[known] = _texts(',"accepted":%d,"emitted":%d,"text":"%s"', verdict["a"], verdict["b"], text)

        of = f'"cat":"window","name":"window","pid":{HOST_LANE + 1},"id2":{{"local":"0x%x"}},"ts":%d.%03d'
        ids, begin, end = windows.ids, _us(windows.begin_ns), _us(windows.end_ns)
        yield from _lines(f'{{"ph":"b",{of},"args":{{"window":%d%s}}}}', ids, *begin, ids, before)
        yield from _lines(f'{{"ph":"e",{of},"args":{{"fate":"%s"%s}}}}', ids, *end, windows.fate, after)

    def _text(self, of: npt.NDArray[np.bool_], between: str, ids: Ints) -> npt.NDArray[Any]:
        """[len(ids)] the text of each window's tokens among these events, fit to stand between quotes."""
        mine = self.events[of]
        pieces: dict[int, str] = {}
        texts: dict[int, list[str]] = {}
        for window, token in zip(mine["window"].tolist(), mine["a"].tolist(), strict=True):
            if (piece := pieces.get(token)) is None:
                piece = pieces[token] = _quoted(self.meta.piece(token)) if self.meta.piece else f"{token} "
            texts.setdefault(window, []).append(piece)
        return np.array([between.join(texts.get(window, ())) for window in ids.tolist()], object)

    def _rate(self) -> Iterator[list[str]]:
        """Tokens per second at verdicts, over those of the last second of the same request; 0 at its end."""
        verdicts = self._at(Kind.verdict)
        verdicts = verdicts[np.argsort(self.end[verdicts], kind="stable")]
        time = self.end[verdicts]
        emitted = np.cumsum(np.maximum(self.events["b"][verdicts].astype(np.int64), 0))
        begins = self.start[self._at(Kind.request_begin)]
        since = np.maximum(time - RATE_SPAN_NS, np.concatenate([[0], begins])[np.searchsorted(begins, time)])
        first = np.searchsorted(time, since)
        newest = np.flatnonzero(np.diff(time // RATE_STEP_NS, append=-1))
        newest = newest[time[newest] > time[first[newest]]]
        span_ns = time[newest] - time[first[newest]]
        tenths = (emitted[newest] - emitted[first[newest]]) * 10_000_000_000 // span_ns
        ends = self.start[self._at(Kind.request_end)]
        time, tenths = np.concatenate([time[newest], ends]), np.concatenate([tenths, np.zeros_like(ends)])
        yield from _lines(
            f'{{"ph":"C","pid":{HOST_LANE + 1},"name":"decode rate","ts":%d.%03d,"args":{{"tok/s":%d.%d}}}}',
            *_us(time),
            *np.divmod(tenths, 10),
        )

    def _moments(self) -> Iterator[list[str]]:
        """Marks across a process: verdicts, roll-backs and errors; switches and requests."""
        mark = '{"ph":"i","s":"p","pid":%d,"ts":%d.%03d,"name":"%s","args":{"window":%d}}'
        for kind, name in MARKS.items():
            at = self._at(kind)
            window = self.events["window"][at]
            yield from _lines(mark, self.pid[at], *_us(self.end[at]), np.full(len(at), name, object), window)
        at = self._at(Kind.toggle, Kind.request_begin, Kind.request_end, Kind.miss)
        named = [_moment(*row) for row in self.events[["kind", "window", "a", "b"]][at].tolist()]
        yield from _lines(
            f'{{"ph":"i","s":"p","pid":{HOST_LANE + 1},"ts":%d.%03d,"name":"%s","args":%s}}',
            *_us(self.start[at]),
            np.array([name for name, _ in named], object),
            np.array([json.dumps(arguments) for _, arguments in named], object),
        )


def _moment(kind: int, window: int, a: int, b: int) -> tuple[str, dict[str, int]]:
    """Name and arguments of a mark that has more to tell than its window."""
    if kind == Kind.miss:
        cause = _member(MissCause, a).replace("_", " ")
        return f"miss: {cause}", {"window": window, "second_choice_right": b}
    if kind == Kind.toggle:
        value = f"{b / 1e6:g}" if a in IN_MILLIONTHS else str(b)
        if a == SwitchId.draft and 0 <= b < len(DRAFTS):
            value = DRAFTS[b]
        return f"{_member(SwitchId, a)} = {value}", {"window": window}
    if kind == Kind.request_begin:
        return f"request {window}", {"prompt_tokens": a, "cached_tokens": b}
    return f"request {window}: {_member(Finish, a)}", {"tokens": b}


def _member(of: type[IntEnum], number: int) -> str:
    """Its name; a number that is not known (yet) stays one."""
    return of(number).name if number in set(of) else str(number)


def _quoted(text: str) -> str:
    """Text as it stands between JSON's quotes: ASCII; control characters and lone surrogates replaced."""
    return json.dumps(text.encode("utf-8", "replace").decode().translate(CONTROL_PICTURES))[1:-1]


def _matching(left: Ints, left_keys: Ints, right: Ints, right_keys: Ints) -> tuple[Ints, Ints]:
    """The pairs of left and right with the same key; keys are unique on each side."""
    _, i, j = np.intersect1d(left_keys, right_keys, assume_unique=True, return_indices=True)
    return left[i], right[j]


def _us(ns: Ints) -> tuple[Ints, Ints]:
    """Microseconds and the three digits behind them: no float in between."""
    micro, nano = np.divmod(ns, 1000)
    return micro, nano


def _texts(template: str, *columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[n] the template filled in with each row of the columns."""
    return np.array([template % row for row in zip(*(c.tolist() for c in columns), strict=True)], object)


def _lines(template: str, *columns: npt.NDArray[Any]) -> Iterator[list[str]]:
    """The template filled in with each row of the columns, in blocks."""
    for at in range(0, len(columns[0]), RECORDS_A_WRITE):
        rows = zip(*(column[at : at + RECORDS_A_WRITE].tolist() for column in columns), strict=True)
        yield [template % row for row in rows]


def _meta(name: str, value: str | int, **thread: int) -> str:
    """A record that names or orders a process or thread."""
    key = "sort_index" if name.endswith("sort_index") else "name"
    return json.dumps({"ph": "M", "name": name, **thread, "args": {key: value}})
