"""Windows out of events: when each began and ended, and what became of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strata_tui.events import Events, Kind, WindowFate

Ints = npt.NDArray[np.int64]

# What a window leaves; bounds it where its own begin or end is missing.
TRACES = (Kind.run, Kind.wait_ready, Kind.publish, Kind.commit, Kind.launch, Kind.sync, Kind.verdict)
GUESS_ENDS = {
    Kind.guess_rolled_back: "rolled_back",
    Kind.guess_gated: "gated",
    Kind.guess_late: "late",
    Kind.guess_ended: "ended",
}


@dataclass(frozen=True)
class Windows:
    """All [n], by id.

    Attributes:
        ids: of windows; prefill chunks, which share the count, are not among them.
        begin_ns: when it was built, else the first that is left of it.
        end_ns: its verdict's end, or when the guess ended, else the last that is left of it.
        fate: with a verdict, or as `prompt`, how it came to be; else what the guess became, or `in_flight`.
        guess: index of its `guess_built` event, -1 = it was none.
        built: index of its `window` event, -1 = none.
        verdict: index of its verdict, -1 = none.
    """

    ids: Ints
    begin_ns: Ints
    end_ns: Ints
    fate: npt.NDArray[Any]
    guess: Ints
    built: Ints
    verdict: Ints


def windows_of(events: Events, start_ns: Ints, end_ns: Ints) -> Windows:
    """Group events by window.

    Args:
        events: [n] sorted by start.
        start_ns: [n] on the clock that is wanted.
        end_ns: [n]
    """
    window = events["window"].astype(np.int64)

    def at(*kinds: Kind) -> Ints:
        return np.flatnonzero(np.isin(events["kind"], [int(kind) for kind in kinds]))

    ids = np.unique(window[at(Kind.window, Kind.verdict, Kind.run, Kind.guess_built, *GUESS_ENDS)])
    ids = ids[~np.isin(ids, window[at(Kind.prefill_chunk)])]

    def last(*kinds: Kind) -> Ints:
        """Of each window the index of its last event of these kinds, -1 = none."""
        found = np.full(len(ids), -1)
        mine = at(*kinds)
        mine = mine[np.isin(window[mine], ids)]
        found[np.searchsorted(ids, window[mine])] = mine
        return found

    begin = np.full(len(ids), np.iinfo(np.int64).max)
    end = np.zeros(len(ids), np.int64)
    left = at(*TRACES)
    left = left[np.isin(window[left], ids)]
    place = np.searchsorted(ids, window[left])
    np.minimum.at(begin, place, start_ns[left])
    np.maximum.at(end, place, end_ns[left])

    built, verdict = last(Kind.window), last(Kind.verdict)
    begin = np.where(built >= 0, start_ns[built], begin) if len(ids) else begin
    end = np.where(verdict >= 0, end_ns[verdict], end) if len(ids) else end
    names = np.array([*(fate.name for fate in WindowFate), "verified"], object)
    came = np.where(built >= 0, events["b"][built], len(WindowFate)) if len(ids) else built
    kept = last(Kind.guess_kept)
    came[kept >= 0] = events["b"][kept[kept >= 0]]
    came = np.where((came >= 0) & (came < len(WindowFate)), came, len(WindowFate))
    fate = np.where((verdict >= 0) | (came == WindowFate.prompt), names[came], "in_flight")
    for kind, name in GUESS_ENDS.items():
        ended = last(kind)
        met = ended >= 0
        end[met], fate[met] = start_ns[ended[met]], name
    return Windows(ids, begin, np.maximum(begin, end), fate, last(Kind.guess_built), built, verdict)
