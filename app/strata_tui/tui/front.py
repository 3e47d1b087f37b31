"""What there is to see before anything else: the head, how far the opening of the model is, the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container

from strata_tui.tui.commands import BY_NAME, COMMANDS, shown_keys
from strata_tui.tui.glyphs import Glyphs
from strata_tui.tui.header import Header
from strata_tui.tui.key_bar import Item, KeyBar
from strata_tui.tui.load_panel import LoadPanel

if TYPE_CHECKING:
    from strata_tui.tui.load import Load


class Front:
    """The widgets of the first paint, which stay; those of `face` come to stand among them.

    Args:
        keys: in force, by command.
        load: how far the opening of the model is.
    """

    def __init__(self, glyphs: Glyphs, keys: Mapping[str, str], load: Load) -> None:
        self.keys = keys
        self._load = load
        self.head = Header(glyphs)
        self.load_panel = LoadPanel(load, glyphs)
        self.middle = Container(self.load_panel, id="middle")
        self.key_bar = KeyBar(self._shown_keys(), (BY_NAME["quit"].action, BY_NAME["help"].action))

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.middle
        yield self.key_bar

    def look(self) -> None:
        """Say what is done until there is a model."""
        if self._load.what:
            self.head.tell(f"opening {self._load.what}")
        self.load_panel.look()

    def show_keys_of_replay(self) -> None:
        """A replay has those that act on it in place of others."""
        self.key_bar.show(self._shown_keys(of_replay=True))

    def _shown_keys(self, of_replay: bool = False) -> list[Item]:
        """The commands that the last line names."""
        shown: list[Item] = []
        for command in COMMANDS:
            key, word = shown_keys(self.keys[command.name])[0], command.short
            if of_replay:
                word = "" if command.past else command.of_replay or word
            if word:
                shown.append((key, word, command.action))
        return [*shown, ("^p", "palette", "command_palette")]
