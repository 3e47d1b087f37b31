"""Writes a recording while the engine runs: what it is given is packed and written by a thread of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from strata_tui.errors import why
from strata_tui.events import Events, Kind
from strata_tui.files import sole_writer
from strata_tui.record.frames import EVENTS_A_FRAME, FrameKind, pack_events, packed, preamble

if TYPE_CHECKING:
    from strata_tui.engine import Engine

FLUSH_S = 1.0
MAX_WAITING = 1 << 22  # events: where the disk does not follow, later ones are left out and counted
Entry = tuple[FrameKind, Any]


def recording_header(engine: Engine) -> dict[str, Any]:
    """What stands at the begin of a recording of this engine."""
    import time

    from strata_tui import __version__
    from strata_tui.engine import cpu_info

    switches = standing_switches(engine)  # before the model's hash, which takes its time
    machine = cpu_info()
    return {
        "program": f"strata-tui {__version__}",
        "machine": {"model": machine["model"], "cores": len(machine["cores"])},
        "model": engine.model.file_name,
        "name": engine.model.name,
        "model_sha256": engine.model.sha256,
        "arch": engine.model.architecture,
        "n_layers": engine.n_layers,
        "context": engine.context,
        "stages": [
            {"device": s.device, "first_layer": s.first_layer, "last_layer": s.last_layer}
            | ({"hand_off_ms": asdict(hand_off)} if hand_off else {})
            for s, hand_off in zip(engine.stages, engine.hand_offs, strict=True)
        ],
        "kv": engine.kv,
        "numerics": engine.stages[0].numerics,
        "emulated": engine.emulated,
        "has_draft_layer": engine.has_draft_layer,
        "pipeline_max": engine.pipeline_max,
        "shared_cores": [asdict(cores) for cores in engine.shared_cores],
        **switches,
        "unix_offset_ns": time.time_ns() - engine.now_ns(),
    }


def standing_switches(engine: Engine) -> dict[str, Any]:
    """Of the header: what is asked for now, and what will be in force as the next text begins, or is."""
    from strata_tui.switches import BY_NAME, as_they_can_be

    in_force = engine.switches.in_force()
    return {
        "switches": {name: getattr(engine.switches, name) for name in BY_NAME},
        "switches_in_force": as_they_can_be(
            {name: in_force[name] for name in BY_NAME if name in in_force},
            len(engine.stages),
            engine.pipeline_max,
            engine.has_draft_layer,
        ),
    }


def token_piece(engine: Engine) -> Callable[[int], str] | None:
    """What a token is written as; None for a file without a usable tokenizer."""
    from strata_tui.errors import BadInput

    try:
        return engine.tokenizer.piece
    except BadInput:
        return None


class Recorder:
    """A recording being written. Every method returns at once; about once a second a frame is written.

    Args:
        path: of the file; one that exists is written over.
        header: makes the header; called in the recorder's thread, since a model's hash takes its time.
        piece: what a token is written as, None = not known.
        new: the file must not exist.

    Attributes:
        error: why no more is written; "" while all is well.

    Raises:
        OSError: the file can't be made, or another program records into it.
    """

    def __init__(
        self,
        path: Path,
        header: Callable[[], Mapping[str, Any]],
        piece: Callable[[int], str] | None = None,
        new: bool = False,
    ) -> None:
        self.path = path
        self.error = ""
        self.n_events = 0
        self.left_out = 0  # events, because the disk did not follow
        self._header = header
        self._piece = piece
        self._named: set[int] = set()  # tokens whose piece has been written
        self._waiting: list[Entry] = []
        self._n_waiting = 0  # events among them
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._file = sole_writer(path, new)
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    # -- what happens

    def begin(
        self,
        at_ns: int,
        prompt_tokens: Sequence[int],
        prompt: str,
        sampling: Any,
        max_tokens: int = 0,
        emitted: Sequence[int] = (),
    ) -> None:
        """A request begins.

        Args:
            emitted: tokens that it wrote before the recording began.
        """
        self._give(
            FrameKind.request,
            {
                "at_ns": at_ns,
                "prompt_tokens": list(prompt_tokens),
                "prompt": prompt,
                "sampling": asdict(sampling) if is_dataclass(sampling) else dict(sampling),  # type: ignore[arg-type]
                "max_tokens": max_tokens,
                "emitted": list(emitted),
            },
        )

    def take(self, events: Events) -> None:
        """Events, as drained; they must not change afterwards."""
        if not len(events):
            return
        with self._lock:
            if self._n_waiting + len(events) > MAX_WAITING:
                self.left_out += len(events)
                return
            self._n_waiting += len(events)
            self.n_events += len(events)
            self._waiting.append((FrameKind.events, events))

    def wrote(self, at_ns: int, tokens: Sequence[int], text: str) -> None:
        """Tokens that came, and their text."""
        if tokens or text:
            self._give(FrameKind.text, [at_ns, list(tokens), text])

    def end(self, at_ns: int, finish: str, error: str, stats: Mapping[str, Any]) -> None:
        """The request has ended."""
        self._give(
            FrameKind.request_end, {"at_ns": at_ns, "finish": finish, "error": error, "stats": dict(stats)}
        )

    def close(self, dropped_events: int = 0) -> None:
        """Write what is left; idempotent.

        Args:
            dropped_events: that the engine had no room for.
        """
        if self._closing:
            return
        about = {"dropped_events": dropped_events, "left_out_events": self.left_out}
        self._give(FrameKind.close, about)
        self._closing = True
        self._wake.set()
        self._thread.join()

    def _give(self, kind: FrameKind, value: Any) -> None:
        with self._lock:
            self._waiting.append((kind, value))

    # -- the thread

    def _work(self) -> None:
        try:
            with self._file as file:
                file.write(preamble() + packed(FrameKind.header, _json(self._header())))
                file.flush()
                closing = False
                while not closing:
                    self._wake.wait(FLUSH_S)
                    closing = self._closing  # looked at before taking: nothing comes after it
                    self._write(self._taken())
                    file.flush()
        except Exception as error:  # the engine goes on; whoever records says so
            self.error = f"the recording ended early: {why(error)}"
            self._closing = True

    def _taken(self) -> list[Entry]:
        with self._lock:
            taken, self._waiting, self._n_waiting = self._waiting, [], 0
        return taken

    def _write(self, entries: list[Entry]) -> None:
        """What is alike goes together, but never across the begin or the end of a request."""
        events: list[Events] = []
        pieces: list[list[Any]] = []

        def write_gathered() -> None:
            if events:
                self._write_events(np.concatenate(events))
            if pieces:
                self._write_frame(FrameKind.text, _json({"pieces": pieces}))
            events.clear()
            pieces.clear()

        for kind, value in entries:
            if kind == FrameKind.events:
                events.append(value)
            elif kind == FrameKind.text:
                pieces.append(value)
            else:
                write_gathered()
                self._write_frame(kind, _json(value))
        write_gathered()

    def _write_events(self, events: Events) -> None:
        if self._piece is not None:
            of_tokens = np.isin(events["kind"], (Kind.token, Kind.draft_token))
            new = set(np.unique(events["a"][of_tokens]).tolist()) - self._named
            if new:
                self._named |= new
                names = {str(token): self._piece(token) for token in sorted(new)}
                self._write_frame(FrameKind.vocabulary, _json(names))
        for at in range(0, len(events), EVENTS_A_FRAME):
            self._write_frame(FrameKind.events, pack_events(events[at : at + EVENTS_A_FRAME]))

    def _write_frame(self, kind: FrameKind, payload: bytes) -> None:
        self._file.write(packed(kind, payload))


def _json(value: Any) -> bytes:
    return json.dumps(value, default=str, separators=(",", ":")).encode()
