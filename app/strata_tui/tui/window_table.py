"""The windows as a table: what each drafted, in words, what was accepted, why a guess missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip

from strata_tui.analysis.fate import KEPT, LOST, Fate
from strata_tui.terminal_text import printable
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_panel import LinePanel
from strata_tui.tui.line_widget import shortened

if TYPE_CHECKING:
    from strata_tui.analysis.view import View

Part = tuple[str, str]
FIXED = 16  # window, position, sign
BONUS, ESTIMATE, MS, WHAT = 12, 5, 7, 16
_FATES: dict[int, str] = {
    Fate.FRESH: "",
    Fate.KEPT_AFTER_FRESH: "kept",
    Fate.KEPT_AFTER_KEPT: "kept again",
    Fate.GUESS: "built",
    Fate.IN_FLIGHT: "in flight",
    Fate.ROLLED_BACK: "rolled back",
    Fate.GATED: "gated",
    Fate.LATE: "late",
    Fate.ENDED: "text ended",
}
_MISSES = {1: "draft wrong", 2: "bonus wrong", 3: "forced miss"}  # MissCause, whose import has to wait


class WindowTable(LinePanel):
    """Newest at the bottom; follows unless it is scrolled back or held."""

    PREFIX = "table"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"table--{name}" for name in ("head", "dim", "value", "accepted", "rejected", "kept", "lost")
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._piece: Callable[[int], str] | None = None
        self._words: dict[int, str] = {}
        self._view: View | None = None
        self._until_ns = 0
        self._last: int | None = None  # window at the bottom; None = the newest
        self._rows: list[dict[str, Any]] = []
        self._raw = b""

    def show(self, view: View, until_ns: int, piece: Callable[[int], str] | None) -> None:
        """Draw the windows built by `until_ns`; `piece`: what a token is written as."""
        self._view, self._until_ns, self._piece = view, until_ns, piece
        self._look()

    def on_resize(self) -> None:
        self._look()

    def _look(self) -> None:
        if self._view is None:
            return
        n = max(1, self.size.height - 1)
        back = self._view.windows_behind(self._last, self._until_ns) if self._last is not None else 0
        page, _ = self._view.page_of_windows(self._until_ns, n, back)
        raw = page.tobytes()
        if raw != self._raw:
            self._raw = raw
            self._rows = [dict(zip(page.dtype.names or (), row, strict=True)) for row in page.tolist()]
            self.refresh()

    # -- what every panel can do

    @property
    def page(self) -> int:
        return self.size.height - 2

    def hold(self, on: bool) -> None:
        if not on:
            self._last = None
        self._look()

    def scroll_lines(self, n: int) -> None:
        """Back (negative) or on; at the end it follows again."""
        if self._view is None or not self._rows:
            return
        back = self._view.windows_behind(self._rows[-1]["id"], self._until_ns) - n
        page, back = self._view.page_of_windows(self._until_ns, max(1, self.size.height - 1), back)
        self._last = int(page["id"][-1]) if back else None
        self._look()

    # -- drawing

    def render_line(self, y: int) -> Strip:
        room = max(8, self.size.width - FIXED - BONUS - ESTIMATE - MS - WHAT)
        if y == 0:
            head = f" window    at   {'drafts':<{room}}{'bonus':<{BONUS}}"
            head += f"{'est.':>{ESTIMATE}}{'ms':>{MS}}  became"
            return self.strip([Segment(head, self.style("head"))])
        if not self._rows:
            return self.strip([Segment(" none yet" if y == 1 else "", self.style("dim"))])
        if y > len(self._rows):
            return self.strip([])
        return self.strip(
            [Segment(text, self.style(name)) for name, text in self._row(self._rows[y - 1], room)]
        )

    def _row(self, of: dict[str, Any], room: int) -> Iterator[Part]:
        fate = of["fate"]
        verified = of["accepted"] >= 0
        sign = Fate.IN_FLIGHT if fate == Fate.FRESH and not verified else fate
        mark = "kept" if fate in KEPT else "lost" if fate in LOST else "dim"
        yield "dim", f"{of['id']:>7}"
        yield "value", f"{of['position']:>6} "
        yield mark, f"{self.glyphs.fates.get(sign, '?')} "
        yield from _cut(self._drafts(of, verified), room - 1, self.glyphs.ellipsis)
        yield "dim", " "
        bonus = f"+{of['emitted']} {self._word(of['bonus'])}" if of["emitted"] else ""
        yield "value", set_cell_size(shortened(bonus, BONUS - 1, self.glyphs.ellipsis), BONUS)
        yield "dim", f"{of['estimate']:>{ESTIMATE}.2f}" if of["estimate"] >= 0 else " " * ESTIMATE
        yield "value", f"{of['busy_ns'] / 1e6:>{MS}.1f}" if of["busy_ns"] else " " * MS
        missed = _MISSES.get(of["miss"], "")
        if missed and of["second_right"]:
            missed += ", 2nd ok"
        if missed:
            yield "rejected", f"  {missed}"
        else:
            yield mark, f"  {_FATES.get(fate, '') if verified or fate != Fate.FRESH else 'in flight'}"

    def _drafts(self, of: dict[str, Any], verified: bool) -> Iterator[Part]:
        """A guess's row 0 in front, then each draft behind its mark."""
        if of["guessed"] >= 0:
            yield "dim", f"({self._word(of['guessed'])}) "
        for k in range(of["rows"] - 1):
            if not verified:
                style, mark = "dim", self.glyphs.dot
            elif k < of["accepted"]:
                style, mark = "accepted", self.glyphs.accepted
            else:
                style, mark = "rejected", self.glyphs.rejected
            yield style, mark
            yield "value" if style == "accepted" else "dim", f"{self._word(of['drafts'][k])} "

    def _word(self, token: int) -> str:
        """A token as text: blanks and line ends are seen."""
        if token < 0:
            return ""
        if self._piece is None:
            return str(token)
        if token not in self._words:
            if len(self._words) > 20_000:
                self._words.clear()
            text = printable(self._piece(token).replace("\n", "\\n"), newlines=False)
            self._words[token] = text.strip() or "_" * max(1, len(text))
        return self._words[token]


def _cut(parts: Iterator[Part], room: int, mark: str) -> Iterator[Part]:
    """Exactly `room` cells; `mark` ends them where something was cut."""
    whole = list(parts)
    if cut := cell_len("".join(text for _, text in whole).rstrip()) > room:
        room -= cell_len(mark)
    for style, text in whole:
        length = min(cell_len(text), room)
        if length:
            yield style, set_cell_size(text, length)
        room -= length
    yield "dim", mark if cut else " " * room
