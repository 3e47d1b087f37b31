"""A run as a Chrome Trace Event file, which opens in Perfetto.

What Perfetto asks for, and what this therefore does: times are microseconds from the trace's start with the nanoseconds
as three decimals; slices on one track nest or follow one another, never cross (crossing ones are dropped without a
word), so a slice that would cross goes to a further track; a hand-off's arrow starts inside the writer's slice and ends
in the reader's.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strata_tui.events import (
    DRAFT_LANE,
    IN_MILLIONTHS,
    Events,
    Finish,
    Kind,
    SwitchId,
    WindowFate,
)

if TYPE_CHECKING:
    from strata_tui.engine import Engine

RATE_BIN_NS = 100_000_000  # of the counter "decode rate"
MAX_EVENTS = 4_000_000  # newer ones are kept: more would not load


@dataclass(frozen=True)
class TraceMeta:
    """What stands in the file beside the events.

    Attributes:
        stages: device, first and last layer of each.
        piece: text of a token, for windows' arguments; None = ids only.
    """

    model: str
    model_sha256: str
    arch: str
    stages: tuple[tuple[str, int, int], ...]
    switches: dict[str, Any] = field(default_factory=dict)
    emulated: bool = False
    dropped_events: int = 0
    piece: Callable[[int], str] | None = None


def trace_meta(engine: Engine) -> TraceMeta:
    """The meta of an engine's events."""
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
        piece=piece,
    )


def write_trace(path: Path | str, events: Events, meta: TraceMeta) -> None:
    """Write a trace; `.gz` at the end compresses it. The file appears whole or not at all.

    Raises:
        OSError: it can't be written.
    """
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=4, filename="", mtime=0) as packed:
                    _write(packed, events, meta)
            else:
                _write(raw, events, meta)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write(file: Any, events: Events, meta: TraceMeta) -> None:
    events = np.sort(events[-MAX_EVENTS:], order="start_ns", kind="stable")
    zero = int(events["start_ns"][0]) if len(events) else 0
    about = {
        "model": meta.model,
        "model_sha256": meta.model_sha256,
        "arch": meta.arch,
        "emulated": meta.emulated,
        "switches": meta.switches,
        "dropped_events": meta.dropped_events,
        "start_ns": zero,
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    text = io.TextIOWrapper(file, encoding="utf-8", write_through=False)
    text.write('{"displayTimeUnit":"ms","otherData":' + json.dumps(about) + ',"traceEvents":[\n')
    first = True
    batch: list[str] = []
    for line in _Trace(events, zero, meta).lines():
        batch.append(line)
        if len(batch) == 10_000:
            text.write(("" if first else ",\n") + ",\n".join(batch))
            first = False
            batch.clear()
    if batch:
        text.write(("" if first else ",\n") + ",\n".join(batch))
    text.write("\n]}\n")
    text.flush()
    text.detach()


def _us(ns: int) -> str:
    """Microseconds, the nanoseconds kept: no float in between."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class Tracks:
    """Puts slices on as few tracks as keep them nested or apart."""

    def __init__(self) -> None:
        self._open: list[list[int]] = []  # ends of the slices open on each track

    def place(self, start: int, end: int) -> int:
        """The track of a slice; slices come by their start, longer ones first."""
        for track, ends in enumerate(self._open):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                return track
        self._open.append([end])
        return len(self._open) - 1


# Lanes of a stage's process: name, kinds drawn there.
LANES: tuple[tuple[str, dict[Kind, str]], ...] = (
    ("run", {Kind.run: "run", Kind.prefill_chunk: "prefill", Kind.publish: "publish"}),
    ("wait", {Kind.wait_ready: "wait for hand-off"}),
    ("commit", {Kind.commit: "commit", Kind.undo: "undo", Kind.snapshot: "snapshot"}),
    ("host", {Kind.stage_inputs: "stage inputs", Kind.launch: "launch", Kind.sync: "sync"}),
)
HOST_SPANS = {Kind.verdict: "verdict", Kind.throttle: "throttled", Kind.paused: "paused"}
DRAFT_SPANS = {Kind.draft_step: "draft"}
HOST_PID = 1
TRACKS_A_LANE = 100  # tid = pid * 10,000 + lane * 100 + track: never equal to a pid


class _Trace:
    """The lines of one trace."""

    def __init__(self, events: Events, zero: int, meta: TraceMeta) -> None:
        self.events = events
        self.zero = zero
        self.meta = meta
        self.of_kind = {kind: events[events["kind"] == kind] for kind in Kind}
        self.run_tracks: dict[tuple[int, int], int] = {}  # (stage, window) -> tid of its run slice

    def lines(self) -> Iterator[str]:
        yield from self._process(HOST_PID, "host: control thread", 0)
        yield from self._spans(HOST_PID, 0, "host", self._select(HOST_SPANS), HOST_SPANS)
        for stage, (device, first, last) in enumerate(self.meta.stages):
            emulated = " (emulated)" if self.meta.emulated else ""
            layers = f"layers {first}-{last}" if last > first else f"layer {first}"
            yield from self._process(self._pid(stage), f"stage {stage}: {device}, {layers}{emulated}", stage + 1)
            for lane, (name, kinds) in enumerate(LANES):
                chosen = self._select(kinds)
                yield from self._spans(self._pid(stage), lane, name, chosen[chosen["stage"] == stage], kinds)
        drafts = self._select(DRAFT_SPANS)
        if len(drafts):
            yield from self._process(HOST_PID + 1, "draft layer", len(self.meta.stages) + 1)
            yield from self._spans(HOST_PID + 1, 0, "draft", drafts[drafts["stage"] == DRAFT_LANE], DRAFT_SPANS)
        yield from self._windows()
        yield from self._hand_offs()
        yield from self._rate()
        yield from self._moments()

    @staticmethod
    def _pid(stage: int) -> int:
        return HOST_PID + 2 + stage

    def _ts(self, ns: int) -> str:
        return _us(ns - self.zero)

    def _select(self, kinds: Iterable[Kind]) -> Events:
        return self.events[np.isin(self.events["kind"], list(kinds))]

    @staticmethod
    def _process(pid: int, name: str, order: int) -> Iterator[str]:
        yield json.dumps({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        yield json.dumps({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": order}})

    def _spans(self, pid: int, lane: int, lane_name: str, spans: Events, names: dict[Kind, str]) -> Iterator[str]:
        """Slices of one lane; what would cross another goes to a further track."""
        order = np.lexsort((-spans["dur_ns"].astype(np.int64), spans["start_ns"]))
        tracks, named = Tracks(), set()
        by_number = {int(kind): name for kind, name in names.items()}
        for start, dur, window, kind, stage, rows, a, b in spans[order].tolist():
            tid = pid * 10_000 + lane * TRACKS_A_LANE + tracks.place(start, start + dur)
            if tid not in named:
                named.add(tid)
                name = lane_name if len(named) == 1 else f"{lane_name} ({len(named)})"
                yield json.dumps({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}})
                yield json.dumps(
                    {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": lane}}
                )
            if kind in (Kind.run, Kind.prefill_chunk):
                self.run_tracks[stage, window] = tid
            yield (
                f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{self._ts(start)},"dur":{_us(dur)},'
                f'"name":"{by_number[kind]}","args":{{"window":{window},"rows":{rows}{_more(kind, a, b)}}}}}'
            )

    def _windows(self) -> Iterator[str]:
        """Async slices, from when a window was built to its verdict (a prompt window: to its last run's end)."""
        ends: dict[int, tuple[int, int, int]] = {}
        for start, dur, window, *_ in self._select([Kind.run]).tolist():
            ends[window] = (max(start + dur, ends.get(window, (0, 0, 0))[0]), 0, -1)
        for start, dur, window, _, _, _, a, b in self.of_kind[Kind.verdict].tolist():
            ends[window] = (start + dur, a, b)
        drafts: dict[int, list[str]] = {}
        for _, _, window, _, _, _, a, _ in self.of_kind[Kind.draft_token].tolist():
            drafts.setdefault(window, []).append(self.meta.piece(a) if self.meta.piece else str(a))
        for start, _, window, _, _, rows, a, b in self.of_kind[Kind.window].tolist():
            if window not in ends:
                continue  # its end was not recorded
            end, accepted, emitted = ends[window]
            head = f'"cat":"window","name":"window","pid":{HOST_PID},"id2":{{"local":"{window:#x}"}}'
            begin = {"window": window, "position": a, "drafted": rows - 1, "fate": WindowFate(b).name}
            if window in drafts:
                begin["drafts"] = " | ".join(drafts[window])
            after = {} if emitted < 0 else {"accepted": accepted, "emitted": emitted}
            yield f'{{"ph":"b","ts":{self._ts(start)},{head},"args":{json.dumps(begin)}}}'
            yield f'{{"ph":"e","ts":{self._ts(max(end, start))},{head},"args":{json.dumps(after)}}}'

    def _hand_offs(self) -> Iterator[str]:
        """An arrow from where a stage publishes to where the next begins to run."""
        runs = self._select([Kind.run, Kind.prefill_chunk])
        begins = {(s, w): start for start, _, w, _, s, *_ in runs.tolist()}
        n_arrows = 0
        for start, _, window, _, stage, *_ in self.of_kind[Kind.publish].tolist():
            read = begins.get((stage + 1, window))
            writer, reader = self.run_tracks.get((stage, window)), self.run_tracks.get((stage + 1, window))
            if read is None or writer is None or reader is None or read < start:
                continue
            n_arrows += 1
            head = f'"cat":"hand-off","name":"hand-off","id":{n_arrows}'
            yield f'{{"ph":"s","ts":{self._ts(start)},"pid":{self._pid(stage)},"tid":{writer},{head}}}'
            yield (
                f'{{"ph":"f","bp":"e","ts":{self._ts(read)},"pid":{self._pid(stage + 1)},"tid":{reader},{head}}}'
            )

    def _rate(self) -> Iterator[str]:
        """Tokens per second, over bins of 0.1 s."""
        times = self.of_kind[Kind.token]["start_ns"]
        if not len(times):
            return
        bins = (times - np.uint64(self.zero)) // np.uint64(RATE_BIN_NS)
        counts = np.bincount(bins.astype(np.int64))
        for i, count in enumerate(counts.tolist()):
            rate = count * 1_000_000_000 / RATE_BIN_NS
            yield (
                f'{{"ph":"C","pid":{HOST_PID},"ts":{_us(i * RATE_BIN_NS)},"name":"decode rate",'
                f'"args":{{"tok/s":{rate:.1f}}}}}'
            )

    def _moments(self) -> Iterator[str]:
        named: list[tuple[int, str, dict[str, Any]]] = []
        for start, _, window, _, _, _, a, b in self.of_kind[Kind.toggle].tolist():
            value = b / 1e6 if a in IN_MILLIONTHS else b
            named.append((start, f"{SwitchId(a).name} = {value:g}", {"window": window}))
        for start, dur, window, _, _, rows, a, b in self.of_kind[Kind.verdict].tolist():
            named.append((start + dur, "verdict", {"window": window, "drafted": rows - 1, "accepted": a, "emitted": b}))
        for start, _, window, _, _, _, a, b in self.of_kind[Kind.request_begin].tolist():
            named.append((start, f"request {window}", {"prompt_tokens": a, "cached_tokens": b}))
        for start, _, window, _, _, _, a, b in self.of_kind[Kind.request_end].tolist():
            named.append((start, f"request {window}: {Finish(a).name}", {"tokens": b}))
        for start, _, window, _, stage, *_ in self.of_kind[Kind.error].tolist():
            named.append((start, "error", {"stage": stage, "window": window}))
        for start, _, window, *_ in self.of_kind[Kind.guess_rolled_back].tolist():
            named.append((start, "rolled back", {"window": window}))
        for start, name, arguments in named:
            yield (
                f'{{"ph":"i","s":"p","pid":{HOST_PID},"tid":{HOST_PID * 10_000},"ts":{self._ts(start)},'
                f'"name":{json.dumps(name)},"args":{json.dumps(arguments)}}}'
            )


def _more(kind: int, a: int, b: int) -> str:
    """Arguments that only some kinds have."""
    if kind in (Kind.run, Kind.prefill_chunk):
        return f',"position":{a}'
    if kind == Kind.launch:
        return f',"ahead":{a}'
    if kind == Kind.draft_step:
        return f',"step":{a},"token":{b}'
    if kind == Kind.verdict:
        return f',"accepted":{a},"emitted":{b}'
    return ""
