"""What a window is: how it came to be, or what became of it. Words of the strip, the lanes and the files."""

from enum import IntEnum


class Fate(IntEnum):
    """The first five are WindowFate of the events."""

    FRESH = 0
    KEPT_AFTER_FRESH = 1
    KEPT_AFTER_KEPT = 2
    PROMPT = 3
    GUESS = 4  # built, not launched yet
    IN_FLIGHT = 16  # a guess that has been launched
    ROLLED_BACK = 17
    GATED = 18
    LATE = 19
    ENDED = 20


CLASSES = (Fate.FRESH, Fate.KEPT_AFTER_FRESH, Fate.KEPT_AFTER_KEPT)
"""Windows with a verdict are of one of these, always told apart."""
KEPT = (Fate.KEPT_AFTER_FRESH, Fate.KEPT_AFTER_KEPT)
OPEN = (Fate.GUESS, Fate.IN_FLIGHT)
LOST = (Fate.ROLLED_BACK, Fate.ENDED)
NEVER_LAUNCHED = (Fate.GATED, Fate.LATE)
