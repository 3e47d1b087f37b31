"""What a stage does at a moment: the words for its work, and for the causes of its idle time."""

from enum import IntEnum


class Doing(IntEnum):
    """What a stage is doing, in rising order of precedence; the first six are the causes of idle time."""

    host = 0
    hand_off = 1
    verdict = 2
    draft = 3
    undo_awaited = 4
    no_work = 5
    run = 6
    commit = 7
    undo = 8
    publish = 9


CAUSES: dict[str, Doing] = {
    "hand_off": Doing.hand_off,
    "verdict": Doing.verdict,
    "draft": Doing.draft,
    "undo": Doing.undo_awaited,
    "host": Doing.host,
    "no_work": Doing.no_work,
}
"""The words of the screen, the JSON and the docs."""
