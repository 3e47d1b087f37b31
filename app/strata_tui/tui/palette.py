"""Textual's palette of commands, safe from keys that come faster than its list."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.widgets import Button, Input, OptionList


class Palette(CommandPalette):
    """Chooses once: a second enter, typed before it is gone, would run the command again and take the next
    screen away too."""

    def __init__(self) -> None:
        super().__init__(placeholder="search for a command", id="--command-palette")  # no ellipsis: no ASCII
        self._has_chosen = False
        self._is_dismissed = False

    @on(OptionList.OptionSelected)
    def _choose_once(self, event: OptionList.OptionSelected) -> None:
        if self._has_chosen or self._is_dismissed:
            _drop(event)
        self._has_chosen = True

    @on(Input.Submitted)
    @on(Button.Pressed)
    def _submit_no_more(self, event: Input.Submitted | Button.Pressed) -> None:
        if self._has_chosen or self._is_dismissed:
            _drop(event)

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Once."""
        if self._is_dismissed:
            return AwaitComplete()
        self._is_dismissed = True
        return super().dismiss(result)

    def _action_command_list(self, action: str) -> None:
        """A list that hasn't been laid out yet knows no lines to page by."""
        with suppress(LookupError):
            super()._action_command_list(action)


def _drop(event: OptionList.OptionSelected | Input.Submitted | Button.Pressed) -> None:
    event.stop()
    event.prevent_default()
