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
        self._rates = rates
        self._compose_lines()

    def on_resize(self) -> None:
        self._compose_lines()

    def _compose_lines(self) -> None:
        if self._rates is None:
            return
        lines = (short if self.screen.has_class("-narrow") else tall)(
            self._rates, self.glyphs, self.size.width
        )
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


def sparkline(values: tuple[float, ...], glyphs: Glyphs) -> str:
    """One character a value, scaled to the largest."""
    top = max(values, default=0.0) or 1.0
    return "".join(glyphs.spark[0 if not v else max(1, min(8, round(8 * v / top)))] for v in values)


def tall(rates: Rates, glyphs: Glyphs, width: int) -> list[Line]:
    """A column of figures."""
    bar = max(0, min(len(rates.history), width - 2))

    def row(name: str, value: str, after: str) -> Line:
        return (("dim", f" {name:<14}"), ("value", value), ("dim", f" {after}"))

    lines: list[Line] = [
        row("tok/s", number(rates.tokens_per_s), "last second"),
        row("", number(rates.tokens_per_s_smoothed), "smoothed, 5 s"),
        row("", number(rates.tokens_per_s_session), "session"),
        (("spark", " " + sparkline(rates.history[len(rates.history) - bar :], glyphs)),),
        (("dim", f" {f'{bar / 2:g} s ago':<{max(0, bar - 3)}}now"),),
        row("ms/window", number(rates.ms_per_window), "without time held back"),
        row("tokens/window", number(rates.tokens_per_window), f"{rates.windows:,} windows"),
        row("accepted", percent(rates.accepted, rates.drafted), f"% of {rates.drafted:,} drafted"),
    ]
    lines[0] = (("dim", f" {'tok/s':<14}"), ("figure", number(rates.tokens_per_s)), ("dim", " last second"))
    for k, (hit, had) in enumerate(rates.accepted_per_position, start=1):
        lines.append(
            row(f"  first {k}" if k > 1 else "  first draft", percent(hit, had), f"% of {had:,} windows")
        )
    gap = "" if rates.gap_p95_ms is None else f"p95 {number(rates.gap_p95_ms, 0)}"
    lines += [
        row("first token", number(rates.first_token_ms), "ms"),
        row("between tokens", number(rates.gap_p50_ms), f"ms p50  {gap}"),
    ]
    if rates.held_share is not None and rates.held_share >= 0.005:
        lines.append(row("held back", f"{100 * rates.held_share:6.0f}", "% of the last second"))
    lines.append(_dropped(rates))
    return lines


def _dropped(rates: Rates) -> Line:
    value = "bad" if rates.dropped else "value"
    return (("dim", f" {'dropped':<14}"), (value, f"{rates.dropped:>6,}"), ("dim", " events"))


def short(rates: Rates, glyphs: Glyphs, width: int) -> list[Line]:
    """The same in three lines."""
    fixed = 47
    bar = max(0, min(len(rates.history), width - fixed))
    gaps = f"{number(rates.gap_p50_ms, 5)} /{number(rates.gap_p95_ms, 5)}"
    positions = " ".join(
        f"{100 * hit / had:3.0f}" for hit, had in rates.accepted_per_position[: max(1, (width - 62) // 4)]
    )
    held = f"{100 * (rates.held_share or 0):3.0f}"
    return [
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
        (
            ("value", percent(rates.accepted, rates.drafted)),
            ("dim", f" % of {rates.drafted:,} drafts accepted  held"),
            ("value", held),
            ("dim", " %  dropped "),
            ("bad" if rates.dropped else "value", f"{rates.dropped:,}"),
            ("dim", "  first k: "),
            ("value", positions),
            ("dim", " %"),
        ),
    ]
