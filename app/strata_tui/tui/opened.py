"""What the console needs of an open model: an engine, and words for tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from strata_tui.record.playback import Playback
    from strata_tui.record.trace import TraceMeta
    from strata_tui.tui.about import About
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
        encode: a prompt to tokens; True: by the chat template.
        decoder: a fresh decoder for one text.
        sampling: the sampling of a request by its number, from 0.
        end_tokens: tokens that end a text.
        max_tokens: of one text; 0 = up to the context.
        prompts: the prompts to go through, over and over, where they go in as they are.
        chat_prompts: the same where they go in by the chat template; () = the file has none.
        chat: how it begins.
        trace_meta: what stands in a trace beside the events.
        log: takes the lines of each request, if they are asked for.
        recording_header: makes the header of a recording; None = it can't be recorded.
        piece: what a token is written as; None = not known.
        profile: a profile's text of its name and the switches in force; None = there is none to save.
        about: what is open, in full; takes a while.
        tape: the recording that is played in place of a model; None = there is a model.
        reports: what else is to be told of each request; see `switches.REPORTS`.
    """

    engine: Any
    label: ModelLabel
    encode: Callable[[str, bool], list[int]]
    decoder: Callable[[], Decoder]
    sampling: Callable[[int], Any]
    end_tokens: list[int]
    max_tokens: int
    prompts: tuple[str, ...]
    chat_prompts: tuple[str, ...]
    chat: bool
    trace_meta: Callable[[], TraceMeta]
    log: Callable[[str], None] | None = None
    reports: frozenset[str] = frozenset()
    recording_header: Callable[[], Mapping[str, Any]] | None = None
    piece: Callable[[int], str] | None = None
    profile: Callable[[str, Mapping[str, Any]], str] | None = None
    about: Callable[[], About] | None = None
    tape: Playback | None = None
