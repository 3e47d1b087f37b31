"""Every word on the screen and every key, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import LaneState
from strata_tui.tui.commands import COMMANDS, shown_keys
from strata_tui.tui.glossary import WORDS
from strata_tui.tui.glyphs import Glyphs

Row = tuple[str, str]
NAMES = 20  # cells, two of them in front


def keys(in_force: Mapping[str, str]) -> Iterator[Row]:
    """Keys and what they do; `in_force`: of each command."""
    for command in COMMANDS:
        names = " ".join(shown_keys(in_force[command.name]))
        yield names, command.words + (f": {command.more}" if command.more else "")


class Help(ModalScreen[None]):
    """Keys, shapes, words. It hides the head, so it says EMULATED itself."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape,question_mark,q,enter,space", "dismiss", "close"),
    ]

    AUTO_FOCUS = "#help"  # the keys that scroll work at once

    def __init__(self, glyphs: Glyphs, keys_in_force: Mapping[str, str], emulated: bool) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._keys = keys_in_force
        self._emulated = emulated

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            for title, rows in self.sections():
                yield Static(Text(title, "bold"))
                yield Static(_columns(rows), classes="help-rows")

    def on_mount(self) -> None:
        page = self.query_one("#help")
        page.border_title = "help, EMULATED" if self._emulated else "help"
        page.border_subtitle = "up, down, pages scroll; escape closes"

    def sections(self) -> Iterator[tuple[str, list[Row]]]:
        """Title and rows of each."""
        yield "keys", list(keys(self._keys))
        yield "shapes", list(self._shapes())
        yield "words", list(WORDS)

    def _shapes(self) -> Iterator[Row]:
        glyphs = self._glyphs
        for state in list(LaneState)[:-1]:
            word = state.name.lower().replace("_", " ")
            word = {"run even": "run", "run odd": "next window"}.get(word, word)
            yield glyphs.lane(state, 0, 1) * 4, word
        yield glyphs.accepted * 3 + glyphs.rejected, "three drafts accepted, one rejected"
        for fate in Fate:
            yield glyphs.fates[fate], fate.name.lower().replace("_", " ")


def _columns(rows: list[Row]) -> Table:
    """Names in a column of their own, so that long lines go on under their beginning."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=NAMES, no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(Text(f"  {name}", "bold"), Text(text))
    return table
