"""What the rooms of the console ask of its screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

Severity = Literal["information", "warning", "error"]


class Desk(Protocol):
    """The console's own face: everything else that a room works with is given to it by name."""

    def tell(self, line: str, severity: Severity = "information") -> None:
        """Say a line for some seconds; no markup is read in it."""

    def tell_kept(self, line: str) -> None:
        """Say a line that is looked for again, as where a file is: it goes into the log too."""

    def refresh_soon(self) -> None:
        """Show what has changed at once, not at the next round."""

    def spawn(self, work: Callable[[], None]) -> None:
        """Run in a thread that the console waits for when it closes."""

    def from_thread(self, call: Callable[..., None], *args: object) -> None:
        """Run on the screen's thread, unless the screen has gone."""
