"""The view model: events in, what a screen shows out. One for console, replay and headless commands.

`take` costs O(new events); memory is bounded, counters are exact over the session. What the methods return
is frozen: a refresh asks once and hands the answers to its widgets.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from strata_tui.analysis.fate import LOST, OPEN, Fate
from strata_tui.analysis.guesses import GuessCounts
from strata_tui.analysis.lane_state import LaneState
from strata_tui.analysis.lanes import (
    Run,
    cell_bounds,
    cells,
    flatten,
    percent,
    runs,
    shares_of_cells,
    windows_of_cells,
)
from strata_tui.analysis.passages import texts
from strata_tui.analysis.rates import TokenClock
from strata_tui.analysis.spans import SPAN_DTYPE, Ring, SpanArray, SpanTrack
from strata_tui.analysis.windows import WindowArray, WindowLog
from strata_tui.events import (
    DRAFT_LANE,
    DRAFTS,
    EVENT_DTYPE,
    HOST_LANE,
    IN_MILLIONTHS,
    Events,
    Finish,
    Kind,
    SwitchId,
)

_STATE = np.zeros(256, np.uint8)
for _kind, _state in {
    Kind.run: LaneState.RUN_EVEN,
    Kind.wait_ready: LaneState.WAIT,
    Kind.commit: LaneState.COMMIT,
    Kind.undo: LaneState.UNDO,
    Kind.snapshot: LaneState.COMMIT,
    Kind.prefill_chunk: LaneState.PREFILL,
    Kind.draft_step: LaneState.DRAFT,
    Kind.stage_inputs: LaneState.HOST,
    Kind.launch: LaneState.HOST,
    Kind.sync: LaneState.HOST,
    Kind.verdict: LaneState.VERDICT,
    Kind.throttle: LaneState.THROTTLED,
    Kind.paused: LaneState.PAUSED,
}.items():
    _STATE[_kind] = _state
_OF_DEVICE = (Kind.run, Kind.wait_ready, Kind.commit, Kind.undo, Kind.snapshot, Kind.prefill_chunk)
_OF_HOST = (Kind.stage_inputs, Kind.launch, Kind.sync, Kind.verdict)
_HELD = (Kind.throttle, Kind.paused)
DRAIN_LAG_NS = 1_000_000_000  # how much later than its neighbours an event may have been drained


@dataclass(frozen=True)
class Mark:
    """A moment on the time axis: a switch that took effect, a request that began, an error."""

    at_ns: int
    kind: str  # "toggle" | "request" | "error"
    text: str


@dataclass(frozen=True)
class Lane:
    """One row of a picture; `stage` is DRAFT_LANE or HOST_LANE for those two."""

    stage: int
    runs: tuple[Run, ...]
    shares: tuple[int, ...]  # whole percents, one a column of SHARE_COLUMNS, their sum 100


@dataclass(frozen=True)
class Picture:
    """All lanes over [t0_ns, t1_ns), `columns` cells wide."""

    t0_ns: int
    t1_ns: int
    columns: int
    lanes: tuple[Lane, ...]
    marks: tuple[tuple[int, Mark], ...]  # with their column
    fates: Mapping[int, int]  # Fate of each window that was run, by its id


@dataclass(frozen=True)
class Rates:
    """Figures of now; None = not known yet. Counts of windows and drafts are those of the session."""

    tokens_per_s: float | None
    tokens_per_s_smoothed: float | None
    tokens_per_s_session: float | None
    history: tuple[float, ...]  # tokens per second of the last half seconds, oldest first
    ms_per_window: float | None  # verdict to verdict, less what was held back
    tokens_per_window: float | None
    ms_by_class: tuple[float | None, ...]  # the same for windows fresh, kept after fresh, kept after kept
    windows: int
    windows_by_class: tuple[int, ...]
    guesses: GuessCounts
    wasted_share: float | None  # of the stages' time in windows: that of those rolled back
    drafted: int
    accepted: int
    accepted_per_position: tuple[tuple[int, int], ...]  # (first k accepted, had a k-th draft), k = 1..
    first_token_ms: float | None
    gap_p50_ms: float | None
    gap_p95_ms: float | None
    tokens: int
    requests: int
    dropped: int
    held_share: float | None  # of the last second: throttled or paused


class View:
    """Accumulates the events of one engine.

    Args:
        n_stages: stages of the engine.
        draft_lane: has it a draft layer, and so a lane for its steps?
        capacity: events kept for export and for scrolling back.
    """

    def __init__(self, n_stages: int, draft_lane: bool = True, capacity: int = 1 << 20) -> None:
        self.n_stages = n_stages
        self.windows = WindowLog()
        self.tokens = TokenClock()
        self.dropped = 0  # events that the engine's rings had no room for
        self.request = 0
        self.requests = 0
        self.finish = ""  # of the last request that ended
        self.begin_ns: int | None = None  # first event
        self.marks: deque[Mark] = deque(maxlen=4096)
        self.errors: deque[Mark] = deque(maxlen=64)
        self._events = Ring(EVENT_DTYPE, capacity)
        lanes = (*range(n_stages), *((DRAFT_LANE,) if draft_lane else ()), HOST_LANE)
        self._tracks = {lane: SpanTrack() for lane in lanes}
        self._held = SpanTrack()
        self._launched = [(0, 0)] * n_stages  # newest window launched and when
        self._reported = [(0, 0)] * n_stages  # newest window that reported back and when
        self._verdict_end = 0
        self._host_begin = 0  # last time the host began anything but a verdict
        self._running = False

    @property
    def events(self) -> Events:
        """The events kept, in the order they came; a view that dies with the next `take`."""
        return self._events.rows

    @property
    def events_let_go(self) -> int:
        """Events older than those kept."""
        return self._events.dropped

    def events_between(self, t0: int, t1: int) -> Events:
        """A copy of the events kept that reach into [t0, t1], in the order they came; O(log kept + taken)."""
        start = self.events["start_ns"]
        low, high = (
            bisect_left(range(len(start)), at, key=lambda i: int(start[i]))
            for at in (t0 - DRAIN_LAG_NS, t1 + DRAIN_LAG_NS)
        )
        near = self.events[low:high]
        begin = near["start_ns"].astype(np.int64)
        taken: Events = near[(begin + near["dur_ns"].astype(np.int64) >= t0) & (begin <= t1)]
        return taken

    def take(self, events: Events) -> None:
        """Account for drained events."""
        if not len(events):
            return
        self._events.append(events)
        if self.begin_ns is None:
            self.begin_ns = int(events["start_ns"].min())
        self._take_spans(events)
        self._take_launches(events)
        for part in texts(events):
            self._take_request(part)

    # -- what a screen asks

    def rates(self, now_ns: int, history: int = 60) -> Rates:
        """The figures of now."""
        log, clock = self.windows, self.tokens
        gaps = clock.gap_percentiles()
        first = clock.first_token_ns
        return Rates(
            tokens_per_s=clock.now(now_ns),
            tokens_per_s_smoothed=clock.smoothed(),
            tokens_per_s_session=clock.session(),
            history=tuple(clock.history(now_ns, history)),
            ms_per_window=log.busy_ns / log.decoded / 1e6 if log.decoded else None,
            tokens_per_window=log.emitted / log.decoded if log.decoded else None,
            ms_by_class=tuple(
                ns / n / 1e6 if n else None
                for ns, n in zip(log.busy_ns_by_class.tolist(), log.decoded_by_class.tolist(), strict=True)
            ),
            windows=log.decoded,
            windows_by_class=tuple(log.decoded_by_class.tolist()),
            guesses=log.guesses,
            wasted_share=log.wasted_ns / log.run_ns if log.run_ns else None,
            drafted=log.drafted,
            accepted=log.accepted,
            accepted_per_position=tuple(
                (hit, had)
                for hit, had in zip(log.hit_draft.tolist(), log.had_draft.tolist(), strict=True)
                if had
            ),
            first_token_ms=first / 1e6 if first is not None else None,
            gap_p50_ms=gaps[0] if gaps else None,
            gap_p95_ms=gaps[1] if gaps else None,
            tokens=clock.n_tokens,
            requests=self.requests,
            dropped=self.dropped,
            held_share=self._held_share(now_ns),
        )

    def picture(
        self, t0: int, t1: int, columns: int, now_ns: int | None = None, held: LaneState | None = None
    ) -> Picture:
        """The lanes over [t0, t1).

        Args:
            t0: left edge, nanoseconds of the events' clock.
            t1: right edge.
            columns: cells across.
            now_ns: the present where the range reaches up to it: what is launched or held just now has no
                event yet and is drawn as in flight or as `held`. Shares cover only what has reported back.
            held: THROTTLED or PAUSED if the host holds decoding back at present.
        """
        pending, settled = self._present(now_ns, held) if now_ns is not None else ({}, t1)
        bounds = cell_bounds(t0, t1, columns)
        holding = self._held.between(t0, t1)
        known_from = self._known_from(t1)
        if t0 < known_from:
            holding = np.concatenate([holding, _span(t0, known_from, 0, LaneState.UNKNOWN)])
        between = {stage: track.between(t0, t1) for stage, track in self._tracks.items()}
        fates = self._tell_fates(list(between.values()))
        lanes = []
        for stage, of_lane in between.items():
            spans = np.concatenate([of_lane, holding, *pending.get(stage, ())])
            shown = cells(spans, t0, t1, columns)
            lanes.append(
                Lane(
                    stage=stage,
                    runs=tuple(runs(shown, windows_of_cells(spans, shown, bounds))),
                    shares=_shares(spans, max(t0, known_from), min(t1, settled)),
                )
            )
        marks = tuple(
            ((mark.at_ns - t0) * columns // (t1 - t0), mark) for mark in self.marks if t0 <= mark.at_ns < t1
        )
        return Picture(t0, t1, columns, tuple(lanes), marks, fates)

    def _tell_fates(self, lanes: list[SpanArray]) -> dict[int, int]:
        """Give each run the state that its window's fate asks for; the fates by window.

        A guess's fate becomes known after it ran, so runs are told apart when they are looked at. Shades
        alternate over the windows that were not lost: neighbours of a lane differ.
        """
        ran = [lane["window"][lane["state"] == LaneState.RUN_EVEN] for lane in lanes]
        ids = np.unique(np.concatenate(ran)) if ran else np.empty(0, np.uint32)
        fates = self.windows.fates(ids)
        lost = np.isin(fates, LOST)
        turn = np.cumsum(~lost) + (int(ids[0]) if len(ids) else 0) + 1
        states = np.where(turn % 2 == 0, LaneState.RUN_EVEN, LaneState.RUN_ODD).astype(np.uint8)
        states[np.isin(fates, OPEN)] = LaneState.GUESS
        states[lost] = LaneState.LOST
        for lane in lanes:
            is_run = lane["state"] == LaneState.RUN_EVEN
            lane["state"][is_run] = states[np.searchsorted(ids, lane["window"][is_run])]
        return dict(zip(ids.tolist(), fates.tolist(), strict=True))

    def _known_from(self, default: int) -> int:
        """The time from which on the lanes know everything; `default` before the first event."""
        if self.begin_ns is None:
            return default
        return int(self.events["start_ns"][0]) if self.events_let_go else self.begin_ns

    def window_start_before(self, at_ns: int) -> int | None:
        """When the last window of those built by `at_ns` was built: a fresh one, if one of 16 was."""
        rows = self.windows.rows
        end = int(np.searchsorted(rows["start_ns"], at_ns, side="right"))
        near = rows[max(0, end - 16) : end]
        fresh = near[near["fate"] == Fate.FRESH]
        starts = (fresh if len(fresh) else near)["start_ns"]
        return int(starts[-1]) if len(starts) else None

    def windows_before(self, at_ns: int, n: int) -> WindowArray:
        """Copies of the last n windows built by `at_ns`, those that read a prompt left out."""
        rows = self.windows.rows
        end = int(np.searchsorted(rows["start_ns"], at_ns, side="right"))
        near = rows[max(0, end - 2 * n) : end]
        decoded: WindowArray = near[near["fate"] != Fate.PROMPT]
        return decoded[-n:]

    def page_of_windows(self, at_ns: int, n: int, back: int = 0) -> tuple[WindowArray, int]:
        """Copies of n windows as `windows_before` has them, the last one `back` windows before the newest.

        Returns:
            them, and `back` as far as there are windows for a whole page.
        """
        rows = self.windows.rows
        end = int(np.searchsorted(rows["start_ns"], at_ns, side="right"))
        near = rows[max(0, end - 2 * (n + back) - 4096) : end]
        decoded = near[near["fate"] != Fate.PROMPT]
        back = min(max(back, 0), max(0, len(decoded) - n))
        page: WindowArray = decoded[max(0, len(decoded) - back - n) : len(decoded) - back]
        return page, back

    def windows_behind(self, id: int, at_ns: int) -> int:
        """How many windows by `at_ns` came after this one."""
        rows = self.windows.rows
        end = int(np.searchsorted(rows["start_ns"], at_ns, side="right"))
        first = int(np.searchsorted(rows["id"][:end], id, side="right"))
        return int(np.count_nonzero(rows["fate"][first:end] != Fate.PROMPT))

    # -- how events are taken

    def _take_spans(self, events: Events) -> None:
        kind = events["kind"]
        states = _STATE[kind]
        is_span = states > 0
        if not is_span.any():
            return
        spans = np.empty(int(np.count_nonzero(is_span)), SPAN_DTYPE)
        spans["start"] = events["start_ns"][is_span]
        spans["end"] = spans["start"] + events["dur_ns"][is_span].astype(np.int64)
        spans["window"] = events["window"][is_span]
        kind, stage, b = kind[is_span], events["stage"][is_span], events["b"][is_span]
        spans["state"] = np.where((kind == Kind.commit) & (b == 1), LaneState.COMMIT_AHEAD, states[is_span])
        of_host = np.isin(kind, _OF_HOST)
        held = np.isin(kind, _HELD)
        self._held.add(spans[held])
        self._tracks[HOST_LANE].add(spans[of_host])
        for lane, track in self._tracks.items():
            if lane != HOST_LANE:
                track.add(spans[(stage == lane) & ~held & (kind != Kind.verdict)])

    def _take_launches(self, events: Events) -> None:
        kind, stage = events["kind"], events["stage"]
        end = (events["start_ns"] + events["dur_ns"]).astype(np.int64)
        launches, reports = kind == Kind.launch, np.isin(kind, _OF_DEVICE)
        for s in range(self.n_stages):
            self._launched[s] = _newest(self._launched[s], events["window"], end, launches & (stage == s))
            self._reported[s] = _newest(self._reported[s], events["window"], end, reports & (stage == s))
        verdicts = kind == Kind.verdict
        if verdicts.any():
            self._verdict_end = int(end[verdicts].max())
        work = np.isin(kind, (Kind.stage_inputs, Kind.launch))
        if work.any():
            self._host_begin = int(events["start_ns"][work].max())

    def _take_request(self, events: Events) -> None:
        kind = events["kind"]
        for begin in events[kind == Kind.request_begin]:
            self.request, self.requests, self._running = int(begin["window"]), self.requests + 1, True
            self.windows.begin_request()
            self.tokens.begin_request(int(begin["start_ns"]))
            self.marks.append(Mark(int(begin["start_ns"]), "request", f"text {self.requests}"))
        self.windows.take(events, self.request)
        tokens = events[kind == Kind.token]
        self.tokens.take(np.sort(tokens["start_ns"].astype(np.int64)))
        for toggle in events[kind == Kind.toggle]:
            self.marks.append(
                Mark(int(toggle["start_ns"]), "toggle", toggle_text(int(toggle["a"]), int(toggle["b"])))
            )
        for error in events[kind == Kind.error]:
            mark = Mark(int(error["start_ns"]), "error", f"error in stage {int(error['stage'])}")
            self.marks.append(mark)
            self.errors.append(mark)
        for end in events[kind == Kind.request_end]:
            self.finish, self._running = (
                _name(Finish, int(end["a"])),
                False,
            )
            self.tokens.end_request()

    # -- the present, of which no event tells yet

    def _present(self, now_ns: int, held: LaneState | None) -> tuple[dict[int, list[SpanArray]], int]:
        """Spans still open at `now_ns`, by lane, and the time up to which the stages have reported."""
        pending: dict[int, list[SpanArray]] = {}
        settled = now_ns
        if not self._running:
            return pending, settled
        for stage in range(self.n_stages):
            (launched, launch_end), (reported, report_end) = self._launched[stage], self._reported[stage]
            since = max(launch_end, report_end)
            if launched > reported and since < now_ns:
                pending[stage] = [_span(since, now_ns, launched, LaneState.IN_FLIGHT)]
                settled = min(settled, since)
        if held is not None and self._verdict_end > self._host_begin and not pending:
            holding = _span(self._verdict_end, now_ns, 0, held)
            pending = {lane: [holding] for lane in self._tracks}
        return pending, settled

    def _held_share(self, now_ns: int) -> float | None:
        second = 1_000_000_000
        if self.begin_ns is None:
            return None
        spans = self._held.between(now_ns - second, now_ns)
        held = np.minimum(spans["end"], now_ns) - np.maximum(spans["start"], now_ns - second)
        return float(held.sum()) / second


def toggle_text(switch: int, value: int) -> str:
    """A switch event in the words of the command line: `overlap=1`, `draft=mtp`, `theta=0.2`."""
    shown = f"{value / 1e6:g}" if switch in IN_MILLIONTHS else str(value)
    if switch == SwitchId.draft and 0 <= value < len(DRAFTS):
        shown = DRAFTS[value]
    return f"{_name(SwitchId, switch).replace('_', '-')}={shown}"


def _name(of: type[IntEnum], number: int) -> str:
    try:
        return of(number).name
    except ValueError:
        return f"{of.__name__} {number}"


def _newest(
    known: tuple[int, int], window: np.ndarray, end: np.ndarray, where: np.ndarray
) -> tuple[int, int]:
    if not where.any():
        return known
    return max(known[0], int(window[where].max())), max(known[1], int(end[where].max()))


def _shares(spans: SpanArray, t0: int, t1: int) -> tuple[int, ...]:
    if t1 <= t0:
        return percent(np.zeros(len(LaneState), np.int64))
    edges, states = flatten(spans, t0, t1)
    return percent(shares_of_cells(edges, states, np.array([t0, t1], np.int64))[0])


def _span(start: int, end: int, window: int, state: LaneState) -> SpanArray:
    return np.array([(start, end, window, state)], SPAN_DTYPE)
