"""The line in which a prompt is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from strata_tui.tui.listening import Listening

LONGEST = 2000  # characters; what a key costs grows with them


class PromptLine(Listening, Input):
    """One line of bounded length.

    Args:
        told: takes a line to tell.
        submit: takes the line as it stands when enter is typed.
        change_state: the action, as textual calls it, that changes between chat and raw.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "change_state", "chat or raw", show=False)]

    def __init__(self, told: Callable[[str], None], submit: Callable[[], None], change_state: str) -> None:
        # What was begun is gone on with. A selection is made when the focus is told, and would take in what
        # has been typed by then.
        super().__init__(
            placeholder="n: a prompt of your own", compact=True, max_length=LONGEST, select_on_focus=False
        )
        self._told = told
        self._submit = submit
        self._change_state = change_state
        self._is_full = False  # and it has been said

    async def typed(self, event: events.Key | events.Paste) -> bool:
        """Takes text in; False: it is none."""
        if isinstance(event, events.Paste):
            self._on_paste(event)
            if len(event.text.splitlines()) > 1:
                self._told("a prompt typed here is one line: the first of what was pasted")
            return True
        if event.is_printable and not event.key.startswith("alt+"):  # escape and a letter in one: no text
            await self._on_key(event)
        return event.is_printable

    async def action_submit(self) -> None:
        """At once: a message would come behind the keys that wait."""
        self._submit()

    async def action_change_state(self) -> None:
        """While a prompt is typed, letters are letters."""
        await self.app.run_action(self._change_state)

    def restricted(self) -> None:
        """Said once for a prompt, not with every key."""
        if not self._is_full:
            self._is_full = True
            self._told(
                f"a prompt typed here has {LONGEST:,} characters at most; strata-tui run -f FILE reads "
                "longer ones"
            )

    def watch_value(self, value: str) -> None:
        self._is_full &= len(value) >= LONGEST
