"""What stands about the lanes of two runs: where one is, what B gained and lost, the text, the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.message import Message
from textual.strip import Strip

from strata_tui.terminal_text import printable
from strata_tui.tui.dragging import Draggable
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget, shortened
from strata_tui.tui.page_panel import PagePanel
from strata_tui.tui.wrap import TextLine, Wrapped

if TYPE_CHECKING:
    from strata_tui.tui.aligned import Aligned


NAMES, SCALE = 10, 11  # cells before and behind the parts


class Place(LineWidget):
    """The first line: which token, of how many, and how far the runs are apart there."""

    PREFIX = "header"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"header--name", "header--dim", "header--emulated"}

    def __init__(self, aligned: Aligned, glyphs: Glyphs = COLOUR) -> None:
        super().__init__()
        self._aligned = aligned
        self._glyphs = glyphs
        self._token = 0

    def show(self, token: int) -> None:
        self._token = token
        self.refresh()

    def render_line(self, y: int) -> Strip:
        a, b = (side.recording for side in (self._aligned.comparison.a, self._aligned.comparison.b))
        behind = self._aligned.behind_ms(self._token)
        apart = f"B is {abs(behind):.1f} ms {'behind' if behind > 0 else 'ahead'}"
        emulated = [Segment(" EMULATED ", self.style("emulated")), Segment(" ", self.style("dim"))]
        right = [
            *(emulated if a.emulated or b.emulated else []),
            Segment(f"token {self._token + 1:,} of {self._aligned.n_tokens:,}  ", self.style("dim")),
            Segment(f"{apart} ", self.style("name")),
        ]
        room = max(0, self.size.width - sum(segment.cell_length for segment in right))
        names = printable(f" A {a.file_name}  B {b.file_name}", newlines=False)
        names = shortened(names, max(0, room - 1), self._glyphs.ellipsis)
        left = Strip([Segment(names, self.style("name"))]).adjust_cell_length(room, self.style("name"))
        return self.strip([*left, *right])


class Scrub(Draggable, LineWidget):
    """A cell for each part of the text: below the line where B was faster, above it where it was slower.

    A click goes there, and so does dragging.
    """

    class Sought(Message):
        """A token that the mouse asks for."""

        def __init__(self, token: int) -> None:
            super().__init__()
            self.token = token

    PREFIX = "scrub"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"scrub--{name}" for name in ("dim", "gain", "loss", "here")}

    def __init__(self, aligned: Aligned, glyphs: Glyphs = COLOUR) -> None:
        super().__init__()
        self._aligned = aligned
        self._glyphs = glyphs
        self._token = 0
        self._lost: list[float] = []

    def show(self, token: int) -> None:
        self._token = token
        self.refresh()

    @property
    def parts(self) -> int:
        return max(1, min(self.size.width - NAMES - SCALE, self._aligned.n_tokens))

    def grasped(self, x: int, y: int) -> None:
        part = min(max(0, x - NAMES), self.parts - 1)
        self.post_message(self.Sought(part * self._aligned.n_tokens // self.parts))

    dragged = let_go = grasped

    def render_line(self, y: int) -> Strip:
        if len(self._lost) != self.parts:
            self._lost = self._aligned.lost_ms(self.parts).tolist()
        most = max((abs(ms) for ms in self._lost), default=0.0) or 1.0
        if y == 2:
            at = self._token * self.parts // self._aligned.n_tokens
            return self.strip([Segment(f"{'':{NAMES}}{'':{at}}^", self.style("here"))])
        name, style, sign = (" B slower ", "loss", 1) if y == 0 else (" B faster ", "gain", -1)
        cells = "".join(self._glyphs.spark[round(8 * max(0.0, sign * ms) / most)] for ms in self._lost)
        scale = f" {most:.1f} ms" if y == 0 else ""
        return self.strip(
            [
                Segment(name, self.style("dim")),
                Segment(cells, self.style(style)),
                Segment(scale, self.style("dim")),
            ]
        )


class Words(LineWidget):
    """The text about the token; what A's window wrote stands out."""

    PREFIX = "text"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"text--text", "text--note", "text--here", "text--dim"}

    def __init__(self, aligned: Aligned) -> None:
        super().__init__()
        self._aligned = aligned
        self._token = 0
        self._lines: list[TextLine] = []

    def on_resize(self) -> None:
        self.show(self._token)

    def show(self, token: int) -> None:
        self._token = token
        lines = self._about(token)
        marked = next((n for n, line in enumerate(lines) if any(style == "here" for _, style in line)), 0)
        self._lines = lines[max(0, min(marked - 1, len(lines) - self.size.height)) :]
        self.refresh()

    def _about(self, token: int) -> list[TextLine]:
        tokens = self._aligned.tokens
        if not tokens:
            return [[("these recordings do not know their text", "dim")]]
        piece = self._aligned.comparison.a.recording.piece
        here = self._aligned.a.at(token)
        room = self.size.width * self.size.height // 2
        wrapped = Wrapped(max(1, self.size.width - 2))
        for i in range(max(0, here.first - room // 4), min(len(tokens), here.first + room // 2)):
            is_here = here.first <= i < here.first + here.emitted
            wrapped.feed(printable(piece(tokens[i]), newlines=False), "here" if is_here else "text")
        return list(wrapped.lines)

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else []
        return self.strip([Segment(" "), *(Segment(text, self.style(style)) for text, style in line)])


class Figures(PagePanel):
    """What `strata-tui compare` prints, below the lanes."""

    PREFIX = "table"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--value"}

    def __init__(self, aligned: Aligned, glyphs: Glyphs = COLOUR) -> None:
        super().__init__(glyphs)
        from strata_tui.record.comparison_report import comparison_lines

        lines = comparison_lines(aligned.comparison)
        self.tell([(("value", f" {printable(line, newlines=False)}"),) for line in lines])

    def on_resize(self) -> None:
        self.scroll_lines(0)
