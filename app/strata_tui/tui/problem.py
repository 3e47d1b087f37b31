"""What went wrong, in the engine's words, and what can be done."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static


class Problem(Static):
    """A panel that is there only while there is something to say."""

    def tell(self, line: str, advice: str) -> None:
        """Show one error line and what to do."""
        self.update(Text.assemble((line, "bold"), "\n", advice))
        self.display = True

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self.display = False
