"""An engine without a model: the events of a seeded schedule on a clock that the test moves.

It has the face of `strata_tui.engine.Engine` and `Session` as far as the console uses it. Nothing runs by
itself: `engine.clock.advance(ms)` moves time, and whoever reads sees what would have happened by then.
Drafts and verdicts follow from the seed, times from `stage_ms`; overlap changes the order of launches; with
windows in flight guesses run ahead on the front stages, and are kept or rolled back.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from strata_tui.events import (
    DRAFT_LANE,
    EVENT_DTYPE,
    HOST_LANE,
    IN_MILLIONTHS,
    Finish,
    Kind,
    MissCause,
    SwitchId,
    WindowFate,
)

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
    force_miss: int = 0
    spec_depth: int = 32
    chain_ahead: bool = True
    paused: bool = False
    steps: int = 0  # windows let through while paused
    _live: dict[str, Any] = field(default_factory=dict)

    def step(self) -> None:
        self.steps += 1

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
        guesses = (
            "built gated late launched kept rolled_back ended bonus_wrong draft_wrong forced "
            "second_choice_right"
        )
        return {
            "begin_ns": self._engine.begun_ns,
            "generated": 7,
            "windows": 3,
            "window_ns": 30 * MS,
            "windows_by_class": [3, 0, 0],
            "window_ns_by_class": [30 * MS, 0, 0],
            "guesses": dict.fromkeys(guesses.split(), 0),
        }


@dataclass
class FakeWindow:
    """A window in flight."""

    id: int
    rows: int
    position: int
    built_ns: int
    fate: WindowFate = WindowFate.fresh
    estimate: float = 1.0
    forced: bool = False
    launched_ns: int = 0  # on stage 0
    done_ns: list[int] = field(default_factory=list)  # by stage
    committed: set[int] = field(default_factory=set)  # ahead of the verdict


class FakeEngine:
    """See the module's docstring.

    Args:
        stage_ms: time of each stage for one window.
        seed: of drafts and verdicts.
        text: tokens that the model "writes", over and over.
        fail_at: a window whose program fails, 0 for none.
        acceptance: probability of a draft, and of a guessed bonus, to be right.
    """

    def __init__(
        self,
        stage_ms: tuple[float, ...] = (3.0, 3.4),
        seed: int = 7,
        text: tuple[int, ...] = tuple(range(40)),
        clock: Clock | None = None,
        fail_at: int = 0,
        acceptance: float = 0.72,
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
        self.pipeline_max = len(stage_ms) if len(stage_ms) > 1 else 0
        self.emulated = False
        self.dropped_events = 0
        self.tracing = True
        self.closed = False
        self.unsaid: list[str] = []  # notices
        self.cancelled = False
        self.begun_ns = 0
        self.sampling: list[Any] = []  # of each request, in order
        self._stage_ms = stage_ms
        self._random = np.random.default_rng(seed)
        self._text = text
        self._fail_at = fail_at
        self._session: FakeSession | None = None
        self._future: list[tuple[int, int, tuple[int, ...]]] = []  # events by the time they become known
        self._n_events = 0
        self._emits: list[tuple[int, int]] = []  # tokens by time
        self._window = self._request = self._position = self._drafts = 0
        self._free = [0] * len(stage_ms)
        self._acceptance = acceptance
        self._flight: list[FakeWindow] = []  # W0 and the guesses behind it
        self._n_guesses = 0
        self._t = 0
        self._written = self._limit = 0
        self._finish: tuple[int, str] | None = None

    # -- the face

    def notices(self) -> list[str]:
        lines, self.unsaid = self.unsaid, []
        return lines

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
        self._written, self._limit, self._drafts, self._position = 0, max_tokens or 200, 0, n_prompt - 1
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
            if self.switches.paused and not self.switches.steps:
                self._hold()
                break
            self.switches.steps = max(0, self.switches.steps - 1)
            self._run_window()
        while self._emits and self._emits[0][0] <= self.clock.now_ns:
            assert self._session is not None
            token = self._emits.pop(0)[1]
            self._session.tokens.append(token)
            self._session._unread.append(token)
        if self._session is not None and self._finish and self._finish[0] <= self.clock.now_ns:
            self._session.finish = self._finish[1]
            if self._session.finish == "error":
                self._session.error = f"[stage 1] window {self._window}: injected failure"
            self._session = None

    def _hold(self) -> None:
        now = self.clock.now_ns
        if self._t < now:
            self._note(Kind.paused, self._t, now - self._t)
            self._t = now
        if self.cancelled:
            self._end(now, "cancel")

    def _note(self, kind: Kind, start: int, dur: int = 0, **fields: int) -> None:
        self._n_events += 1
        heapq.heappush(self._future, (start + dur, self._n_events, event(kind, start, dur, **fields)))

    def _toggles(self, first: bool = False) -> None:
        values = self.switches._values()
        values["pipeline_windows"] = min(values["pipeline_windows"], self.pipeline_max)
        for name, value in values.items():
            if not first and self.switches._live.get(name) != value:
                scale = 10**6 if SwitchId[name] in IN_MILLIONTHS else 1
                shown = 0 if isinstance(value, str) else round(value * scale)
                self._note(Kind.toggle, self._t, a=SwitchId[name], b=shown)
        self.switches._live = values

    def _run_window(self) -> None:
        self._toggles()
        if self._flight or self.switches._live["pipeline_windows"] > 1:
            self._run_pipelined()
        else:
            self._run_serial()

    def _run_serial(self) -> None:
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
        _, emitted = self._verdict(window, rows, done)
        t = done + 120 * US
        for s in range(len(self._stage_ms)):
            self._note(Kind.commit, t, 350 * US, stage=s, window=window, rows=emitted)
            self._free[s] = t + 350 * US
        self._after_verdict(window, self._chain(window, t), emitted)

    def _verdict(self, window: int, rows: int, at: int) -> tuple[int, int]:
        """Accepted drafts and tokens emitted, 120 us later."""
        accepted = int(np.argmin(np.append(self._random.random(rows - 1) < self._acceptance, False)))
        emitted = min(accepted + 1, self._limit - self._written)
        self._note(Kind.verdict, at, 120 * US, window=window, rows=rows, a=accepted, b=emitted)
        t = at + 120 * US
        for i in range(emitted):
            self._note(Kind.token, t + i, window=window, a=self._next(i + 1), b=self._position + 1 + i)
            self._emits.append((t, self._next(i + 1)))
        self._written += emitted
        self._position += emitted
        return accepted, emitted

    def _chain(self, window: int, t: int) -> int:
        """The draft chain behind a verdict; when it ends."""
        self._drafts = {"none": 0}.get(self.switches.draft, self.switches.draft_max)
        for step in range(self._drafts):
            self._note(
                Kind.draft_step, t, 240 * US, stage=DRAFT_LANE, window=window, a=step, b=self._next(step)
            )
            t += 240 * US
        return t

    def _after_verdict(self, window: int, t: int, emitted: int) -> None:
        if self.switches.rate:
            until = self._t + int(emitted / self.switches.rate * 1e9)
            if until > t:
                self._note(Kind.throttle, t, until - t, stage=HOST_LANE)
                t = until
        self._t = t
        if self.cancelled or self._written >= self._limit:
            self._end(t, "cancel" if self.cancelled else "length")

    # -- windows in flight

    def _run_pipelined(self) -> None:
        """From one verdict to the next: W0 to its end, the guesses behind it as far as they get by then."""
        if not self._flight:
            self._flight = [self._built(self._t, self._position)]
        first = self._flight[0]
        for s in range(len(first.done_ns), len(self._stage_ms)):
            self._run_on(first, s, max(self._t, first.built_ns, *first.done_ns[-1:]))
        at = first.done_ns[-1] + 300 * US
        self._note(Kind.sync, first.done_ns[-1], 300 * US, stage=len(self._stage_ms) - 1, window=first.id)
        self._run_guesses(before=at)
        accepted, emitted = self._verdict(first.id, first.rows, at)
        t = at + 120 * US
        over = self.cancelled or self._written >= self._limit
        launched = [g for g in self._flight[1:] if g.done_ns]
        bonus = bool(self._random.random() < self._acceptance)
        if launched and not over and accepted == first.rows - 1 and bonus and not launched[0].forced:
            self._keep(launched[0], t)
            self._chain(first.id, t)
        else:
            cause = MissCause.bonus_wrong if accepted == first.rows - 1 else MissCause.drafts_wrong
            self._give_up(launched, t, over, MissCause.forced if launched and launched[0].forced else cause)
            t = self._chain(first.id, t)
        self._settle(first, at + 120 * US, emitted)
        self._after_verdict(first.id, t, emitted)

    def _built(self, at: int, position: int, guess: bool = False) -> FakeWindow:
        self._window += 1
        window = FakeWindow(self._window, 1 + self._drafts, position, at)
        if guess:
            self._n_guesses += 1
            miss = self.switches.force_miss
            window.fate = WindowFate.guess
            window.forced = bool(miss and self._n_guesses % miss == 0)
            window.estimate = float(self._random.beta(2.5, 2))
        self._note(Kind.window, at, window=window.id, rows=window.rows, a=position, b=window.fate)
        for k in range(0 if guess else 1, window.rows):
            self._note(Kind.draft_token, at, window=window.id, rows=k, a=self._next(k), b=700_000)
        if guess:
            estimate = int(window.estimate * 1e6)
            self._note(Kind.guess_built, at, window=window.id, rows=window.rows, a=estimate, b=window.forced)
        return window

    def _run_on(self, window: FakeWindow, s: int, earliest: int) -> None:
        """Inputs, launch and run on a stage as soon as it is free."""
        ready = max(earliest, self._free[s]) + 200 * US
        self._note(Kind.stage_inputs, ready - 200 * US, 40 * US, stage=s, window=window.id)
        self._note(Kind.launch, ready - 160 * US, 160 * US, stage=s, window=window.id)
        window.launched_ns = window.launched_ns or ready - 160 * US
        run = int(self._stage_ms[s] * MS * (1 + 0.05 * window.rows) * self._random.uniform(0.95, 1.05))
        self._note(Kind.run, ready, run, stage=s, window=window.id, rows=window.rows, a=window.position)
        self._free[s] = ready + run
        window.done_ns.append(ready + run)

    def _run_guesses(self, before: int) -> None:
        most = self.switches._live["pipeline_windows"]
        while self._drafts and len(self._flight) < most:
            ahead = self._flight[-1]
            at = max(self._t, ahead.built_ns) + 240 * US * ahead.rows
            if at >= before:
                break
            self._flight.append(guess := self._built(at, ahead.position + ahead.rows, guess=True))
            estimate = int(guess.estimate * 1e6)
            if guess.estimate < self.switches.theta:
                self._note(Kind.guess_gated, at, window=guess.id, rows=guess.rows, a=estimate)
                self._flight.pop()
                break
            self._launch_ahead(ahead, guess, before)
            if not guess.done_ns:
                break
            fields = {"window": guess.id, "rows": guess.rows, "a": len(self._flight) - 1, "b": estimate}
            self._note(Kind.guess_launched, guess.launched_ns, **fields)
        for ahead, guess in zip(self._flight[:-1], self._flight[1:], strict=True):
            if guess.done_ns:
                self._launch_ahead(ahead, guess, before)

    def _launch_ahead(self, ahead: FakeWindow, guess: FakeWindow, before: int) -> None:
        """On further front stages, each after the window ahead is done and committed there."""
        for s in range(len(guess.done_ns), min(len(self._stage_ms) - 1, self.switches.spec_depth)):
            if len(ahead.done_ns) <= s:
                return
            earliest = max(guess.built_ns, ahead.done_ns[s], self._free[s], *guess.done_ns[-1:])
            if earliest + 400 * US >= before:
                return
            self._note(Kind.commit, earliest, 350 * US, stage=s, window=ahead.id, rows=ahead.rows, b=1)
            ahead.committed.add(s)
            self._run_on(guess, s, earliest + 350 * US)

    def _keep(self, guess: FakeWindow, t: int) -> None:
        was_fresh = self._flight[0].fate == WindowFate.fresh
        guess.fate = WindowFate.kept_after_fresh if was_fresh else WindowFate.kept_after_kept
        finished = sum(done <= t for done in guess.done_ns)
        self._note(Kind.guess_kept, t, window=guess.id, rows=guess.rows, a=finished, b=guess.fate)
        late = [g for g in self._flight[1:] if not g.done_ns]
        for g in late:
            self._note(Kind.guess_late, t, window=g.id, rows=g.rows)
        self._flight = [g for g in self._flight[1:] if g.done_ns]

    def _give_up(self, launched: list[FakeWindow], t: int, over: bool, cause: MissCause) -> None:
        if launched and not over:
            second = int(cause == MissCause.bonus_wrong and self._random.random() < 0.4)
            self._note(Kind.miss, t, window=self._flight[0].id, a=cause, b=second)
        for g in self._flight[1:]:
            finished = sum(done <= t for done in g.done_ns)
            fields = {"window": g.id, "rows": g.rows}
            if g not in launched:
                self._note(Kind.guess_late, t, **fields)
            elif over:
                self._note(Kind.guess_ended, t, **fields, a=len(g.done_ns))
            else:
                self._note(Kind.guess_rolled_back, t, **fields, a=len(g.done_ns), b=finished)
        self._flight = []

    def _settle(self, verified: FakeWindow, t: int, rows: int) -> None:
        """Commit it where that has not been done ahead; undo where more rows were committed than count."""
        for s in range(len(self._stage_ms)):
            ahead = s in verified.committed
            if ahead and self._flight:
                continue
            begin = max(t, self._free[s])
            kind = Kind.undo if ahead else Kind.commit
            self._note(kind, begin, 500 * US if ahead else 350 * US, stage=s, window=verified.id, rows=rows)
            self._free[s] = begin + (500 * US if ahead else 350 * US)

    def _end(self, at: int, finish: str) -> None:
        self._note(Kind.request_end, at, window=self._request, a=Finish[finish], b=self._written)
        self._t, self._finish = at, (at, finish)

    def _next(self, ahead: int) -> int:
        return self._text[(self._written + ahead - 1) % len(self._text)]
