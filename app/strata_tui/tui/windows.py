"""The strip of windows: what each drafted and what was accepted, newest at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.columns import label_width
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from rich.style import Style

    from strata_tui.tui.frame import Frame


class Windows(LineWidget):
    """A window a group: its fate, a square a draft, filled where accepted; below, the tokens it gave."""

    PREFIX = "windows"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "windows--label",
        "windows--dim",
        "windows--accepted",
        "windows--rejected",
        "windows--whole",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._groups: list[tuple[int, int, int, int]] = []  # (drafted, accepted, fate, emitted), oldest first
        self._drafts = 4  # squares that a group has room for

    def show(self, frame: Frame) -> None:
        """Draw this frame's windows."""
        groups = [
            (int(w["rows"]) - 1, int(w["accepted"]), int(w["fate"]), int(w["emitted"])) for w in frame.windows
        ]
        drafts = max([4, *(drafted for drafted, *_ in groups)])
        if (groups, drafts) != (self._groups, self._drafts):
            self._groups, self._drafts = groups, drafts
            self.refresh()

    @property
    def n_groups(self) -> int:
        """Windows that fit."""
        return max(0, (self.size.width - label_width(self)) // (self._drafts + 2))

    def render_line(self, y: int) -> Strip:
        label, dim = self.style("label"), self.style("dim")
        if y == 0:
            head = Segment(f" {'windows':<{label_width(self) - 1}}", label)
            body = [s for group in self._shown() for s in self._squares(group)]
            if not self._groups:
                body = [Segment("none yet", dim)]
        else:
            head = Segment(f" {'tokens':<{label_width(self) - 1}}", dim)
            body = [self._tokens(group, dim) for group in self._shown()]
        return self.strip([head, *body])

    def _shown(self) -> list[tuple[int, int, int, int]]:
        return self._groups[-self.n_groups :] if self.n_groups else []

    def _squares(self, group: tuple[int, int, int, int]) -> list[Segment]:
        drafted, accepted, fate, _ = group
        dim = self.style("dim")
        hit = max(accepted, 0)
        whole = accepted == drafted and drafted > 0
        pending = accepted < 0
        mark: Style = self.style("whole") if whole else dim
        return [
            Segment(
                self.glyphs.fates[16] if pending and fate < 3 else self.glyphs.fates.get(fate, "?"), mark
            ),
            Segment(self.glyphs.accepted * hit, self.style("whole" if whole else "accepted")),
            Segment(self.glyphs.rejected * (drafted - hit), dim if pending else self.style("rejected")),
            Segment(" " * (self._drafts - drafted + 1)),
        ]

    def _tokens(self, group: tuple[int, int, int, int], dim: Style) -> Segment:
        emitted = group[3]
        return Segment(f"{f'+{emitted}' if emitted else '':<{self._drafts + 2}}", dim)
