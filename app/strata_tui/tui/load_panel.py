"""How far the opening of a model is: a line a step, a bar where there are bytes to count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from strata_tui.terminal_text import size
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.load import STEPS, Load, Step
from strata_tui.tui.page_panel import Line, PagePanel, Part

OFTEN_S = 0.1
NAMES = 14  # cells, the mark among them
FIGURES = 51  # cells behind a bar
MOST_BAR = 40
LEFT_FROM_S = 2.0  # less need not be told


class LoadPanel(PagePanel):
    """Stands where the text will, until there is a model."""

    PREFIX = "load"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"load--{name}" for name in ("dim", "value", "now", "bar", "failed")
    }

    def __init__(self, load: Load, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._load = load

    def look(self) -> None:
        """Draw what has changed."""
        self.tell(list(lines(self._load, self.glyphs, self.size.width)))

    def on_resize(self) -> None:
        self.look()


def lines(load: Load, glyphs: Glyphs, width: int) -> Iterator[Line]:
    """A line a step; steps that had nothing to do say so."""
    at = _at(load)
    for i, step in enumerate(load.steps):
        passed = i < at or step.took_s is not None
        if i == at and load.failed:
            mark, style = ("failed", f" {glyphs.failed} "), "failed"
        elif i == at:
            mark, style = ("now", f" {glyphs.to_do} "), "now"
        else:
            mark, style = ("dim", f" {glyphs.done if passed else ' '} "), "value" if passed else "dim"
        line = [mark, (style, f"{step.name:<{NAMES - 3}}")]
        if i == at and step.total and not load.failed:
            line += _bar(step, glyphs, width, load.clock())
        elif passed or i == at:
            took = f"{step.text or STEPS[step.name]}  "
            took += f"{step.took_s:.2f} s" if step.took_s is not None else ""
            line.append(("dim", took))
        else:
            line.append(("dim", STEPS[step.name]))
        yield tuple(line)


def _at(load: Load) -> int:
    """The present step. Copies and memory are one call of the engine: the bytes tell which it is at."""
    if load.at is None:
        return max((i + 1 for i, step in enumerate(load.steps) if step.took_s is not None), default=0)
    step = load.steps[load.at]
    if step.measure is not None and step.look() >= step.total and not load.failed:
        return load.at + 1
    return load.at


def _bar(step: Step, glyphs: Glyphs, width: int, now_s: float) -> Iterator[Part]:
    done = step.look()
    cells = max(0, min(MOST_BAR, width - NAMES - FIGURES))
    full = cells * done // step.total
    yield "bar", glyphs.accepted * full
    yield "dim", glyphs.rejected * (cells - full) + " "
    (number, unit), of = size(done).split(), size(step.total)
    figures = f"{number if of.endswith(f' {unit}') else size(done)} of {of}"
    passed_s = now_s - (step.began_s or now_s)
    if done and passed_s > 0:
        rate = done / passed_s
        left_s = (step.total - done) / rate
        figures += f", {rate / 1e9:.2f} GB/s" + (f", {left_s:.0f} s left" if left_s >= LEFT_FROM_S else "")
    yield "value", figures
    if step.text:
        yield "dim", f", {step.text}"
