"""What is drafted behind the end of the text: a draft in flight, gone or confirmed with its verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from strata_tui.analysis.fate import KEPT, Fate

if TYPE_CHECKING:
    from strata_tui.analysis.windows import WindowArray

Span = tuple[str, str]  # text, style of the text panel
_FIRST: tuple[Fate, ...] = (Fate.FRESH, *KEPT)  # fates of the window whose verdict is next
_BEHIND: tuple[Fate, ...] = (Fate.GUESS, Fate.IN_FLIGHT)


def drafted(windows: WindowArray, n_tokens: int, piece: Callable[[int], str] | None) -> list[Span]:
    """The drafts of the window that waits for its verdict, then the guesses behind it with theirs.

    Args:
        windows: the newest last.
        n_tokens: of prompt and text, as far as it is shown: drafts begin behind them.
        piece: what a token is written as; None: nothing can be shown.

    Returns:
        Spans in the styles `draft` and `guess`; none where the text is not as far as the windows, or further.
    """
    if piece is None:
        return []
    waiting = [w for w in windows[::-1] if w["accepted"] < 0]
    spans: list[Span] = []
    at, fates, style = n_tokens - 1, _FIRST, "draft"
    while True:
        window = next((w for w in waiting if w["position"] == at and w["fate"] in fates), None)
        if window is None:
            return spans
        rows = int(window["rows"])
        tokens = [*([window["guessed"]] if style == "guess" else []), *window["drafts"][: max(0, rows - 1)]]
        text = "".join(piece(int(token)) for token in tokens if token >= 0)
        spans.append((text, style))
        at, fates, style = at + max(1, rows), _BEHIND, "guess"
