"""What one refresh shows. The app asks the view model once and hands the same frame to every widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from strata_tui.analysis.fate import Fate

if TYPE_CHECKING:
    from strata_tui.analysis.view import Picture, Rates
    from strata_tui.analysis.windows import WindowArray
    from strata_tui.paced import HandOffTimes
    from strata_tui.placement import SharedCores


@dataclass(frozen=True)
class StageLabel:
    """A stage in words: `cpu 1 thread`, layers 0-5."""

    index: int
    device: str
    first_layer: int
    last_layer: int


@dataclass(frozen=True)
class ModelLabel:
    """What is open."""

    name: str
    arch: str
    n_layers: int
    context: int
    stages: tuple[StageLabel, ...]
    has_draft_layer: bool
    emulated: bool
    pipeline_max: int = 0  # windows in flight that there is memory for
    shared_cores: tuple[SharedCores, ...] = ()  # see Engine
    hand_offs: tuple[HandOffTimes | None, ...] = ()  # see Engine


@dataclass(frozen=True)
class Tape:
    """Where a replay is."""

    at_s: float
    length_s: float
    speed: float
    held: bool


@dataclass(frozen=True)
class Frame:
    """Everything on the screen but the text, at one moment."""

    model: ModelLabel
    now_ns: int
    begin_ns: int  # of the session: the ruler's zero
    state: str  # "live" | "paused" (decoding is) | "stopped"
    behind_ns: int | None  # how far the frozen view lies behind the present; None = live
    picture: Picture
    windows: WindowArray
    rates: Rates
    asked: dict[str, Any]  # switches
    in_force: dict[str, Any]
    gains: dict[str, float]  # of tok/s, modelled: what the key of a switch is predicted to give
    n_text: int  # number of the text being written, from 1
    told: str = ""  # under the lanes, in place of the legend
    cursor: tuple[int, int, int] | None = None  # lane, start and end of the span looked at
    path: tuple[tuple[int, int, int], ...] = ()  # lane, start, end: the critical path
    recording: bool = False  # into a file
    tape: Tape | None = None  # a recording is played
    chat: bool | None = None  # the next prompt goes in by the chat template; None = the file has none

    @property
    def seen_ns(self) -> int:
        """The moment at the right of the view: the present, or where it is frozen."""
        return self.now_ns if self.behind_ns is None else self.picture.t1_ns

    @property
    def with_guesses(self) -> bool:
        """Are windows in flight asked for, or were they, as far as the screen shows?"""
        return self.in_force.get("pipeline_windows", 0) > 1 or any(
            fate not in (Fate.FRESH, Fate.PROMPT) for fate in self.picture.fates.values()
        )
