"""Figures of now, with their units and denominators, and a short history of the rate."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from strata_tui.analysis.view import Rates

Part = tuple[str, str]  # component class, text
Line = tuple[Part, ...]
REFRESH_NS = 250_000_000


class RatesPanel(LineWidget):
    """Numbers of fixed width that change four times a second: they are for reading."""

    PREFIX = "rates"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rates--figure",
        "rates--value",
        "rates--dim",
        "rates--spark",
        "rates--bad",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._rates: Rates | None = None
        self._lines: list[Line] = []

    def show(self, rates: Rates) -> None:
        """Draw these figures."""
        if rates is self._rates:
            return
        self._rates = rates
        self._compose_lines()

    def on_resize(self) -> None:
        self._compose_lines()

    def _compose_lines(self) -> None:
        if self._rates is None:
            return
        lines = (short if self.screen.has_class("-narrow") else tall)(self._rates, self.glyphs, *self.size)
        before, self._lines = self._lines, lines
        for y, (was, now) in enumerate(zip_longest(before, lines)):
            if was != now:
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else ()
        segments = [Segment(text, self.style(name)) for name, text in line]
        return self.strip(segments)


def number(value: float | None, width: int = 6) -> str:
    """Three figures that matter, right-aligned: `  5.12`, `  41.3`, `   412`, `     -`."""
    if value is None:
        return f"{'-':>{width}}"
    return f"{value:>{width}.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def percent(part: int, whole: int) -> str:
    """`  66.1`, or a dash of the same width where there is nothing to divide by."""
    return f"{100 * part / whole:6.1f}" if whole else f"{'-':>6}"


def percent_of(share: float | None) -> str:
    return f"{100 * share:6.1f}" if share is not None else f"{'-':>6}"


def sparkline(values: tuple[float, ...], glyphs: Glyphs) -> str:
    """One character a value, scaled to the largest."""
    top = max(values, default=0.0) or 1.0
    return "".join(glyphs.spark[0 if not v else max(1, min(8, round(8 * v / top)))] for v in values)


def tall(rates: Rates, glyphs: Glyphs, width: int, height: int) -> list[Line]:
    """A column of figures; where it is too high, drafts by position are one line."""
    bar = max(0, min(len(rates.history), width - 2))

    def row(name: str, value: str, after: str) -> Line:
        return (("dim", f" {name:<14}"), ("value", value), ("dim", f" {after}"))

    lines: list[Line] = [
        row("tok/s", number(rates.tokens_per_s), "last second"),
        row("", number(rates.tokens_per_s_smoothed), "smoothed, 5 s"),
        row("", number(rates.tokens_per_s_session), "session"),
        (("spark", " " + sparkline(rates.history[len(rates.history) - bar :], glyphs)),),
        (("dim", f" {f'{bar / 2:g} s ago':<{max(0, bar - 3)}}now"),),
        row("ms/window", number(rates.ms_per_window), "less time held back"),
        *(row(*line) for line in _by_class(rates)),
        row("tokens/window", number(rates.tokens_per_window), f"{rates.windows:,} windows"),
        *(row(*line) for line in _guesses(rates)),
        row("accepted", percent(rates.accepted, rates.drafted), f"% of {rates.drafted:,} drafted"),
    ]
    lines[0] = (("dim", f" {'tok/s':<14}"), ("figure", number(rates.tokens_per_s)), ("dim", " last second"))
    gap = "" if rates.gap_p95_ms is None else f"p95 {number(rates.gap_p95_ms, 0)}"
    last = [
        row("first token", number(rates.first_token_ms), "ms"),
        row("between tokens", number(rates.gap_p50_ms), f"ms p50  {gap}"),
    ]
    if rates.held_share is not None and rates.held_share >= 0.005:
        last.append(row("held back", f"{100 * rates.held_share:6.0f}", "% of the last second"))
    last.append(_dropped(rates))
    by_position = [
        row(f"  first {k}" if k > 1 else "  first draft", percent(hit, had), f"% of {had:,} windows")
        for k, (hit, had) in enumerate(rates.accepted_per_position, start=1)
    ]
    if len(lines) + len(by_position) + len(last) > height and by_position:
        shares = "".join(f"{100 * hit / had:4.0f}" for hit, had in rates.accepted_per_position)
        by_position = [(("dim", f" {'  first 1, 2..':<15}"), ("value", shares), ("dim", " %"))]
    return lines + by_position + last


def _by_class(rates: Rates) -> list[tuple[str, str, str]]:
    """Rows of the windows by how they came to be, once any was kept."""
    fresh, after_fresh, after_kept = zip(rates.ms_by_class, rates.windows_by_class, strict=True)
    if not rates.guesses.kept:
        return []
    return [
        ("  fresh", number(fresh[0]), f"ms of {fresh[1]:,}"),
        ("  kept", number(after_fresh[0]), f"ms of {after_fresh[1]:,} after fresh"),
        ("", number(after_kept[0]), f"ms of {after_kept[1]:,} after kept"),
    ]


def _guesses(rates: Rates) -> list[tuple[str, str, str]]:
    """Rows of the guesses, once there was one."""
    g = rates.guesses
    if not g.built:
        return []
    return [
        ("kept", percent(g.kept, g.decided), f"% of {g.decided:,} guesses"),
        ("  never run", f"{g.gated + g.late:6,}", f"{g.gated:,} gated, {g.late:,} late"),
        ("  misses", f"{g.misses:6,}", f"{g.draft_wrong:,} drafts, {g.bonus_wrong:,} bonus"),
        ("lost", percent_of(rates.wasted_share), "% of the stages' work"),
    ]


def _dropped(rates: Rates) -> Line:
    value = "bad" if rates.dropped else "value"
    return (("dim", f" {'dropped':<14}"), (value, f"{rates.dropped:>6,}"), ("dim", " events"))


def short(rates: Rates, glyphs: Glyphs, width: int, height: int) -> list[Line]:
    """The same in three lines, and a fourth once there was a guess."""
    fixed = 47
    bar = max(0, min(len(rates.history), width - fixed))
    gaps = f"{number(rates.gap_p50_ms, 5)} /{number(rates.gap_p95_ms, 5)}"
    held = f"{100 * (rates.held_share or 0):3.0f}"
    accepted: Line = (
        ("value", percent(rates.accepted, rates.drafted)),
        ("dim", f" % of {rates.drafted:,} drafts accepted  held"),
        ("value", held),
        ("dim", " %  dropped "),
        ("bad" if rates.dropped else "value", f"{rates.dropped:,}"),
        ("dim", "  first k "),
    )
    room = (width - sum(len(text) for _, text in accepted)) // 4
    positions = "".join(f"{100 * hit / had:4.0f}" for hit, had in rates.accepted_per_position[:room])
    lines: list[Line] = [
        (
            ("dim", " tok/s"),
            ("figure", number(rates.tokens_per_s)),
            ("dim", " now"),
            ("value", number(rates.tokens_per_s_smoothed)),
            ("dim", " smoothed"),
            ("value", number(rates.tokens_per_s_session)),
            ("dim", " session "),
            ("spark", sparkline(rates.history[len(rates.history) - bar :], glyphs)),
        ),
        (
            ("value", number(rates.ms_per_window)),
            ("dim", " ms/window "),
            ("value", number(rates.tokens_per_window, 5)),
            ("dim", " tokens/window "),
            ("dim", " first token"),
            ("value", number(rates.first_token_ms, 6)),
            ("dim", " ms  gaps"),
            ("value", gaps),
            ("dim", " ms"),
        ),
        (*accepted, ("value", positions)),
    ]
    if rates.guesses.built:
        g, (fresh, *kept) = rates.guesses, rates.ms_by_class
        lines.append(
            (
                ("value", percent(g.kept, g.decided)),
                ("dim", f" % of {g.decided:,} guesses kept  fresh"),
                ("value", number(fresh, 5)),
                ("dim", " kept"),
                ("value", " /".join(number(ms, 5) for ms in kept)),
                ("dim", " ms  lost"),
                ("value", percent_of(rates.wasted_share)),
                ("dim", " %"),
            )
        )
    return lines
