"""A recording as a table: a line an event."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from strata_tui.analysis.view import toggle_text
from strata_tui.events import DRAFT_LANE, HOST_LANE, Finish, Kind, MissCause, WindowFate
from strata_tui.files import whole_file
from strata_tui.record.recording import Recording

COLUMNS = ("start_ns", "dur_ns", "kind", "stage", "window", "rows", "a", "b", "means", "emulated")
EVENTS_A_WRITE = 1 << 15
_LANES = {DRAFT_LANE: "draft", HOST_LANE: "host"}
_NAMES = {
    Kind.window: (WindowFate, "b"),
    Kind.guess_kept: (WindowFate, "b"),
    Kind.miss: (MissCause, "a"),
    Kind.request_end: (Finish, "a"),
}
_TELLING = frozenset({Kind.token, Kind.draft_token, Kind.toggle, *_NAMES})


def write_table(path: Path, recording: Recording) -> None:
    """Write a .csv file: times in ns since the first event, kinds and lanes by name, `a` and `b` as numbers.

    `means` says in words what the numbers of an event stand for: a token (quoted, as JSON), a switch, a fate.
    `emulated` is 1 in every line where times are an emulated device's, else 0.

    Raises:
        OSError: it can't be written.
    """
    events = recording.events
    events = events[np.argsort(events["start_ns"], kind="stable")]
    first = events["start_ns"][0] if len(events) else 0
    kinds = {int(kind): kind.name for kind in Kind}
    lanes = {stage: _LANES.get(stage, str(stage)) for stage in range(256)}
    means = _Meanings(recording)
    emulated = f",{int(recording.emulated)}"
    with whole_file(path) as raw:
        raw.write((",".join(COLUMNS) + "\n").encode())
        for at in range(0, len(events), EVENTS_A_WRITE):
            block = events[at : at + EVENTS_A_WRITE]
            columns = [
                block[name].tolist() for name in ("dur_ns", "window", "rows", "kind", "stage", "a", "b")
            ]
            rows = zip((block["start_ns"] - first).tolist(), *columns, strict=True)
            lines = [
                f"{start},{dur},{kinds[kind]},{lanes[stage]},{window},{rows_},{a},{b},"
                f"{means.of(kind, a, b) if kind in _TELLING else ''}{emulated}\n"
                for start, dur, window, rows_, kind, stage, a, b in rows
            ]
            raw.write("".join(lines).encode())


class _Meanings:
    def __init__(self, recording: Recording) -> None:
        self._piece = recording.piece
        self._tokens: dict[int, str] = {}

    def of(self, kind: int, a: int, b: int) -> str:
        """In words, as a cell; "" where the numbers say all."""
        if kind in (Kind.token, Kind.draft_token):
            if (text := self._tokens.get(a)) is None:
                text = self._tokens[a] = _cell(json.dumps(self._piece(a))) if a >= 0 else ""
            return text
        if kind == Kind.toggle:
            return toggle_text(a, b)
        of, field = _NAMES[Kind(kind)]
        number = a if field == "a" else b
        return of(number).name if number in of._value2member_map_ else ""


def _cell(quoted: str) -> str:
    """A text in JSON's quotes, and these in the table's: no spreadsheet takes it for a formula."""
    return '"' + quoted.replace('"', '""') + '"'
