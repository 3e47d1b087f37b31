"""The schedule of pipelined windows as plainly as the specification has it, and as slowly: what the app's
simulator, which goes from one moment that matters to the next, must give to the bit.

`play(rig, switches, verdicts)` plays the control loop: at every moment at which something finishes it
takes the same turn, in the specification's order (what finished, drafts, launches front to back, last stage,
verdict with its undos), until nothing more can be done, and goes to the next such moment. Devices are
in-order queues; the draft chain has a queue of its own. Verdicts are given: nothing is random here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from strata_tui.analysis.schedule import Rig, Switches, Verdict, Window


def play(
    rig: Rig, switches: Switches, verdicts: Iterable[Verdict]
) -> tuple[list[Window], list[tuple[float, float]]]:
    """Every window in the order in which they were built; begin and end of each draft step, ms."""
    simulation = _Simulation(rig, switches, list(verdicts))
    return simulation.text(), simulation.steps


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
        self.now = 0.0
        self.wakes: list[float] = []
        self.free = [0.0] * n_stages  # when the stage's queue is empty
        self.slot_free = [[0.0] * self.n_slots for _ in rig.run]  # of all programs, commits and undos too
        self.slot_read = [[0.0] * self.n_slots for _ in rig.run]  # of runs: they read the slot's hand-off
        self.windows: list[Window] = []  # all that were ever built
        self.queue: list[Window] = []  # in flight, oldest first: W0 and the guesses
        self.next_slot = 0
        self.guesses = self.emitted = self.verified = 0
        self.gate_shut = False
        self.verdict_at: float | None = None  # of W0, once its last stage has ended
        self.outputs = self.spoken_for = self.wanted = 0  # of the chain: landed, used by windows, ordered
        self.step_end: float | None = None
        self.steps: list[tuple[float, float]] = []
        self.catch_up_owed = 0.0
        self.chain_is_cut = False

    def text(self) -> list[Window]:
        if self.switches.first_rows is None:
            self.new_chain(kept=False)
        while not self.ended:
            if not self.turn():
                self.sleep()
        return self.windows

    @property
    def ended(self) -> bool:
        wanted = self.switches.tokens
        return self.verified == len(self.verdicts) or (wanted is not None and self.emitted >= wanted)

    def turn(self) -> bool:
        """One turn of the control loop; True if it did anything. Undos are queued by the verdict itself."""
        return any(
            [
                self.take_draft_output(),
                self.build_next(),
                *[self.launch_front(i) for i in range(len(self.queue))],
                self.launch_last(),
                self.verdict(),
            ]
        )

    # The draft chain

    def new_chain(self, kept: bool) -> None:
        """Orders what the windows in flight will need; after a kept guess it is forced, or continued."""
        ahead = self.switches.chain_ahead and self.in_flight > 1
        running = self.step_end if self.switches.running_step == "queued" else None
        if not kept:
            self.outputs = self.spoken_for = 0
        elif not ahead:
            self.outputs, self.spoken_for = 0, sum(w.rows for w in self.queue) - 1
        more = self.in_flight - len(self.queue) + ahead
        self.wanted = self.spoken_for + self.next_rows() + (more - 1) * self.switches.rows - (not self.queue)
        catch_up = self.rig.draft if self.rig.catch_up is None else self.rig.catch_up
        if not (kept and ahead):
            self.start_step(catch_up, after=running)
            return
        self.catch_up_owed = 0.0 if self.switches.late_catch_up else catch_up
        if running is None:
            self.start_step(self.rig.draft)

    def start_step(self, ms: float, after: float | None = None) -> None:
        self.step_end = None
        if self.outputs < self.wanted:
            begin = max(self.now, after or 0.0)
            self.step_end = begin + self.catch_up_owed + ms
            self.steps.append((begin, self.step_end))
            self.catch_up_owed = 0.0
            self.wake(self.step_end)

    def take_draft_output(self) -> bool:
        if self.step_end is None or self.step_end > self.now:
            return False
        self.outputs += 1
        self.step_end = None
        if not self.chain_is_cut:
            self.start_step(self.rig.draft)
        return True

    # Windows

    def build_next(self) -> bool:
        """Builds W0 or the next guess as soon as its tokens are there."""
        if len(self.queue) == self.in_flight:
            return False
        guess = bool(self.queue)
        rows = self.next_rows()
        outputs = rows if guess else rows - 1
        if rows == 0 or self.outputs - self.spoken_for < outputs:
            return False
        if guess and (self.gate_shut or self.chain_is_cut):
            return False
        window = Window(len(self.windows), self.next_slot, rows, self.now, fate="guess" if guess else "fresh")
        self.next_slot = (self.next_slot + 1) % self.n_slots
        self.spoken_for += outputs
        if guess:
            self.guesses += 1
            every = self.switches.force_miss
            window.forced_to_miss = every > 0 and self.guesses % every == 0
            before = self.verified + len(self.queue) - 1
            window.estimate = self.verdicts[before].estimate if before < len(self.verdicts) else 1.0
        self.windows.append(window)
        self.queue.append(window)
        return True

    def next_rows(self) -> int:
        """Of the next window; no more than the tokens still wanted if all windows in flight come true."""
        rows = self.switches.rows if self.windows else self.switches.first_rows or self.switches.rows
        rows = self.truth(len(self.queue)).rows or rows
        if self.switches.tokens is None:
            return rows
        return max(0, min(rows, self.switches.tokens - self.emitted - sum(w.rows for w in self.queue)))

    def drop(self, first: int, launched: str, otherwise: str) -> None:
        """Takes the guesses from queue[first] on out of flight, with the fates named."""
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
                self.wake(end)

    # Launches

    def launch_front(self, i: int) -> bool:
        """Launches W0 (i = 0) or a guess on its next front stage, if it may go there now."""
        if i >= len(self.queue):  # a guess ahead of it was gated
            return False
        window = self.queue[i]
        stage = len(window.start_ms)
        if stage >= self.last or not self.may_launch(window, stage):
            return False
        if i > 0:
            ahead = self.queue[i - 1]
            if stage >= self.switches.spec_depth or not ahead.finished(stage, self.now):
                return False
            if stage == 0:
                if window.estimate < self.switches.theta:
                    self.gate(i)
                    return True
                window.depth = i
            if stage not in ahead.committed:
                ahead.committed.add(stage)
                self.program(stage, ahead.slot, self.rig.commit)
        self.run(window, stage)
        return True

    def launch_last(self) -> bool:
        if not self.queue:
            return False
        window = self.queue[0]
        if len(window.start_ms) != self.last or not self.may_launch(window, self.last):
            return False
        self.run(window, self.last)
        return True

    def gate(self, first: int) -> None:
        self.spoken_for -= sum(w.rows for w in self.queue[first:])
        self.gate_shut = True
        self.drop(first, launched="", otherwise="gated")

    def may_launch(self, window: Window, stage: int) -> bool:
        """Its input is promised, its slot has nothing queued, and nobody reads the hand-off it will write."""
        before = stage - 2 if self.switches.overlap else stage - 1  # overlap: queued on the stage between
        if before >= 0 and not window.finished(before, self.now):
            return False
        readers = self.slot_read[stage + 1][window.slot] if stage < self.last else 0.0
        return max(self.slot_free[stage][window.slot], readers) <= self.now

    def run(self, window: Window, stage: int) -> None:
        floor = max(self.free[stage], self.now + self.rig.launch)
        start = max(floor, window.end_ms[stage - 1] + self.handoff[stage - 1]) if stage else floor
        window.floor_ms.append(floor)
        window.start_ms.append(start)
        window.end_ms.append(self.program(stage, window.slot, self.run_ms(window, stage), start))
        self.slot_read[stage][window.slot] = window.end_ms[stage]

    def run_ms(self, window: Window, stage: int) -> float:
        """The rig's time, or this window's own where it is known and the window will be verified."""
        own = self.truth(self.queue.index(window)).run
        return self.rig.run[stage] if own is None else own[stage]

    def truth(self, ahead: int) -> Verdict:
        """What is known of the window behind `ahead` others in flight, if all of those come true."""
        at = self.verified + ahead
        if at >= len(self.verdicts):
            return UNKNOWN
        for i in range(self.verified, at):
            if not self.verdicts[i].guess_right:
                return UNKNOWN
        return self.verdicts[at]

    def program(self, stage: int, slot: int, ms: float, start: float = 0.0) -> float:
        """Queues a program on a stage; returns its end."""
        end = max(start, self.free[stage], self.now) + ms
        self.free[stage] = self.slot_free[stage][slot] = end
        self.wake(end)
        return end

    def sleep(self) -> None:
        """To the next moment at which something finishes; there is one, or the schedule is in a deadlock."""
        while self.wakes and self.wakes[0] <= self.now:
            heapq.heappop(self.wakes)
        assert self.wakes, f"deadlock at {self.now} ms: {self.queue}"
        self.now = self.wakes[0]

    def wake(self, at: float) -> None:
        if at > self.now:
            heapq.heappush(self.wakes, at)

    # The verdict

    def verdict(self) -> bool:
        if not self.queue or not self.queue[0].finished(self.last, self.now):
            return False
        if self.verdict_at is None:
            self.verdict_at = self.now + self.rig.verdict
            self.wake(self.verdict_at)
        if self.verdict_at > self.now:
            return False
        if self.step_end is not None and self.switches.running_step == "awaited":
            self.chain_is_cut = True
            return False
        w0, truth = self.queue.pop(0), self.verdicts[self.verified]
        w0.verdict_ms, w0.accepted = self.now, min(truth.accepted, w0.rows - 1)
        self.verified += 1
        self.emitted += w0.accepted + 1
        self.verdict_at, self.chain_is_cut, self.gate_shut = None, False, False
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
        return True

    def is_undone(self, stage: int, w0: Window) -> bool:
        """Was more committed there than the verdict's rows: of W0, or of the guess behind it?"""
        too_far = w0.accepted + 1 < w0.rows or stage in self.queue[0].committed
        return too_far or self.switches.undo_again

    def commit_fronts(self, w0: Window) -> None:
        for stage in set(range(self.last)) - w0.committed:
            self.program(stage, w0.slot, self.rig.commit)
