"""Model and stages: what is open, and what each stage holds in memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from strata_tui.terminal_text import printable, size
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.page_panel import Line, PagePanel

if TYPE_CHECKING:
    from strata_tui.tui.about import About, StageAbout

NAMES = 14
MEMORY = ("weights", "K/V", "state", "snapshots", "buffers")
COLUMN = 11


class ModelPanel(PagePanel):
    """Does not change while it is looked at."""

    PREFIX = "model"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"model--{name}" for name in ("dim", "value", "title")}

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._about: About | None = None

    @property
    def is_filled(self) -> bool:
        return self._about is not None

    def show(self, about: About) -> None:
        """Draw this."""
        self._about = about
        self._compose_lines()

    def on_resize(self) -> None:
        self._compose_lines()

    def _compose_lines(self) -> None:
        if self._about is None:
            self.tell([(("dim", " reading the model's directory"),)])
        else:
            self.tell(list(lines(self._about, self.size.width)))


def lines(about: About, width: int) -> Iterator[Line]:
    """Two lines a stage, what all of them hold, then the facts."""
    yield (("dim", f" {'stage, layers':<{NAMES}}" + "".join(f"{name:>{COLUMN}}" for name in MEMORY)),)
    for i, stage in enumerate(about.stages):
        yield (
            ("title", f" {i:<3}{stage.layers:<{NAMES - 3}}"),
            *(("value", f"{size(n):>{COLUMN}}") for n in memory(stage)),
        )
        yield (("dim", f" {'':<3}{printable(stage.what, newlines=False)}"),)
    if len(about.stages) > 1:
        columns = zip(*(memory(stage) for stage in about.stages), strict=True)
        sums = [None if None in column else sum(n or 0 for n in column) for column in columns]
        yield ("title", f" {'all':<{NAMES}}"), *(("value", f"{size(n):>{COLUMN}}") for n in sums)
    yield ()
    for name, text in about.facts:
        for i, part in enumerate(textwrap.wrap(printable(text, newlines=False), max(20, width - NAMES - 2))):
            yield ("dim", f" {name if i == 0 else '':<{NAMES}}"), ("value", part)


def memory(stage: StageAbout) -> tuple[int | None, ...]:
    """In the order of MEMORY."""
    return stage.weights, stage.kv, stage.states, stage.snapshots, stage.buffers
