"""Before and after: what flips gave, and two settings by turns. Never in the way of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata_tui.analysis.alternation import FEWEST_ROUNDS, Alternation, Comparison
from strata_tui.analysis.flips import Flip, FlipLog
from strata_tui.tui.switches import shown

if TYPE_CHECKING:
    from strata_tui.analysis.view import View

OFTEN_NS = 500_000_000
TOLD_APART, NOT_YET = "told apart", "not told apart yet"
NOT_COMPARED = ("rate", "paused")


class Measuring:
    """Keeps the flips of a session and the alternation that is under way.

    Attributes:
        alternation: None while nothing alternates.
        told: a line for each alternation that has ended, the newest last.
    """

    def __init__(self, view: View) -> None:
        self.log = FlipLog()
        self.alternation: Alternation | None = None
        self.told: list[str] = []
        self._view = view
        self._last: tuple[str, Any, Any] | None = None  # the last flip: name, before, after
        self._ended_ns = 0  # the last alternation
        self._settling: tuple[str, Any] | None = None  # what the last alternation left, not in force yet
        self._due_ns = 0

    def flipped(self, name: str, before: Any, after: Any) -> None:
        """A person has flipped a switch."""
        if self._settling is not None:
            self._settling = None
            self.log.begin_anew(self._ended_ns)
        if name not in NOT_COMPARED and before != after:
            self._last = (name, before, after)

    def begin(self, now_ns: int) -> bool:
        """Alternate the last flip's two settings; False where there was no flip."""
        if self._last is None:
            return False
        name, before, after = self._last
        self.alternation = Alternation(name, (before, after), now_ns)
        self.log.look(self._view)
        self.log.begin_anew(now_ns)
        return True

    def end(self, now_ns: int) -> tuple[str, Any] | None:
        """Stop alternating: the switch and the value that it should keep, the better one if one is."""
        if self.alternation is None:
            return None
        ended, self.alternation = self.alternation, None
        self._ended_ns = now_ns
        result = ended.comparison()
        if result is not None:
            self.told.append(result_line(ended, result))
        better = 1 if result is None or not result.is_clear or result.gain > 0 else 0
        self._settling = ended.name, ended.settings[better]
        return self._settling

    def look(self, now_ns: int, in_force: dict[str, Any]) -> tuple[str, Any] | None:
        """Account for what has happened; a switch and its value that is due now, if one is."""
        due = None
        if self.alternation is not None:
            name = self.alternation.name
            was = self.alternation.wanted
            self.alternation.look(self._view, in_force.get(name), now_ns)
            if self.alternation.wanted != was or in_force.get(name) != self.alternation.wanted:
                due = name, self.alternation.wanted
        elif self._settling is not None:
            name, value = self._settling
            if in_force.get(name) == value:
                self._settling = None
                self.log.begin_anew(now_ns)
        elif now_ns >= self._due_ns:
            self.log.look(self._view)
            self._due_ns = now_ns + OFTEN_NS
        return due

    @property
    def line(self) -> str:
        """The newest; "" before there is something to tell."""
        if self.alternation is not None:
            return progress_line(self.alternation)
        flips = self.log.flips
        newest = flip_line(flips[-1]) if flips else ""
        return self.told[-1] if self.told and (not flips or flips[-1].at_ns < self._ended_ns) else newest

    @property
    def lines(self) -> tuple[str, ...]:
        """All, the newest first."""
        return (*reversed(self.told), *(flip_line(flip) for flip in reversed(self.log.flips)))


def flip_line(flip: Flip) -> str:
    """Whether they are told apart, then the medians, the steadiest first: for lines that are cut."""
    before, after = flip.before, flip.after
    ms, rate, tokens = (
        f"{figure(getattr(before, name).median)} to {figure(getattr(after, name).median)}"
        for name, figure in (
            ("ms_per_window", _figure),
            ("tokens_per_s", _figure),
            ("tokens_per_window", "{:.2f}".format),
        )
    )
    return (
        f"{TOLD_APART if flip.is_clear else NOT_YET}: {ms} ms/window, {rate} tok/s ({flip.gain:+.0%}), "
        f"{flip.text}, quartiles {_range(before.ms_per_window)} to {_range(after.ms_per_window)} ms, "
        f"{tokens} tokens/window; {before.windows} and {after.windows} windows by fours"
    )


def progress_line(of: Alternation) -> str:
    """How far an alternation is, and what it says by now."""
    result = of.comparison()
    if result is not None:
        return f"{result_line(of, result)}; b ends it"
    return (
        f"{NOT_YET}: round {len(of.rounds) + 1} of at least {FEWEST_ROUNDS}, b ends it, "
        f"A/B {_settings(of)} by turns, {of.n_windows} windows each"
    )


def result_line(of: Alternation, result: Comparison) -> str:
    a, b = (_figure(ms) for ms in result.ms_per_window)
    return (
        f"{TOLD_APART if result.is_clear else 'no clear difference'}: {a} to {b} ms/window, "
        f"{result.gain:+.0%} tok/s (95 % {result.low:+.0%} .. {result.high:+.0%}), A/B {_settings(of)}, "
        f"bootstrap over {result.rounds} rounds of 2 x {of.n_windows} windows"
    )


def _settings(of: Alternation) -> str:
    a, b = (shown(of.name, value) for value in of.settings)
    return f"{of.name.replace('_', '-')} {a} | {b}"


def _range(spread: Any) -> str:
    return f"{_figure(spread.low)}-{_figure(spread.high)}"


def _figure(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
