"""Text traces of the upstream engine as recordings: what they tell, and nothing that they don't.

    time_ms event seq x y        a line an event, behind a header of lines that begin with #

    L0, F0   a front stage is launched, is done; y = stage, of a guess 10 + stage
    L1, F1   the last stage is launched, is done
    CL, CE   the draft chain is launched; its first size is known
    CD       a guess is decided; x = 1000 times its estimate
    V        verdict: x = accepted drafts; the guess behind it: y = 1 is kept, -1 was wrong, 0 there was none
    U        a commit ahead of the verdict is undone

`seq` numbers the windows; a guess that was wrong gives its number to the window built in its place. Known
of a program are launch and end: it runs from its launch, or from the end of the program before it on that
stage. Not known are tokens, prompt, model, switches, drafts per window (a verdict's rows are 0), hand-offs,
commits, why a guess that was decided was never launched (told as gated), why one was wrong (told as drafts),
and the stage of an undo (told of stage 0). A verdict yields x + 1 tokens; the last may have kept fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Kind, MissCause, WindowFate
from strata_tui.record.recording import MAX_EVENTS, MAX_ROWS, Recording, StageLine
from strata_tui.tokenizer import printable

GUESS = 10  # added to the stage of a guess's launch: a trace has at most ten front stages
MAX_LINE = 256  # bytes
MAX_MS = 1e12
NAMES = frozenset({"L0", "F0", "L1", "F1", "CL", "CE", "CD", "V", "U"})
_LINE = re.compile(rb"\s*-?\d+(\.\d+)?\s+(L0|F0|L1|F1|CL|CE|CD|V|U)\s+-?\d+\s")


@dataclass(frozen=True)
class Line:
    """One line; the time in ns of the trace."""

    at_ns: int
    name: str
    seq: int
    x: float
    y: int


def looks_upstream(start: bytes) -> bool:
    """Is this the begin of such a trace: a header, or lines of its kind?"""
    first = start.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"#") or _LINE.match(first + b" ") is not None


def read_upstream(path: Path) -> Recording:
    """A trace as a recording with one request.

    Raises:
        BadInput: a line that is none of its kind (but for the last, which may be cut off), or no line at all.
        OSError: it can't be read.
    """
    name = printable(path.name, newlines=False)
    about: list[str] = []
    note: list[str] = []
    lines = list(_lines(path, name, about, note))
    if not lines:
        raise BadInput(f"[recording] {name}: expected lines like `12.345 L0 7 0 1`, got none")
    lines.sort(key=lambda line: line.at_ns)
    fronts = [line.y % GUESS for line in lines if line.name in ("L0", "F0")]
    n_stages = max(fronts, default=-1) + 2
    told = _Teller(n_stages)
    for line in lines:
        told.take(line)
    return Recording(
        file_name=name,
        source="upstream",
        program="the upstream engine",
        machine=printable(" ".join(about), newlines=False)[:1000],
        model=name,
        name=name,
        model_sha256="",
        arch="model not known",
        n_layers=0,
        context=0,
        stages=tuple(StageLine("device not known", 0, 0) for _ in range(n_stages)),
        emulated=False,
        has_draft_layer=any(line.name == "CL" for line in lines),
        pipeline_max=n_stages,
        switches={},
        unix_offset_ns=None,
        events=told.events(),
        note="; ".join(note),
    )


def _lines(path: Path, name: str, about: list[str], note: list[str]) -> Iterator[Line]:
    number = 0
    with path.open("rb") as file:
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            text = raw.decode("utf-8", "replace")
            if text.startswith("#"):
                while raw and not raw.endswith(b"\n"):  # a header may be long
                    raw = file.readline(MAX_LINE + 1)
                if len(about) < 8:
                    about.append(text.strip("# \r\n"))
                continue
            if not text.strip():
                continue
            line = _line(text)
            if line is None and not raw.endswith(b"\n") and len(raw) <= MAX_LINE:
                note.append(f"{name} is cut off in line {number}: it is left out")
                return
            if line is None:
                shown = printable(text.strip()[:60], newlines=False)
                raise BadInput(
                    f"[recording] {name}: line {number}: expected `time_ms event seq x y` with one of the "
                    f"events {', '.join(sorted(NAMES))}, got {shown!r}"
                )
            yield line
            if number >= MAX_EVENTS // 4:
                note.append(f"{name} is longer than what is read: its first {number:,} lines")
                return


def _line(text: str) -> Line | None:
    parts = text.split()
    try:
        at_ms, seq = float(parts[0]), int(parts[2])
        x, y = (float(parts[3]) if len(parts) > 3 else 0.0), (int(parts[4]) if len(parts) > 4 else 0)
    except (ValueError, IndexError):
        return None
    name = parts[1]
    fits = 0 <= at_ms <= MAX_MS and 0 <= seq < 1 << 31 and abs(x) <= 1e9  # as it holds: nan doesn't
    if name in ("L0", "F0"):
        fits = fits and 0 <= y < 2 * GUESS
    if name == "V":
        fits = fits and 0 <= x < MAX_ROWS and x == int(x) and y in (-1, 0, 1)
    return Line(round(at_ms * 1e6), name, seq, x, y) if name in NAMES and fits and len(parts) <= 5 else None


@dataclass
class _Window:
    """One window as it goes on."""

    id: int
    guess: bool
    estimate: int = 0  # in millionths
    launched: dict[int, int] = field(default_factory=dict)  # by stage, ns
    built: bool = False


class _Teller:
    """Turns lines into events, in the order of their times."""

    def __init__(self, n_stages: int) -> None:
        self._last = n_stages - 1
        self._rows: list[tuple[int, ...]] = []
        self._n_windows = 0
        self._verified: dict[int, _Window] = {}  # by seq
        self._guesses: dict[int, _Window] = {}
        self._given_up: dict[int, _Window] = {}  # guesses whose programs may still run
        self._last_verdict = 0  # the window it was of
        self._free = [0] * n_stages  # when the stage's last program ended
        self._chain: int | None = None  # when it was launched
        self._fate = WindowFate.fresh  # of the window that the next verdict is of
        self._first = self._end = 0
        self._n_tokens = 0

    def take(self, line: Line) -> None:
        if not self._rows:
            self._note(Kind.request_begin, line.at_ns, window=1)
        self._end = max(self._end, line.at_ns)
        if line.name in ("L0", "F0"):
            guess, stage = line.y >= GUESS, line.y % GUESS
            launch = line.name == "L0"
            self._launched(line, stage, guess) if launch else self._done(line, stage, guess)
        elif line.name == "L1":
            self._launched(line, self._last, guess=False)
        elif line.name == "F1":
            self._done(line, self._last, guess=False)
        elif line.name == "CL":
            self._chain = line.at_ns
        elif line.name == "CE" and self._chain is not None:
            self._note(
                Kind.draft_step,
                self._chain,
                line.at_ns - self._chain,
                stage=DRAFT_LANE,
                window=self._window(line.seq, False).id,
                b=-1,
            )
            self._chain = None
        elif line.name == "CD":
            window = self._window(line.seq, guess=True)
            window.estimate = max(0, min(round(line.x * 1000), 1_000_000_000))
            self._build(window, line.at_ns)
        elif line.name == "V":
            self._verdict(line)
        elif line.name == "U":
            self._note(Kind.undo, line.at_ns, stage=0, window=self._last_verdict)

    def events(self) -> np.ndarray:
        """[n] of everything taken."""
        self._note(Kind.request_end, self._end, window=1, b=self._n_tokens)
        return np.array(self._rows, EVENT_DTYPE)

    def _window(self, seq: int, guess: bool) -> _Window:
        windows = self._guesses if guess else self._verified
        if seq not in windows:
            self._n_windows += 1
            windows[seq] = _Window(self._n_windows, guess)
        return windows[seq]

    def _build(self, window: _Window, at_ns: int) -> None:
        if window.built:
            return
        window.built = True
        fate = WindowFate.guess if window.guess else WindowFate.fresh
        self._note(Kind.window, at_ns, window=window.id, b=fate)
        if window.guess:
            self._note(Kind.guess_built, at_ns, window=window.id, a=window.estimate)

    def _launched(self, line: Line, stage: int, guess: bool) -> None:
        window = self._window(line.seq, guess)
        self._build(window, line.at_ns)
        if guess and not window.launched:
            self._note(Kind.guess_launched, line.at_ns, window=window.id, a=1, b=window.estimate)
        window.launched[stage] = line.at_ns
        self._note(Kind.launch, line.at_ns, stage=stage, window=window.id)

    def _done(self, line: Line, stage: int, guess: bool) -> None:
        # a guess may have been kept, or given up, between its launch and its end
        mine = self._guesses if guess else self._verified
        for windows in (mine, self._verified, self._given_up):
            window = windows.get(line.seq)
            if window is not None and stage in window.launched:
                begin = min(max(window.launched.pop(stage), self._free[stage]), line.at_ns)
                self._note(Kind.run, begin, line.at_ns - begin, stage=stage, window=window.id)
                self._free[stage] = line.at_ns
                return

    def _verdict(self, line: Line) -> None:
        window = self._window(line.seq, guess=False)
        self._build(window, line.at_ns)
        accepted = int(line.x)
        self._note(Kind.verdict, line.at_ns, window=window.id, a=accepted, b=accepted + 1)
        for i in range(accepted + 1):
            self._note(Kind.token, line.at_ns, window=window.id, a=-1, b=self._n_tokens + i)
        self._n_tokens += accepted + 1
        self._last_verdict = window.id
        self._verified.pop(line.seq, None)
        launched = sorted((seq, g) for seq, g in self._guesses.items() if g.launched or g.built)
        kept = launched[0][0] if line.y == 1 and launched else None
        if kept is not None:
            guess = self._guesses.pop(kept)
            self._fate = (
                WindowFate.kept_after_fresh if self._fate == WindowFate.fresh else WindowFate.kept_after_kept
            )
            self._note(Kind.guess_kept, line.at_ns, window=guess.id, b=self._fate)
            self._verified[kept] = guess
            return
        self._fate = WindowFate.fresh
        if line.y == -1:
            self._note(Kind.miss, line.at_ns, window=window.id, a=MissCause.drafts_wrong)
        for guess in self._guesses.values():
            gone = Kind.guess_rolled_back if guess.launched else Kind.guess_gated
            self._note(gone, line.at_ns, window=guess.id)
        self._given_up = self._guesses
        self._guesses = {}

    def _note(self, kind: Kind, start: int, dur: int = 0, **rest: int) -> None:
        stage = rest.get("stage", HOST_LANE)
        self._rows.append(
            (start, dur, rest.get("window", 0), int(kind), stage, 0, rest.get("a", 0), rest.get("b", 0))
        )
