"""What a stage is doing at an instant: the words that lanes, legends and shares have in common."""

from enum import IntEnum


class LaneState(IntEnum):
    """States of a lane, in rising order of precedence.

    Where spans of a lane lie over one another, an instant belongs to the highest state: a stage that runs
    a window while the host prepares the next one for it is running. IDLE is what no span covers. Why a stage
    was idle is told afterwards, by `idle.CAUSES`: WAIT is part of hand_off there, HOST of host, PAUSED and
    THROTTLED of no_work; IDLE and IN_FLIGHT may be any.
    """

    IDLE = 0
    PAUSED = 1  # held by the user
    THROTTLED = 2  # held back by --rate
    IN_FLIGHT = 3  # launched; its program has not reported back yet
    HOST = 4  # the host stages, launches or syncs on this stage's behalf
    VERDICT = 5  # host lane only: the host compares drafts and picks
    WAIT = 6  # the program waits for the hand-off of the stage before it
    COMMIT_AHEAD = 7  # commit of a window's rows before its verdict, so that a guess can follow
    COMMIT = 8  # commit or snapshot of recurrent state
    UNDO = 9  # a commit ahead of its verdict is taken back and done again
    DRAFT = 10  # draft lane only: a step of the draft chain
    PREFILL = 11  # a chunk of the prompt
    LOST = 12  # a window that was rolled back, or in flight when the text ended: work for nothing
    GUESS = 13  # a window that the verdict ahead of it has not let in yet
    RUN_EVEN = 14  # a window that counts; neighbours are told apart by two shades
    RUN_ODD = 15
    UNKNOWN = 16  # before the first event, or of events that are no longer kept


N_STATES = len(LaneState)

SHARE_COLUMNS: tuple[tuple[str, tuple[LaneState, ...]], ...] = (
    ("run", (LaneState.RUN_EVEN, LaneState.RUN_ODD, LaneState.GUESS, LaneState.DRAFT)),
    ("lost", (LaneState.LOST, LaneState.UNDO)),
    ("read", (LaneState.PREFILL,)),
    ("commit", (LaneState.COMMIT, LaneState.COMMIT_AHEAD)),
    ("wait", (LaneState.WAIT,)),
    ("host", (LaneState.HOST, LaneState.VERDICT)),
    ("held", (LaneState.THROTTLED, LaneState.PAUSED)),
    ("idle", (LaneState.IDLE, LaneState.IN_FLIGHT)),
)
"""How states are summed for a table of shares: every state but UNKNOWN is in exactly one column."""
