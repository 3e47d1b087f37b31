"""What happened, as the engine records it: the names and numbers of core_ext/trace/event.h.

The numbers are part of recordings: new ones are added at the end, none is ever changed.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

EVENT_DTYPE = np.dtype(
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
Events = npt.NDArray[np.void]

DRAFT_LANE = 254
HOST_LANE = 255


class Kind(IntEnum):
    """What `a`, `b` and `rows` hold for each kind stands in core_ext/trace/event.h."""

    run = 1
    wait_ready = 2
    publish = 3
    commit = 4
    undo = 5
    snapshot = 6
    prefill_chunk = 7
    draft_step = 8
    stage_inputs = 9
    launch = 10
    sync = 11
    verdict = 12
    window = 13
    draft_token = 14
    token = 15
    guess_built = 16
    guess_gated = 17
    guess_launched = 18
    guess_kept = 19
    guess_rolled_back = 20
    guess_late = 21
    guess_ended = 22
    toggle = 23
    throttle = 24
    request_begin = 25
    request_end = 26
    error = 27
    paused = 28
    miss = 29


class WindowFate(IntEnum):
    fresh = 0
    kept_after_fresh = 1
    kept_after_kept = 2
    prompt = 3
    guess = 4  # not verified yet


class MissCause(IntEnum):
    """Why a launched guess did not come true."""

    drafts_wrong = 1
    bonus_wrong = 2
    forced = 3


class Finish(IntEnum):
    running = 0
    stop = 1
    length = 2
    context = 3
    cancel = 4
    error = 5


class SwitchId(IntEnum):
    overlap = 0
    pipeline_windows = 1
    draft = 2
    draft_max = 3
    draft_min_p = 4
    theta = 5
    short_read = 6
    rate = 7
    force_miss = 8
    spec_depth = 9
    pipeline_log = 10
    chain_ahead = 11


DRAFTS = ("none", "mtp", "lookup", "replay")
"""Sources of drafts, as the value of their switch stands in an event."""
IN_MILLIONTHS = frozenset({SwitchId.draft_min_p, SwitchId.theta})  # how these switches' values are stored
