"""Events as Python sees them: the layout and numbers of core_ext/trace/event.h.

The numbers are part of recordings, so they are written here too: no native module is needed to read events.
"""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

EventArray = npt.NDArray[np.void]

EVENT_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("start_ns", "<u8"),
        ("dur_ns", "<u8"),
        ("window", "<u4"),
        ("kind", "u1"),
        ("stage", "u1"),
        ("rows", "<u2"),
        ("a", "<i4"),
        ("b", "<i4"),
    ]
)

DRAFT_LANE = 254
HOST_LANE = 255


class Kind(IntEnum):
    """What happened; the meaning of `a`, `b` and `rows` stands in event.h."""

    RUN = 1
    WAIT_READY = 2
    PUBLISH = 3
    COMMIT = 4
    UNDO = 5
    SNAPSHOT = 6
    PREFILL_CHUNK = 7
    DRAFT_STEP = 8
    STAGE_INPUTS = 9
    LAUNCH = 10
    SYNC = 11
    VERDICT = 12
    WINDOW = 13
    DRAFT_TOKEN = 14
    TOKEN = 15
    GUESS_BUILT = 16
    GUESS_GATED = 17
    GUESS_LAUNCHED = 18
    GUESS_KEPT = 19
    GUESS_ROLLED_BACK = 20
    GUESS_LATE = 21
    GUESS_ENDED = 22
    TOGGLE = 23
    THROTTLE = 24
    REQUEST_BEGIN = 25
    REQUEST_END = 26
    ERROR = 27
    PAUSED = 28


class Fate(IntEnum):
    """How a window came to be, and for a guess what became of it."""

    FRESH = 0
    KEPT_AFTER_FRESH = 1
    KEPT_AFTER_KEPT = 2
    PROMPT = 3
    IN_FLIGHT = 16  # from here on: never in an event, known from the events that follow
    ROLLED_BACK = 17
    GATED = 18


FINISHES = ("running", "stop", "length", "context", "cancel", "error")
SWITCHES = (
    "overlap",
    "pipeline_windows",
    "draft",
    "draft_max",
    "draft_min_p",
    "theta",
    "short_read",
    "rate",
    "force_miss",
    "spec_depth",
    "pipeline_log",
)
MILLIONTHS = frozenset({"draft_min_p", "theta"})
"""Switches whose value in a toggle event is in millionths."""


def event(kind: Kind, start_ns: int, dur_ns: int = 0, **fields: Any) -> tuple[int, ...]:
    """One row for `np.array([...], EVENT_DTYPE)`."""
    return (
        start_ns,
        dur_ns,
        fields.get("window", 0),
        int(kind),
        fields.get("stage", HOST_LANE),
        fields.get("rows", 0),
        fields.get("a", 0),
        fields.get("b", 0),
    )
