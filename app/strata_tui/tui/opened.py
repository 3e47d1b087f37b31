"""What the console needs of an open model: an engine, and words for tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from strata_tui.record.trace import TraceMeta
    from strata_tui.tui.frame import ModelLabel


class Decoder(Protocol):
    """Tokens to text, UTF-8-safe over any cut; as written by the model, so not yet fit for a screen."""

    def feed(self, tokens: list[int]) -> str: ...

    def flush(self) -> str: ...


@dataclass(frozen=True)
class Opened:
    """An open model.

    Attributes:
        engine: a `strata_tui.engine.Engine`.
        label: what to call it.
        encode: a prompt to tokens.
        decoder: a fresh decoder for one text.
        sampling: the sampling of a request by its number, from 0.
        end_tokens: tokens that end a text.
        max_tokens: of one text; 0 = up to the context.
        prompts: the prompts to go through, over and over.
        trace_meta: what stands in a trace beside the events.
        log: takes the lines of each request, if they are asked for.
        reports: what else is to be told of each request; see `switches.REPORTS`.
    """

    engine: Any
    label: ModelLabel
    encode: Callable[[str], list[int]]
    decoder: Callable[[], Decoder]
    sampling: Callable[[int], Any]
    end_tokens: list[int]
    max_tokens: int
    prompts: tuple[str, ...]
    trace_meta: Callable[[], TraceMeta]
    log: Callable[[str], None] | None = None
    reports: frozenset[str] = frozenset()
