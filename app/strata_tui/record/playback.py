"""A recording with the face of an engine: its clock plays what was recorded, as fast as one likes.

An event is there once it has ended, as it was when the engine recorded it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from strata_tui.errors import BadInput
from strata_tui.events import DRAFTS, IN_MILLIONTHS, Events, Kind, SwitchId
from strata_tui.record.recording import Recording
from strata_tui.switches import BY_NAME, ON_OFF

SPEEDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LOCKED = "[replay] switches belong to the run that was recorded: a replay can't flip them"


class RecordedSwitches:
    """The switches as they were in force; None = not known. None can be set.

    Raises:
        BadInput: on setting one.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__["_values"] = dict(values)

    def __getattr__(self, name: str) -> Any:
        if name == "paused":
            return False
        if name not in BY_NAME:
            raise AttributeError(f"there is no switch {name!r}")
        return self.__dict__["_values"].get(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise BadInput(LOCKED)

    def in_force(self) -> dict[str, Any]:
        return dict(self.__dict__["_values"])

    def passed(self, toggles: Events) -> None:
        """Take over the toggles that have been passed, in their order."""
        for number, value in zip(toggles["a"].tolist(), toggles["b"].tolist(), strict=True):
            if number not in set(SwitchId):
                continue
            switch = SwitchId(number)
            if switch.name in BY_NAME:
                self.__dict__["_values"][switch.name] = _value(switch, value)


def _value(switch: SwitchId, number: int) -> Any:
    if switch in IN_MILLIONTHS:
        return number / 1e6
    if switch == SwitchId.draft:
        return DRAFTS[number] if 0 <= number < len(DRAFTS) else None
    return bool(number) if BY_NAME[switch.name].accepts is ON_OFF else number


class Playback:
    """Plays a recording.

    Args:
        recording: what is played.
        speed: seconds of the recording a second.
        clock: nanoseconds of the real time that passes.

    Attributes:
        begin_ns, end_ns: of the recording, on the events' clock.
        toggles_ns: when a switch took effect.
        speed: how fast; see `faster`.
        held: the clock stands still.
    """

    def __init__(
        self, recording: Recording, speed: float = 1.0, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.recording = recording
        self.speed = speed
        self.held = False
        self.switches = RecordedSwitches(recording.switches)
        self.dropped_events = recording.dropped_events
        events = recording.events
        ends = (events["start_ns"] + events["dur_ns"]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        self._events, self._ends = events[order], ends[order]
        self.toggles_ns: list[int] = events["start_ns"][events["kind"] == Kind.toggle].tolist()
        self._next = 0  # the first event that is not there yet
        starts = [int(events["start_ns"].min())] if len(events) else []
        times = [t for r in recording.requests for t in (r.begin_ns, *(p.at_ns for p in r.pieces), r.end_ns)]
        known = [t for t in times if t is not None]
        self.begin_ns = min([*starts, *known], default=0)
        self.end_ns = max([*self._ends[-1:].tolist(), *known], default=0)
        self._clock = clock
        self._at_ns = float(self.begin_ns)  # where it was at `_since`
        self._since = clock()

    # -- the face of an engine

    def now_ns(self) -> int:
        """Where it is, on the events' clock; it ends with the recording."""
        now = self._clock()
        if not self.held:
            self._at_ns = min(self._at_ns + (now - self._since) * self.speed, float(self.end_ns))
        self._since = now
        # a float of so large a number is a few hundred ns off: the end is the end
        return self.end_ns if self._at_ns >= float(self.end_ns) else int(self._at_ns)

    def events(self) -> Events:
        """What has ended since the last call."""
        to = int(np.searchsorted(self._ends, self.now_ns(), side="right"))
        passed = self._events[self._next : to]
        self._next = max(self._next, to)
        self.switches.passed(passed[passed["kind"] == Kind.toggle])
        return passed

    def notices(self) -> list[str]:
        return []

    def close(self) -> None:
        """There is nothing to close."""

    # -- how it is played

    @property
    def ended(self) -> bool:
        return self.now_ns() >= self.end_ns

    def hold(self, on: bool) -> None:
        """Stand still, or go on."""
        self.now_ns()
        self.held = on

    def faster(self, steps: int) -> None:
        """So many steps faster, or slower where negative."""
        self.now_ns()
        at = min(range(len(SPEEDS)), key=lambda i: abs(SPEEDS[i] - self.speed))
        self.speed = SPEEDS[min(max(at + steps, 0), len(SPEEDS) - 1)]

    def seek(self, at_ns: int) -> bool:
        """To a moment of the recording.

        Returns:
            True where it lies before the present one: then `events` gives all from the begin anew, and the
            switches are again those of the begin.
        """
        before = self.now_ns()
        self._at_ns = float(min(max(at_ns, self.begin_ns), self.end_ns))
        if at_ns >= before:
            return False
        self._next = 0
        self.switches = RecordedSwitches(self.recording.switches)
        return True

    def skip(self) -> None:
        """To where the next text begins; to the end where none does."""
        now = self.now_ns()
        later = [request.begin_ns for request in self.recording.requests if request.begin_ns > now]
        self._at_ns = float(min(later, default=self.end_ns))
