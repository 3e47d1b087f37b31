"""STRATA_PIPELINE_LOG: a line for each draft chain and for each verdict, made from the events.

    strata pipeline: chain w4 caught-up=3 outputs=7 ms=1.72 [emulated]
    strata pipeline: verdict w4 p=9 T=4 a=3 emitted=4 ahead=0 guess=w5 kept estimate=0.61 front=1 in-flight=0

`ahead`: the stages where the window was committed before its verdict (- = none); `guess`: what became of the
one behind it; `front`: front stages that this one had finished; `in-flight`: those that it still ran on;
`[emulated]`: where times are not this machine's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from strata_tui.events import Events, Kind, MissCause
from strata_tui.marks import EMULATED

_OF_VERDICTS = (Kind.verdict, Kind.request_end, Kind.error)
_NEEDED = (
    Kind.window,
    Kind.launch,
    Kind.commit,
    Kind.draft_step,
    Kind.guess_built,
    Kind.guess_gated,
    Kind.guess_late,
    Kind.guess_launched,
    Kind.guess_kept,
    Kind.guess_rolled_back,
    Kind.guess_ended,
    Kind.miss,
    *_OF_VERDICTS,
)
_MOST_OPEN = 256  # windows remembered: far more than can be in flight
_NAMES = {
    Kind.guess_built: "built",
    Kind.guess_gated: "gated",
    Kind.guess_late: "late",
    Kind.guess_launched: "launched",
    Kind.guess_kept: "kept",
    Kind.guess_rolled_back: "rolled back",
    Kind.guess_ended: "ended",
}


@dataclass
class _Window:
    position: int = 0
    estimate: float = 0.0
    guess: str = ""  # what it is as a guess, "" if it is none
    launched_on: set[int] = field(default_factory=set)
    progress: tuple[int, int] | None = None  # at the verdict ahead of it: stages launched on, finished
    committed_ahead: set[int] = field(default_factory=set)
    missed: str = ""  # why the guess behind it did not come true


@dataclass
class _Chain:
    window: int
    caught_up: int
    outputs: int = 0
    busy_ns: int = 0

    def line(self) -> str:
        return (
            f"strata pipeline: chain w{self.window} caught-up={self.caught_up} outputs={self.outputs} "
            f"ms={self.busy_ns / 1e6:.2f}"
        )


class PipelineLog:
    """Events in, lines out.

    A verdict's line waits until the next verdict (or the end of the text) has been seen by an earlier call:
    by then every stage has told what it committed ahead of it.

    Args:
        emulated: the devices' times are another rig's: each line with a time says so.
    """

    def __init__(self, emulated: bool = False) -> None:
        self._mark = EMULATED if emulated else ""
        self._windows: dict[int, _Window] = {}
        self._chain: _Chain | None = None
        self._waiting: list[str | tuple[int, int, int, int]] = []  # chains; verdicts: window, T, a, emitted
        self._ripe = 0  # of those waiting, how many can be told at the next call

    def take(self, events: Events) -> list[str]:
        """Account for drained events; the lines that are complete."""
        lines = self._told(self._ripe)
        needed = events[np.isin(events["kind"], [int(kind) for kind in _NEEDED])]
        end = needed["start_ns"] + needed["dur_ns"]
        for row in needed[np.argsort(end, kind="stable")].tolist():
            self._note(*row)
        return lines

    def finish(self) -> list[str]:
        """The lines of all that has been seen: nothing more comes."""
        self._close_chain()
        return self._told(len(self._waiting))

    def _told(self, n: int) -> list[str]:
        told, self._waiting, self._ripe = self._waiting[:n], self._waiting[n:], 0
        return [what if isinstance(what, str) else self._verdict_line(*what) for what in told]

    def _note(
        self, start_ns: int, dur_ns: int, window: int, kind: int, stage: int, rows: int, a: int, b: int
    ) -> None:
        if kind == Kind.draft_step:
            self._note_draft(window, dur_ns, rows, a, b)
        elif kind in _OF_VERDICTS:
            self._close_chain()
            self._ripe = len(self._waiting)
            if kind == Kind.verdict and b > 0:
                self._waiting.append((window, rows, a, b))
        else:
            self._note_window(self._of(window), kind, stage, a, b)

    def _note_draft(self, window: int, dur_ns: int, rows: int, step: int, token: int) -> None:
        if step == 0:
            self._close_chain()
            self._chain = _Chain(window, rows)
        if self._chain is not None:
            self._chain.busy_ns += dur_ns
            self._chain.outputs += token >= 0

    def _close_chain(self) -> None:
        if self._chain is not None:
            self._waiting.append(self._chain.line() + self._mark)
            self._chain = None

    @staticmethod
    def _note_window(window: _Window, kind: int, stage: int, a: int, b: int) -> None:
        if kind == Kind.window:
            window.position = a
        elif kind == Kind.launch:
            window.launched_on.add(stage)
        elif kind == Kind.commit:
            if b == 1:
                window.committed_ahead.add(stage)
        elif kind == Kind.miss:
            cause = MissCause(a).name.replace("_", " ") if a in set(MissCause) else f"cause {a}"
            window.missed = cause + (", second choice right" if b == 1 else "")
        else:
            window.guess = _NAMES[Kind(kind)]
            if kind == Kind.guess_built:
                window.estimate = a / 1e6
            elif kind == Kind.guess_kept:
                window.progress = (len(window.launched_on), a)
            elif kind == Kind.guess_rolled_back:
                window.progress = (a, b)

    def _of(self, window: int) -> _Window:
        if window not in self._windows:
            self._windows[window] = _Window()
            while len(self._windows) > _MOST_OPEN:
                del self._windows[next(iter(self._windows))]
        return self._windows[window]

    def _verdict_line(self, id: int, rows: int, accepted: int, emitted: int) -> str:
        window = self._of(id)
        ahead = ",".join(map(str, sorted(window.committed_ahead))) or "-"
        missed = f" ({window.missed})" if window.missed else ""
        return (
            f"strata pipeline: verdict w{id} p={window.position} T={rows} a={accepted} emitted={emitted} "
            f"ahead={ahead} guess={self._guess_behind(id)}{missed}"
        )

    def _guess_behind(self, id: int) -> str:
        behind = next((i for i in sorted(self._windows) if i > id), None)
        guess = self._windows[behind] if behind is not None else None
        if guess is None or not guess.guess:
            return "none"
        line = f"w{behind} {guess.guess} estimate={guess.estimate:.2f}"
        if guess.progress is None:
            return line
        launched, finished = guess.progress
        return f"{line} front={finished} in-flight={max(0, launched - finished)}"
