"""A recording read back. It is a file of somebody's: nothing in it is believed before it is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, Events, Kind, WindowFate
from strata_tui.paced import MAX_PROGRAM_MS, HandOffTimes
from strata_tui.placement import SharedCores
from strata_tui.record.checked import Checked
from strata_tui.record.frames import Frame, FrameKind, read_preamble, unpack_events, whole_frames
from strata_tui.record.trace import TraceMeta
from strata_tui.switches import as_they_can_be
from strata_tui.tokenizer import printable

MAX_EVENTS = 1 << 23
MAX_WORDS_BYTES = 128 << 20  # of JSON, in all
MAX_NS = 1 << 62  # on the events' clock; sums of two still fit int64
MAX_STAGES = 32
MAX_ROWS = 64  # of a verify window
MAX_WINDOW = (1 << 32) - 1


@dataclass(frozen=True)
class StageLine:
    """Where layers lie."""

    device: str
    first_layer: int
    last_layer: int
    hand_off_ms: HandOffTimes | None = None  # to this stage, by the rig that it emulates


@dataclass(frozen=True)
class Piece:
    """Tokens that came together, and their text (not yet fit for a screen)."""

    at_ns: int
    tokens: tuple[int, ...]
    text: str


@dataclass
class Request:
    """One text.

    Attributes:
        emitted: tokens that had been written when the recording began; () = it was there from the start.
        finish: "" = the recording has no end of it.
        stats: the engine's counters; None = not known.
    """

    begin_ns: int
    prompt_tokens: tuple[int, ...]
    prompt: str
    sampling: Mapping[str, float]
    max_tokens: int = 0
    emitted: tuple[int, ...] = ()
    pieces: list[Piece] = field(default_factory=list)
    end_ns: int | None = None
    finish: str = ""
    error: str = ""
    stats: dict[str, Any] | None = None

    @property
    def tokens(self) -> list[int]:
        """Every token of the text, in order."""
        return [*self.emitted, *(token for piece in self.pieces for token in piece.tokens)]


@dataclass
class Recording:
    """What a file tells.

    Attributes:
        file_name: of the recording.
        source: "strata", or "upstream" for a text trace of the upstream engine.
        model_sha256: "" = not known.
        stages: at least one.
        switches: in force when the recording began, by name; what is missing is not known.
        asked: what was asked for then; a rig that can't have it runs with what it can.
        shared_cores: which stages (and the draft layer) ran on the same cores; none: not known, or emulated.
        kv, numerics: the type of K/V cells, and kernels of equal bits: texts depend on both; "" = not known.
        events: [n] in the order in which they were drained; their fields are in range.
        note: a line on what is missing at the end; "" = nothing.
        vocabulary: what tokens are written as; of some there is nothing.
        unix_offset_ns: what added to an event's time gives the wall clock; None = not known.
    """

    file_name: str
    source: str
    program: str
    machine: str
    model: str
    name: str
    model_sha256: str
    arch: str
    n_layers: int
    context: int
    stages: tuple[StageLine, ...]
    emulated: bool
    has_draft_layer: bool
    pipeline_max: int
    switches: dict[str, Any]
    unix_offset_ns: int | None
    events: Events
    requests: list[Request] = field(default_factory=list)
    vocabulary: dict[int, str] = field(default_factory=dict)
    dropped_events: int = 0
    note: str = ""
    kv: str = ""
    numerics: str = ""
    asked: dict[str, Any] = field(default_factory=dict)
    shared_cores: tuple[SharedCores, ...] = ()

    def trace_meta(self) -> TraceMeta:
        """What stands in a Chrome trace of it."""
        last = int(self.events["start_ns"].max()) if len(self.events) else 0
        offset = self.unix_offset_ns
        known = offset is not None and 0 <= last + offset < MAX_NS
        return TraceMeta(
            model=self.model,
            model_sha256=self.model_sha256,
            arch=self.arch,
            stages=tuple((s.device, s.first_layer, s.last_layer) for s in self.stages),
            switches=self.switches,
            emulated=self.emulated,
            dropped_events=self.dropped_events,
            unix_offset_ns=offset if known else None,
            piece=self.piece,
        )

    def piece(self, token: int) -> str:
        """What a token is written as; its number where that is not known."""
        return self.vocabulary.get(token, f"<{token}>" if token >= 0 else "")


def read_recording(path: Path) -> Recording:
    """A recording as far as it is whole.

    Raises:
        BadInput: no recording, one of another version, or one that says what can't be.
        OSError: it can't be read.
    """
    name = printable(path.name, newlines=False)
    with path.open("rb") as file:
        read_preamble(file, name)
        reader = _Reader(name)
        at = file.tell()
        for frame in whole_frames(file, name):
            if not reader.take(frame):
                break
            at = file.tell()
        file.seek(0, 2)
        return reader.finish(at, file.tell())


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._recording: Recording | None = None
        self._events: list[Events] = []
        self._n_events = 0
        self._n_words = 0  # bytes of JSON
        self._closed = False
        self._too_long = False
        self._takes: dict[int, Callable[[Recording, Checked], None]] = {
            FrameKind.request: self._take_request,
            FrameKind.text: self._take_text,
            FrameKind.request_end: self._take_request_end,
            FrameKind.vocabulary: self._take_vocabulary,
            FrameKind.close: self._take_close,
        }

    def take(self, frame: Frame) -> bool:
        """False: this is more than is read of one file."""
        where = f"[recording] {self._name}: the frame at byte {frame.at:,}"
        if self._recording is None:
            if frame.kind != FrameKind.header:
                raise BadInput(f"{where} should be the header, is of kind {frame.kind}")
            self._recording = _read_header(self._name, _object(frame.payload, where))
            return True
        if frame.kind == FrameKind.header:
            raise BadInput(f"{where} is a second header")
        if frame.kind == FrameKind.events:
            events = checked_events(unpack_events(frame.payload, where), len(self._recording.stages), where)
            self._n_events += len(events)
            self._events.append(events)
        elif frame.kind in self._takes:
            self._n_words += len(frame.payload)
            self._takes[frame.kind](self._recording, _object(frame.payload, where))
        self._too_long = self._n_events > MAX_EVENTS or self._n_words > MAX_WORDS_BYTES
        return not self._too_long

    def finish(self, at: int, size: int) -> Recording:
        """The recording, once the file gives no more; it was read up to `at` of `size` bytes."""
        recording = self._recording
        if recording is None:
            raise BadInput(f"[recording] {self._name}: cut off or damaged before the end of its header")
        recording.events = np.concatenate([np.empty(0, EVENT_DTYPE), *self._events])
        if self._too_long:
            recording.note = f"{self._name} is longer than what is read: its first {self._n_events:,} events"
        elif at < size:
            recording.note = (
                f"{self._name} is cut off or damaged at byte {at:,} of {size:,}: the rest is left out, "
                "what came before is whole"
            )
        elif not self._closed:
            recording.note = f"{self._name} was not closed: its end may be missing"
        return recording

    # -- frames

    def _take_request(self, recording: Recording, value: Checked) -> None:
        recording.requests.append(
            Request(
                begin_ns=value.whole("at_ns", most=MAX_NS),
                prompt_tokens=value.ids("prompt_tokens"),
                prompt=value.text("prompt"),
                sampling=value.numbers("sampling"),
                max_tokens=value.whole("max_tokens", default=0),
                emitted=value.ids("emitted", default=()),
            )
        )

    def _take_text(self, recording: Recording, value: Checked) -> None:
        if not recording.requests:
            raise BadInput(f"{value.where} has a text before any request")
        pieces = recording.requests[-1].pieces
        for piece in value.items("pieces"):
            pieces.append(Piece(piece.whole(0, most=MAX_NS), piece.ids(1), piece.text(2, most=1 << 20)))

    def _take_request_end(self, recording: Recording, value: Checked) -> None:
        if not recording.requests:
            raise BadInput(f"{value.where} ends a request before any began")
        request = recording.requests[-1]
        request.end_ns = value.whole("at_ns", most=MAX_NS)
        request.finish = printable(value.text("finish", most=40), newlines=False)
        request.error = printable(value.text("error", most=2000), newlines=False)
        request.stats = value.stats("stats")

    def _take_vocabulary(self, recording: Recording, value: Checked) -> None:
        recording.vocabulary.update(value.vocabulary())

    def _take_close(self, recording: Recording, value: Checked) -> None:
        self._closed = True
        recording.dropped_events += value.whole("dropped_events", default=0)
        recording.dropped_events += value.whole("left_out_events", default=0)


def _object(payload: bytes, where: str) -> Checked:
    try:
        value = json.loads(payload, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadInput(f"{where} should hold JSON and does not") from None
    if not isinstance(value, dict):
        raise BadInput(f"{where} should hold a JSON object, holds {type(value).__name__}")
    return Checked(value, where)


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _read_header(name: str, header: Checked) -> Recording:
    def line(key: str) -> str:
        return printable(header.text(key, default="", most=1000), newlines=False)

    stages = tuple(
        StageLine(
            printable(stage.text("device", most=200), newlines=False),
            stage.whole("first_layer", most=1 << 20),
            stage.whole("last_layer", most=1 << 20),
            _hand_off(stage),
        )
        for stage in header.items("stages")
    )
    if not 1 <= len(stages) <= MAX_STAGES:
        raise BadInput(f"{header.where}: expected 1 to {MAX_STAGES} stages, got {len(stages)}")
    asked = header.switches("switches")
    pipeline_max = header.whole("pipeline_max", default=0, most=1024)
    has_draft_layer = header.flag("has_draft_layer")
    if header.has("switches_in_force"):
        in_force = header.switches("switches_in_force")
    else:  # a file that tells only what was asked for
        in_force = as_they_can_be(asked, len(stages), pipeline_max, has_draft_layer)
    return Recording(
        file_name=name,
        source="strata",
        program=line("program"),
        machine=header.machine("machine"),
        model=line("model"),
        name=line("name"),
        model_sha256=line("model_sha256"),
        arch=line("arch"),
        n_layers=header.whole("n_layers", most=1 << 20),
        context=header.whole("context"),
        stages=stages,
        emulated=header.flag("emulated"),
        has_draft_layer=has_draft_layer,
        pipeline_max=pipeline_max,
        shared_cores=tuple(_shared_cores(header, len(stages))),
        switches=in_force,
        asked=asked,
        unix_offset_ns=header.whole("unix_offset_ns", least=-MAX_NS, most=MAX_NS),
        events=np.empty(0, EVENT_DTYPE),
        kv=line("kv"),
        numerics=line("numerics"),
    )


def _shared_cores(header: Checked, n_stages: int) -> Iterator[SharedCores]:
    """None where the file doesn't tell; a lane that there is not has no program."""
    for cores in header.items("shared_cores") if header.has("shared_cores") else ():
        lanes = tuple(sorted({lane for lane in cores.ids("lanes") if lane < n_stages or lane == DRAFT_LANE}))
        at_once = cores.whole("at_once", least=1, most=1 << 16)
        if lanes:
            yield SharedCores(lanes, at_once)


def _hand_off(stage: Checked) -> HandOffTimes | None:
    """None where one is missing: to take it for nothing would foretell a hand-off that is free."""
    if not stage.has("hand_off_ms"):
        return None
    given = stage.numbers("hand_off_ms")
    names = [name for name in HandOffTimes.__dataclass_fields__ if name in given]
    for name in names:
        if not 0 <= given[name] <= MAX_PROGRAM_MS:
            expected = f"ms from 0 to {MAX_PROGRAM_MS:g}"
            raise BadInput(f"{stage.where}: hand_off_ms.{name}: expected {expected}, got {given[name]:g}")
    if not {"serial", "overlapped", "polled"} <= set(names):
        return None
    return HandOffTimes(**{name: given[name] for name in names})


_OF_WINDOWS = np.zeros(256, bool)
_OF_WINDOWS[[Kind.window, Kind.verdict, Kind.draft_token]] = True
_OF_WINDOWS[Kind.guess_built : Kind.guess_ended + 1] = True
_KNOWN = np.zeros(256, bool)
_KNOWN[[int(kind) for kind in Kind]] = True


def checked_events(events: Events, n_stages: int, where: str) -> Events:
    """The events of kinds known here, if every one can be.

    Raises:
        BadInput: a stage that there is not, a time beyond any clock, a window of a size that none has.
    """
    events = events[_KNOWN[events["kind"]]]
    kind, stage, b = events["kind"], events["stage"], events["b"]
    window, verdict, kept = kind == Kind.window, kind == Kind.verdict, kind == Kind.guess_kept
    fates = window | kept
    refusals: tuple[tuple[npt.NDArray[np.bool_], str, str], ...] = (
        ((stage >= n_stages) & (stage < DRAFT_LANE), "stage", f"a stage below {n_stages}"),
        (events["start_ns"] > MAX_NS - 1, "start_ns", "a time below 2^62 ns"),
        (events["dur_ns"] > MAX_NS - 1, "dur_ns", "a time below 2^62 ns"),
        (_OF_WINDOWS[kind] & (events["rows"] > MAX_ROWS), "rows", f"{MAX_ROWS} rows at most"),
        (fates & ((b < 0) | (b >= len(WindowFate))), "b", "the fate of a window"),
        (verdict & ((events["a"] < 0) | (events["a"] > events["rows"])), "a", "accepted drafts"),
        (verdict & ((b < 0) | (b > MAX_ROWS)), "b", f"0 to {MAX_ROWS} tokens"),
    )
    for wrong, name, expected in refusals:
        if wrong.any():
            event = events[int(np.argmax(wrong))]
            of = Kind(event["kind"]).name
            raise BadInput(f"{where}: {name} of a {of} event: expected {expected}, got {event[name]}")
    return events
