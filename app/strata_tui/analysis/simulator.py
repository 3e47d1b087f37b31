"""A plain discrete-event simulation of pipelined windows, from the specification, not from the engine.

`simulate(rig, switches, verdicts)` plays the control loop. It takes the same turn again and again, in the
specification's order (drafts, launches front to back, last stage, verdict with its undos). Whatever can be
done has a moment from which it may be: in a turn all that is due is done, and where nothing is, the loop goes
on to the first of those moments. Devices are in-order queues; the draft chain has a queue of its own.
Verdicts are given: nothing is random here.

Where the specification leaves room, this is how it was read:
- a verdict falls `Rig.verdict` after the last stage's end, and launches and drafts go on meanwhile; a draft
  step that runs then is awaited (`Switches.running_step`);
- the catch-up after a verdict gives the chain's first output, but none where an old tail is continued;
- a rolled-back program runs on unless `Rig.cut` says how soon it stops;
- a guess is gated when it could be launched, together with those built behind it by then; they give their
  draft outputs back, since the next window must continue at their position.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from strata_tui.analysis.draft_chain import DraftChain
from strata_tui.analysis.schedule import Rig, Switches, Verdict, Window


def simulate(rig: Rig, switches: Switches, verdicts: Iterable[Verdict]) -> list[Window]:
    """Every window of one text, in the order in which they were built; the verified ones have a `verdict_ms`.

    The text starts at 0 with a draft chain, as after a verdict; it ends with the last verdict, or when the
    tokens wanted are there.
    """
    return play(rig, switches, verdicts)[0]


def play(
    rig: Rig, switches: Switches, verdicts: Iterable[Verdict]
) -> tuple[list[Window], list[tuple[float, float]]]:
    """The same, and when each step of the draft chain began and ended (ms)."""
    simulation = _Simulation(rig, switches, list(verdicts))
    return simulation.text(), simulation.chain.steps


UNKNOWN = Verdict(0, False)


class _Simulation:
    def __init__(self, rig: Rig, switches: Switches, verdicts: list[Verdict]) -> None:
        n_stages = len(rig.run)
        self.rig, self.switches, self.verdicts = rig, switches, verdicts
        handoff = rig.handoff
        self.handoff = [handoff] * (n_stages - 1) if isinstance(handoff, int | float) else list(handoff)
        self.in_flight = max(1, min(switches.windows, n_stages)) if n_stages > 1 else 1
        self.last = n_stages - 1
        self.n_slots = max(self.in_flight, switches.allocated or 0)
        self.behind = 2 if switches.overlap else 1  # overlap: queued while the stage between still runs
        self.now = 0.0
        self.free = [0.0] * n_stages  # when the stage's queue is empty
        self.slot_free = [[0.0] * self.n_slots for _ in rig.run]  # of all programs, commits and undos too
        self.slot_read = [[0.0] * self.n_slots for _ in rig.run]  # of runs: they read the slot's hand-off
        self.windows: list[Window] = []  # all that were ever built
        self.queue: list[Window] = []  # in flight, oldest first: W0 and the guesses
        self.next_slot = 0
        self.guesses = self.emitted = self.verified = 0
        self.gate_shut = False
        self.chain = DraftChain(rig.draft)
        self.spoken_for = 0  # outputs of the chain that windows use
        self.next_rows: int | None = None  # of the next window; None: the queue has changed since

    def text(self) -> list[Window]:
        if self.switches.first_rows is None:
            self.new_chain(kept=False)
        while not self.ended:
            if self.in_flight == 1:
                self.window_alone()
            else:
                self.pass_to(self.turn())
        return self.windows

    def pass_to(self, moment: float) -> None:
        assert moment < inf, f"deadlock: {self.queue}"
        self.now = moment if moment > self.now else self.now
        self.chain.run_until(self.now)

    @property
    def ended(self) -> bool:
        wanted = self.switches.tokens
        return self.verified == len(self.verdicts) or (wanted is not None and self.emitted >= wanted)

    def window_alone(self) -> None:
        """The turns of one window where none is in flight beside it: nothing comes between them."""
        self.pass_to(self.may_build())
        self.build()
        (window,) = self.queue
        for stage in range(self.last + 1):
            self.pass_to(self.may_launch(window, stage, None))
            self.run(0, window, stage)
        while (at := self.may_judge(window)) > self.now:
            self.pass_to(at)
        self.verdict()

    def turn(self) -> float:
        """One turn of the control loop; returns when the next one is due: as soon as anything may be done."""
        now = self.now
        next_turn = self.may_build()
        if next_turn <= now:
            self.build()
            next_turn = self.may_build()
        ahead: Window | None = None
        for i, window in enumerate(self.queue):
            stage = len(window.start_ms)
            if stage < self.last:
                at = self.may_launch(window, stage, ahead)
                if at <= now:
                    if i > 0 and stage == 0 and window.estimate < self.switches.theta:
                        self.gate(i)
                        return now
                    self.launch_front(i, window, stage)
                    at = self.may_launch(window, stage + 1, ahead) if stage + 1 < self.last else inf
                next_turn = at if at < next_turn else next_turn
            ahead = window
        if self.queue:
            at = self.last_stage_and_verdict(self.queue[0])
            next_turn = at if at < next_turn else next_turn
        return next_turn

    def last_stage_and_verdict(self, w0: Window) -> float:
        """Launches W0 on the last stage, or takes its verdict; returns when there is more to do."""
        n = len(w0.start_ms)
        if n < self.last:
            return inf
        if n == self.last:
            at = self.may_launch(w0, n, None)
            if at > self.now:
                return at
            self.run(0, w0, n)
        at = self.may_judge(w0)
        if at <= self.now:
            self.verdict()
        return at

    # The draft chain

    def new_chain(self, kept: bool) -> None:
        """Orders what the windows in flight will need; after a kept guess it is forced, or continued."""
        rig, switches = self.rig, self.switches
        ahead = switches.chain_ahead and self.in_flight > 1
        if not kept:
            self.spoken_for = 0
        elif not ahead:
            self.spoken_for = sum(w.rows for w in self.queue) - 1
        more = self.in_flight - len(self.queue) + ahead
        wanted = self.spoken_for + self.rows_of_next() + (more - 1) * switches.rows - (not self.queue)
        catch_up = rig.draft if rig.catch_up is None else rig.catch_up
        waits = switches.running_step == "queued"
        if kept and ahead:
            self.chain.go_on(self.now, wanted, 0.0 if switches.late_catch_up else catch_up, waits)
        else:
            self.chain.begin(self.now, wanted, catch_up, waits)

    # Windows

    def may_build(self) -> float:
        """When the tokens of W0, or of the next guess, are there."""
        ahead = len(self.queue)
        if ahead == self.in_flight or (ahead and (self.gate_shut or self.chain.is_cut)):
            return inf
        rows = self.rows_of_next()
        if rows == 0:
            return inf
        return self.chain.lands(self.spoken_for + (rows if ahead else rows - 1))

    def build(self) -> None:
        guess = bool(self.queue)
        rows = self.rows_of_next()
        window = Window(len(self.windows), self.next_slot, rows, self.now, fate="guess" if guess else "fresh")
        self.next_slot = (self.next_slot + 1) % self.n_slots
        self.spoken_for += rows if guess else rows - 1
        if guess:
            self.guesses += 1
            every = self.switches.force_miss
            window.forced_to_miss = every > 0 and self.guesses % every == 0
            before = self.verified + len(self.queue) - 1
            window.estimate = self.verdicts[before].estimate if before < len(self.verdicts) else 1.0
        self.windows.append(window)
        self.queue.append(window)
        self.next_rows = None

    def rows_of_next(self) -> int:
        """Of the next window; no more than the tokens still wanted if all windows in flight come true."""
        if self.next_rows is None:
            switches = self.switches
            rows = switches.rows if self.windows else switches.first_rows or switches.rows
            rows = self.truth(len(self.queue)).rows or rows
            if switches.tokens is not None:
                wanted = switches.tokens - self.emitted
                for window in self.queue:
                    wanted -= window.rows
                rows = rows if rows < wanted else max(0, wanted)
            self.next_rows = rows
        return self.next_rows

    def drop(self, first: int, launched: str, otherwise: str) -> None:
        """Takes the guesses from queue[first] on out of flight, with the fates named."""
        self.next_rows = None
        if first >= len(self.queue):
            return
        for window in reversed(self.queue[first:]):
            if window.start_ms:
                window.fate = launched
                self.cut_short(window)
            else:
                window.fate = otherwise
                self.next_slot = window.slot
        del self.queue[first:]

    def cut_short(self, window: Window) -> None:
        for stage, end in enumerate(window.end_ms):
            if end > self.now and self.rig.cut is not None:
                end = min(end, max(window.floor_ms[stage], self.now) + self.rig.cut)
                window.start_ms[stage] = min(window.start_ms[stage], end)
                window.end_ms[stage] = self.free[stage] = end
                self.slot_free[stage][window.slot] = self.slot_read[stage][window.slot] = end

    # Launches

    def may_launch(self, window: Window, stage: int, ahead: Window | None) -> float:
        """When its input is promised, its slot has nothing queued, nobody reads the hand-off that it will
        write, and the window ahead of a guess is done there."""
        if ahead is not None and (stage >= self.switches.spec_depth or len(ahead.end_ms) <= stage):
            return inf
        at = self.slot_free[stage][window.slot]
        if stage < self.last and self.slot_read[stage + 1][window.slot] > at:
            at = self.slot_read[stage + 1][window.slot]
        if stage >= self.behind and window.end_ms[stage - self.behind] > at:
            at = window.end_ms[stage - self.behind]
        if ahead is not None and ahead.end_ms[stage] > at:
            at = ahead.end_ms[stage]
        return at

    def launch_front(self, i: int, window: Window, stage: int) -> None:
        """Launches W0 (i = 0) or a guess on its next front stage."""
        if i > 0:
            ahead = self.queue[i - 1]
            if stage == 0:
                window.depth = i
            if stage not in ahead.committed:
                ahead.committed.add(stage)
                self.program(stage, ahead.slot, self.rig.commit)
        self.run(i, window, stage)

    def gate(self, first: int) -> None:
        self.spoken_for -= sum(w.rows for w in self.queue[first:])
        self.gate_shut = True
        self.drop(first, launched="", otherwise="gated")

    def run(self, i: int, window: Window, stage: int) -> None:
        floor = self.now + self.rig.launch
        floor = floor if floor > self.free[stage] else self.free[stage]
        start = floor
        if stage:
            input_there = window.end_ms[stage - 1] + self.handoff[stage - 1]
            start = floor if floor > input_there else input_there
        own = self.truth(i).run  # where it is known and the window will be verified
        end = start + (self.rig.run[stage] if own is None else own[stage])
        window.floor_ms.append(floor)
        window.start_ms.append(start)
        window.end_ms.append(end)
        self.free[stage] = self.slot_free[stage][window.slot] = self.slot_read[stage][window.slot] = end

    def truth(self, ahead: int) -> Verdict:
        """What is known of the window behind `ahead` others in flight, if all of those come true."""
        at = self.verified + ahead
        if at >= len(self.verdicts):
            return UNKNOWN
        for i in range(self.verified, at):
            if not self.verdicts[i].guess_right:
                return UNKNOWN
        return self.verdicts[at]

    def program(self, stage: int, slot: int, ms: float) -> None:
        """Queues a program of a state (a commit, an undo) on a stage."""
        self.free[stage] = self.slot_free[stage][slot] = max(self.free[stage], self.now) + ms

    # The verdict

    def may_judge(self, w0: Window) -> float:
        """When the host has W0's verdict and, where that is awaited, the draft step that runs has ended."""
        at = w0.end_ms[self.last] + self.rig.verdict
        if at <= self.now and self.switches.running_step == "awaited":
            return max(at, self.chain.cut())
        return at

    def verdict(self) -> None:
        w0, truth = self.queue.pop(0), self.verdicts[self.verified]
        w0.verdict_ms, w0.accepted = self.now, min(truth.accepted, w0.rows - 1)
        self.verified += 1
        self.emitted += w0.accepted + 1
        self.chain.is_cut, self.gate_shut, self.next_rows = False, False, None
        self.program(self.last, w0.slot, self.rig.commit)
        guess = self.queue[0] if self.queue else None
        if self.ended:
            self.drop(0, launched="ended", otherwise="late")
        elif guess and guess.start_ms and truth.guess_right and not guess.forced_to_miss:
            self.commit_fronts(w0)
            guess.fate = "kept after fresh" if w0.fate == "fresh" else "kept after kept"
            self.new_chain(kept=True)
        else:
            undone = [stage for stage in w0.committed if self.is_undone(stage, w0)]
            self.drop(0, launched="rolled back", otherwise="late")
            for stage in undone:
                self.program(stage, w0.slot, self.rig.undo)
            self.commit_fronts(w0)
            self.new_chain(kept=False)

    def is_undone(self, stage: int, w0: Window) -> bool:
        """Was more committed there than the verdict's rows: of W0, or of the guess behind it?"""
        too_far = w0.accepted + 1 < w0.rows or stage in self.queue[0].committed
        return too_far or self.switches.undo_again

    def commit_fronts(self, w0: Window) -> None:
        for stage in range(self.last):
            if stage not in w0.committed:
                self.program(stage, w0.slot, self.rig.commit)
