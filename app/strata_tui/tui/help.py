"""Every word on the screen and every key, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


def keys(in_force: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys and what they do; `in_force`: of each command."""
    for command in COMMANDS:
        names = " ".join(shown_keys(in_force[command.name]))
        yield names, command.words + (f": {command.more}" if command.more else "")


class Help(ModalScreen[None]):
    """Keys, shapes, words."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape,question_mark,q,enter,space", "dismiss", "close"),
    ]

    def __init__(self, glyphs: Glyphs, keys_in_force: Mapping[str, str]) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._keys = keys_in_force

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(self._page(), id="help-page")

    def _page(self) -> Text:
        page = Text()
        self._section(page, "keys", tuple(keys(self._keys)))
        page.append("shapes\n", "bold")
        for state in list(LaneState)[:-1]:
            word = state.name.lower().replace("_", " ")
            word = {"run even": "run", "run odd": "next window"}.get(word, word)
            page.append(f"  {self._glyphs.lane(state, 0, 1) * 4:<14}{word}\n")
        glyphs = self._glyphs
        page.append(f"  {glyphs.accepted * 3 + glyphs.rejected:<14}three drafts accepted, one rejected\n")
        for fate in Fate:
            page.append(f"  {glyphs.fates[fate]:<14}{fate.name.lower().replace('_', ' ')}\n")
        page.append("\n")
        self._section(page, "words", WORDS)
        return page

    @staticmethod
    def _section(page: Text, title: str, rows: tuple[tuple[str, str], ...]) -> None:
        page.append(f"{title}\n", "bold")
        for name, text in rows:
            page.append(f"  {name:<16}", "bold")
            page.append(f"{text}\n")
        page.append("\n")
