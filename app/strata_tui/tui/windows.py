"""The strip of windows: what each drafted and what was accepted, newest at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.analysis.fate import KEPT, LOST, Fate
from strata_tui.tui.columns import label_width
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from rich.style import Style

    from strata_tui.tui.frame import Frame


_BECAME: dict[int, str] = {
    Fate.GATED: "gated",
    Fate.LATE: "late",
    Fate.ROLLED_BACK: "lost",
    Fate.ENDED: "ended",
}


class Windows(LineWidget):
    """A window a group: its fate, a square a draft, filled where accepted; below, the tokens it gave.

    A guess that gave none says what became of it instead: gated, late, lost or ended.
    """

    PREFIX = "windows"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "windows--label",
        "windows--dim",
        "windows--accepted",
        "windows--rejected",
        "windows--whole",
        "windows--kept",
        "windows--lost",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._groups: list[tuple[int, int, int, int]] = []  # (drafted, accepted, fate, emitted), oldest first
        self._drafts = 4  # squares that a group has room for

    def show(self, frame: Frame) -> None:
        """Draw this frame's windows."""
        groups = [
            (max(rows - 1, accepted, 0), accepted, fate, emitted)  # 0 rows: it is not known of how many
            for rows, accepted, fate, emitted in frame.windows[
                ["rows", "accepted", "fate", "emitted"]
            ].tolist()
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
        verified = accepted >= 0
        return [
            self._mark(Fate.IN_FLIGHT if fate == Fate.FRESH and not verified else fate),
            Segment(self.glyphs.accepted * hit, self.style("whole" if whole else "accepted")),
            Segment(self.glyphs.rejected * (drafted - hit), self.style("rejected") if verified else dim),
            Segment(" " * (self._drafts - drafted + 1)),
        ]

    def _mark(self, fate: int) -> Segment:
        style = "kept" if fate in KEPT else "lost" if fate in LOST else "dim"
        return Segment(self.glyphs.fates.get(fate, "?"), self.style(style))

    def _tokens(self, group: tuple[int, int, int, int], dim: Style) -> Segment:
        _, _, fate, emitted = group
        text = f"+{emitted}" if emitted else _BECAME.get(fate, "")
        return Segment(f"{text:<{self._drafts + 2}}", self.style("lost") if fate in LOST else dim)
