"""An engine without a model: the events of a seeded schedule on a clock that the test moves.

It has the face of `strata_tui.engine.Engine` and `Session` as far as the console uses it. Nothing runs by
itself: `engine.clock.advance(ms)` moves time, and whoever reads sees what would have happened by then.
Drafts and verdicts follow from the seed, times from `stage_ms`; overlap changes the order of launches.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Finish, Kind, SwitchId

MS = 1_000_000
US = 1_000


def event(kind: Kind, start_ns: int, dur_ns: int = 0, **fields: int) -> tuple[int, ...]:
    """One row for `np.array([...], EVENT_DTYPE)`."""
    stage = fields.get("stage", HOST_LANE)
    rest = (fields.get(name, 0) for name in ("rows", "a", "b"))
    return (start_ns, dur_ns, fields.get("window", 0), int(kind), stage, *rest)


class Clock:
    """Nanoseconds that pass when told to."""

    def __init__(self, now_ns: int = 1_000_000_000) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, ms: float) -> None:
        self.now_ns += int(ms * MS)


@dataclass
class FakeSwitches:
    """Asked-for values; the schedule takes them over at the next window."""

    overlap: bool = False
    pipeline_windows: int = 0
    draft: str = "mtp"
    draft_max: int = 4
    draft_min_p: float = 0.0
    theta: float = 0.2
    short_read: int = 64
    rate: float = 0.0
    paused: bool = False
    _live: dict[str, Any] = field(default_factory=dict)

    def in_force(self) -> dict[str, Any]:
        return dict(self._live)

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SwitchId.__members__ if hasattr(self, name)}


class FakeSession:
    """One request at a time; its tokens count up through `words`."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._unread: list[int] = []
        self.tokens: list[int] = []
        self.finish = "stop"
        self.error = ""
        self.position = 0

    @property
    def running(self) -> bool:
        self._engine.simulate()
        return self.finish == ""

    def start(self, tokens: list[int], max_tokens: int, sampling: Any, end_tokens: list[int]) -> None:
        assert self.finish, "a request is running"
        self.finish, self.tokens, self._unread, self.error = "", list(tokens), [], ""
        self._engine.begin(self, len(tokens), max_tokens, sampling)

    def read(self) -> list[int]:
        self._engine.simulate()
        unread, self._unread = self._unread, []
        return unread

    def cancel(self) -> None:
        self._engine.cancelled = True

    def stats(self) -> dict[str, Any]:
        return {"begin_ns": self._engine.begun_ns, "windows": 3, "window_ns": 30 * MS}


class FakeEngine:
    """See the module's docstring.

    Args:
        stage_ms: time of each stage for one window.
        seed: of drafts and verdicts.
        text: tokens that the model "writes", over and over.
        fail_at: a window whose program fails, 0 for none.
    """

    def __init__(
        self,
        stage_ms: tuple[float, ...] = (3.0, 3.4),
        seed: int = 7,
        text: tuple[int, ...] = tuple(range(40)),
        clock: Clock | None = None,
        fail_at: int = 0,
    ) -> None:
        self.clock = clock or Clock()
        self.switches = FakeSwitches()
        self.stages = [
            SimpleNamespace(index=i, device="cpu 1 thread", first_layer=6 * i, last_layer=6 * i + 5)
            for i in range(len(stage_ms))
        ]
        self.n_layers = 6 * len(stage_ms)
        self.context = 4096
        self.has_draft_layer = True
        self.emulated = False
        self.dropped_events = 0
        self.tracing = True
        self.closed = False
        self.cancelled = False
        self.begun_ns = 0
        self.sampling: list[Any] = []  # of each request, in order
        self._stage_ms = stage_ms
        self._random = np.random.default_rng(seed)
        self._text = text
        self._fail_at = fail_at
        self._session: FakeSession | None = None
        self._future: list[tuple[int, int, tuple[int, ...]]] = []  # events by the time they become known
        self._emits: list[tuple[int, int]] = []  # tokens by time
        self._window = self._request = self._position = self._drafts = 0
        self._free = [0] * len(stage_ms)
        self._t = 0
        self._written = self._limit = 0
        self._finish: tuple[int, str] | None = None

    # -- the face

    def session(self) -> FakeSession:
        return FakeSession(self)

    def now_ns(self) -> int:
        return self.clock.now_ns

    def events(self) -> np.ndarray:
        self.simulate()
        known = []
        while self._future and self._future[0][0] <= self.clock.now_ns:
            known.append(heapq.heappop(self._future)[2])
        return np.array(known, EVENT_DTYPE)

    def close(self) -> None:
        self.closed = True

    # -- the schedule

    def begin(self, session: FakeSession, n_prompt: int, max_tokens: int, sampling: Any) -> None:
        self._session, self.cancelled, self._finish = session, False, None
        self.sampling.append(sampling)
        self._request += 1
        self.begun_ns = self.clock.now_ns
        self._t = max(self._t, self.clock.now_ns)
        self._note(Kind.request_begin, self._t, window=self._request, a=n_prompt)
        self._toggles(first=self._request == 1)
        self._written, self._limit, self._drafts, self._position = 0, max_tokens or 200, 0, n_prompt
        self.unsaid: list[str] = []  # notices
        for start in range(0, n_prompt, 32):
            self._window += 1
            for s, ms in enumerate(self._stage_ms):
                begin = max(self._t, self._free[s])
                self._note(
                    Kind.prefill_chunk,
                    begin,
                    int(2 * ms * MS),
                    stage=s,
                    window=self._window,
                    rows=32,
                    a=start,
                )
                self._free[s] = self._t = begin + int(2 * ms * MS)

    def simulate(self) -> None:
        """Let happen what happens up to now."""
        while self._session is not None and self._finish is None and self._t <= self.clock.now_ns:
            self._run_window()
        while self._emits and self._emits[0][0] <= self.clock.now_ns:
            assert self._session is not None
            token = self._emits.pop(0)[1]
    def notices(self) -> list[str]:
        lines, self.unsaid = self.unsaid, []
        return lines

            self._session.tokens.append(token)
            self._session._unread.append(token)
        if self._session is not None and self._finish and self._finish[0] <= self.clock.now_ns:
            self._session.finish = self._finish[1]
            if self._session.finish == "error":
                self._session.error = f"[stage 1] window {self._window}: injected failure"
            self._session = None

    def _note(self, kind: Kind, start: int, dur: int = 0, **fields: int) -> None:
        heapq.heappush(self._future, (start + dur, len(self._future), event(kind, start, dur, **fields)))

    def _toggles(self, first: bool = False) -> None:
        values = self.switches._values()
        for name, value in values.items():
            if not first and self.switches._live.get(name) != value:
                shown = value if isinstance(value, (bool, int)) else 0
                self._note(Kind.toggle, self._t, a=SwitchId[name], b=int(shown))
        self.switches._live = values

    def _run_window(self) -> None:
        self._toggles()
        self._window += 1
        window, overlap, t = self._window, self.switches.overlap, self._t
        rows = 1 + self._drafts
        self._note(Kind.window, t, window=window, rows=rows, a=self._position)
        for k in range(1, rows):
            self._note(Kind.draft_token, t, window=window, rows=k, a=self._next(k), b=700_000)
        jitter = self._random.uniform(0.95, 1.05, len(self._stage_ms))
        host, done = t, t
        for s, ms in enumerate(self._stage_ms):
            if not overlap:
                host = max(host, done)
            self._note(Kind.stage_inputs, host, 40 * US, stage=s, window=window)
            self._note(
                Kind.launch, host + 40 * US, 160 * US, stage=s, window=window, a=int(overlap and s > 0)
            )
            host += 200 * US
            begin = max(host, self._free[s])
            ready = max(begin + 2 * US, done)
            self._note(Kind.wait_ready, begin, ready - begin, stage=s, window=window)
            if self._fail_at == window and s == 1:
                self._note(Kind.error, ready, stage=s, window=window)
                self._end(ready, "error")
                return
            run = int(ms * MS * (1 + 0.05 * rows) * jitter[s])
            self._note(Kind.run, ready, run, stage=s, window=window, rows=rows, a=self._position)
            done = self._free[s] = ready + run
            if not overlap or s == len(self._stage_ms) - 1:
                self._note(Kind.sync, done, 300 * US, stage=s, window=window)
                done += 300 * US
        accepted = int(np.argmin(np.append(self._random.random(rows - 1) < 0.72, False)))
        emitted = min(accepted + 1, self._limit - self._written)
        self._note(Kind.verdict, done, 120 * US, window=window, rows=rows, a=accepted, b=emitted)
        t = done + 120 * US
        for i in range(emitted):
            self._note(Kind.token, t + i, window=window, a=self._next(i + 1), b=self._position + 1 + i)
            self._emits.append((t, self._next(i + 1)))
        self._written += emitted
        self._position += emitted
        for s in range(len(self._stage_ms)):
            self._note(Kind.commit, t, 350 * US, stage=s, window=window, rows=emitted)
            self._free[s] = t + 350 * US
        self._drafts = {"none": 0}.get(self.switches.draft, self.switches.draft_max)
        for step in range(self._drafts):
            self._note(
                Kind.draft_step, t, 240 * US, stage=DRAFT_LANE, window=window, a=step, b=self._next(step)
            )
            t += 240 * US
        if self.switches.rate:
            until = self._t + int(emitted / self.switches.rate * 1e9)
            if until > t:
                self._note(Kind.throttle, t, until - t, stage=HOST_LANE)
                t = until
        self._t = t
        if self.cancelled or self._written >= self._limit:
            self._end(t, "cancel" if self.cancelled else "length")

    def _end(self, at: int, finish: str) -> None:
        self._note(Kind.request_end, at, window=self._request, a=Finish[finish], b=self._written)
        self._t, self._finish = at, (at, finish)

    def _next(self, ahead: int) -> int:
        return self._text[(self._written + ahead - 1) % len(self._text)]
