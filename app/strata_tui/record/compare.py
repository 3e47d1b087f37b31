"""Two recordings of the same texts, aligned at token index: which windows it took, and where the time went.

By the one invariant both runs wrote the same tokens, whatever their switches: a difference is a finding, and
figures then cover what comes before it. Texts are paired in their order. Of each, the windows count whose
tokens all lie within what both runs wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.idle import StageTime, stage_times_of
from strata_tui.analysis.windows import WindowArray, WindowLog
from strata_tui.errors import BadInput
from strata_tui.events import Events, Kind
from strata_tui.record.recording import Recording, Request

BLOCKS = 8  # that the tokens are cut into, to tell where time was gained
LEAST_BLOCK = 16  # tokens
FORCE = "; --force compares nevertheless"
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """The first token that is not the same."""

    text: int  # from 1
    index: int  # of the token within the text, from 0
    a: int
    b: int


@dataclass
class Side:
    """One run over the tokens that count.

    Attributes:
        windows: verified ones, in the order of their verdicts.
        spans: of each text that has one, ns: from its first window built to the last verdict that counts.
        stages: where each stage's time went in each of the spans.
    """

    recording: Recording
    windows: list[WindowArray] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    stages: list[list[StageTime]] = field(default_factory=list)
    toggles: int = 0  # switches flipped while it ran

    def of(self, name: str) -> npt.NDArray[np.int64]:
        """A column of all windows."""
        columns = [windows[name].astype(np.int64) for windows in self.windows]
        return np.concatenate([np.empty(0, np.int64), *columns])

    @property
    def n_windows(self) -> int:
        return sum(map(len, self.windows))

    @property
    def n_tokens(self) -> int:
        return int(self.of("emitted").sum())

    @property
    def busy_ns(self) -> int:
        """Verdict to verdict, less what was held back."""
        return int(self.of("busy_ns").sum())

    def clock(self) -> tuple[Floats, Floats]:
        """Tokens written, and ms passed, at each verdict; both begin with 0."""
        tokens = np.concatenate([[0.0], np.cumsum(self.of("emitted"))])
        return tokens, np.concatenate([[0.0], np.cumsum(self.of("busy_ns")) / 1e6])


@dataclass
class Comparison:
    """Both runs.

    Attributes:
        tokens: that both wrote, up to a difference.
        known: are the tokens? Else no difference could be seen.
        difference: None = none, as far as both go.
    """

    a: Side
    b: Side
    texts: int
    tokens: int
    known: bool
    difference: Difference | None
    notes: list[str]

    def switches(self) -> dict[str, tuple[Any, Any]]:
        """Those that were not the same at the start."""
        a, b = self.a.recording.switches, self.b.recording.switches
        return {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}

    def blocks(self) -> list[tuple[int, int, float, float]]:
        """(from, to, ms of A, ms of B) over token indices; within a window tokens share its time evenly."""
        end = min(self.a.n_tokens, self.b.n_tokens)
        n = max(1, min(BLOCKS, end // LEAST_BLOCK))
        edges = np.unique(np.linspace(0, end, n + 1).astype(int))
        passed = [np.interp(edges, *side.clock()) for side in (self.a, self.b)]
        spent = [np.diff(ms).tolist() for ms in passed]
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), *spent, strict=True))

    def why(self) -> tuple[float, float, float]:
        """B - A over `blocks`, ms: in all; by windows, at A's ms per window; by ms per window."""
        end = min(self.a.n_tokens, self.b.n_tokens)
        ms, windows = [], []
        for side in (self.a, self.b):
            tokens, passed = side.clock()
            ms.append(float(np.interp(end, tokens, passed)))
            windows.append(float(np.interp(end, tokens, np.arange(len(tokens)))))
        total = ms[1] - ms[0]
        by_windows = (windows[1] - windows[0]) * ms[0] / windows[0] if windows[0] else 0.0
        return total, by_windows, total - by_windows


def compare(a: Recording, b: Recording, force: bool = False) -> Comparison:
    """Align two runs.

    Args:
        force: compare what can't be known to be comparable: measured with emulated times, other K/V cells or
            kernels, and traces that name no model. Other models, prompts or samplings are refused all the
            same: their tokens have nothing to do with one another.

    Raises:
        BadInput: they are not comparable; the line says why.
    """
    notes: list[str] = []
    _same_rig(a, b, force, notes)
    sides = Side(a), Side(b)
    for side in sides:
        side.toggles = int(np.count_nonzero(side.recording.events["kind"] == Kind.toggle))
        missing = side.recording.dropped_events
        if missing:
            notes.append(f"{side.recording.file_name}: {missing:,} events are missing: its times are too low")
        if side.recording.note:
            notes.append(side.recording.note)
    if not (a.requests and b.requests):
        for side in sides:
            _take_text(side, side.recording.events, None)
        tokens = min(side.n_tokens for side in sides)
        for side in sides:
            _cut(side, tokens)
        return _something(Comparison(*sides, 1, tokens, False, None, notes))
    return _something(_compare_texts(sides, notes))


def _something(comparison: Comparison) -> Comparison:
    """Refuses one without a token: nothing was the same, and nothing differed."""
    if not comparison.tokens and comparison.difference is None:
        a, b = (side.recording for side in (comparison.a, comparison.b))
        raise BadInput(
            f"[compare] expected tokens that both {a.file_name} and {b.file_name} have, got none: there is "
            f"nothing to compare"
        )
    return comparison


def _same_rig(a: Recording, b: Recording, force: bool, notes: list[str]) -> None:
    if a.model_sha256 and b.model_sha256 and a.model_sha256 != b.model_sha256:
        raise BadInput(
            f"[compare] expected runs of one model, got {a.model} ({a.model_sha256[:12]}) "
            f"and {b.model} ({b.model_sha256[:12]})"
        )
    doubts = []
    if a.emulated != b.emulated:
        emulated, measured = (a, b) if a.emulated else (b, a)
        doubts.append(
            f"{emulated.file_name} has the times of an emulated device and {measured.file_name} measured ones"
        )
    for what, left, right in (("K/V cells", a.kv, b.kv), ("kernels", a.numerics, b.numerics)):
        if left and right and left != right:
            doubts.append(
                f"{what} {left} in {a.file_name} and {right} in {b.file_name}: another text by definition"
            )
    if a.source != b.source or not (a.requests and b.requests):
        unknown = [run.file_name for run in (a, b) if not run.requests]
        both = a.source == b.source == "upstream"
        line = f"{' and '.join(unknown)}: model, prompt and tokens are not known, one text is taken on trust"
        (notes if both else doubts).append(line)
    if doubts and not force:
        raise BadInput(f"[compare] {'; '.join(doubts)}{FORCE}")
    notes += doubts


def _compare_texts(sides: tuple[Side, Side], notes: list[str]) -> Comparison:
    a, b = (side.recording for side in sides)
    events = [_by_request(recording) for recording in (a, b)]
    texts = tokens = 0
    difference: Difference | None = None
    for number, (mine, other) in enumerate(zip(a.requests, b.requests, strict=False), start=1):
        _same_request(mine, other, number)
        if mine.emitted or other.emitted:
            notes.append(f"text {number} is left out: a recording began within it")
            continue
        left, right = mine.tokens, other.tokens
        n = min(len(left), len(right))
        wrong = next((i for i in range(n) if left[i] != right[i]), None)
        n = n if wrong is None else wrong
        for side, of_texts in zip(sides, events, strict=True):
            _take_text(side, of_texts[number - 1], n)
        texts, tokens = texts + 1, tokens + n
        if wrong is not None:
            difference = Difference(number, wrong, left[wrong], right[wrong])
            break
        if len(left) != len(right):
            notes.append(
                f"text {number}: A has {len(left)} tokens ({mine.finish or 'cut off'}), B {len(right)} "
                f"({other.finish or 'cut off'}); the first {n} are compared"
            )
    if not texts:
        raise BadInput("[compare] expected a text that both recordings have from its start, got none")
    for side in sides:
        _take_stages(side)
    if difference is None and len(a.requests) != len(b.requests):
        notes.append(f"A has {len(a.requests)} texts, B {len(b.requests)}: the first {texts} are compared")
    return Comparison(*sides, texts, tokens, True, difference, notes)


def _same_request(a: Request, b: Request, number: int) -> None:
    if a.prompt_tokens != b.prompt_tokens:
        pairs = zip(a.prompt_tokens, b.prompt_tokens, strict=False)
        at = next((i for i, (x, y) in enumerate(pairs) if x != y), None)
        how = (
            f"{len(a.prompt_tokens)} and {len(b.prompt_tokens)} tokens"
            if at is None
            else f"token {at} is {a.prompt_tokens[at]} and {b.prompt_tokens[at]}"
        )
        raise BadInput(f"[compare] text {number}: expected one prompt, got two: {how}")
    mine, other = _sampling(a), _sampling(b)
    if mine != other:
        names = sorted(name for name in {**mine, **other} if mine.get(name) != other.get(name))
        how = ", ".join(f"{name} {mine.get(name, '-')} and {other.get(name, '-')}" for name in names)
        raise BadInput(f"[compare] text {number}: expected one sampling, got {how}")


def _sampling(request: Request) -> dict[str, float]:
    """What counts of it: greedy decoding looks at no seed and no cut."""
    sampling = dict(request.sampling)
    if not sampling.get("temperature"):
        return {"temperature": 0, "repeat_penalty": sampling.get("repeat_penalty", 1)}
    return sampling


def _by_request(recording: Recording) -> list[Events]:
    """Of each request the events that began in its time, by their start."""
    events = recording.events[np.argsort(recording.events["start_ns"], kind="stable")]
    begins = np.array([request.begin_ns for request in recording.requests], np.int64)
    cuts = np.searchsorted(events["start_ns"].astype(np.int64), np.unique(begins))
    ends = np.append(cuts[1:], len(events))
    return [events[cuts[i] : ends[i]] for i in np.searchsorted(np.unique(begins), begins)]


def _take_text(side: Side, events: Events, n_tokens: int | None) -> None:
    """Add the windows of a text, as far as their tokens lie within its first `n_tokens`, and their span."""
    order = np.argsort((events["start_ns"] + events["dur_ns"]).astype(np.int64), kind="stable")
    log = WindowLog(capacity=max(16, int(np.count_nonzero(events["kind"] == Kind.window))))
    log.take(events[order], request=1)
    rows = log.rows[log.rows["emitted"] > 0]
    rows = rows[np.argsort(rows["end_ns"], kind="stable")]
    if n_tokens is not None:
        rows = rows[np.cumsum(rows["emitted"].astype(np.int64)) <= n_tokens]
    side.windows.append(rows.copy())
    if len(rows):
        begin, end = int(rows["start_ns"].min()), int(rows["end_ns"].max())
        if end > begin:
            side.spans.append((begin, end))


def _cut(side: Side, n_tokens: int) -> None:
    """Only the windows within the first tokens; of a single text."""
    side.windows, side.spans = [], []
    _take_text(side, side.recording.events, n_tokens)
    _take_stages(side)


def _take_stages(side: Side) -> None:
    """Where each stage's time went in the spans taken, of all texts at a time."""
    recording = side.recording
    begins = [request.begin_ns for request in recording.requests]
    side.stages = stage_times_of(recording.events, len(recording.stages), side.spans, begins)


def stage_ms(side: Side, stage: int) -> dict[str, float]:
    """ms of a stage over the texts: run, hand-off written, commit, undo, and idle by cause."""
    times: Sequence[StageTime] = [text[stage] for text in side.stages]
    spent = {
        "run": sum(time.run_ns for time in times),
        "publish": sum(time.publish_ns for time in times),
        "commit": sum(time.commit_ns for time in times),
        "undo": sum(time.undo_ns for time in times),
    }
    causes = times[0].idle_ns if times else {}
    idle = {f"idle_{cause}": sum(time.idle_ns[cause] for time in times) for cause in causes}
    return {name: ns / 1e6 for name, ns in {**spent, **idle}.items()}
