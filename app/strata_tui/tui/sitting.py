"""An open model and what is known of it so far: everything that is there only once the model is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strata_tui.analysis.axis import TimeAxis
from strata_tui.analysis.lane_state import LaneState
from strata_tui.analysis.view import View
from strata_tui.tui.explaining import Explaining
from strata_tui.tui.frame import Tape
from strata_tui.tui.looking import Looking
from strata_tui.tui.measuring import Measuring
from strata_tui.tui.played_texts import PlayedTexts
from strata_tui.tui.predicting import Predicting
from strata_tui.tui.texts import Texts

if TYPE_CHECKING:
    from strata_tui.events import Events
    from strata_tui.tui.opened import Opened


class Sitting:
    """Pulls what the engine has recorded; holds what the screen shows of it.

    Args:
        spawn: runs a call in a thread; in tests at once.
        spare: look at what explaining and predicting cost; False in tests.
        axis: goes on with this one.
    """

    def __init__(
        self,
        opened: Opened,
        spawn: Callable[[Callable[[], None]], None],
        spare: bool,
        axis: TimeAxis | None = None,
    ) -> None:
        label = opened.label
        self.opened = opened
        self.view = View(len(label.stages), draft_lane=label.has_draft_layer)
        self.axis = axis or TimeAxis()
        self.texts = Texts(opened) if opened.tape is None else PlayedTexts(opened.tape)
        self.explaining = Explaining(self.view, label.pipeline_max, spare=spare)
        self.predicting = Predicting(self.view, label, spawn, spare=spare)
        self.measuring = Measuring(self.view)
        self.looking = Looking(self.view, self.axis, label.has_draft_layer)
        tape = opened.tape
        self.begin_ns = self.now_ns if tape is None else tape.begin_ns  # of the session: the ruler's zero

    @property
    def now_ns(self) -> int:
        return int(self.opened.engine.now_ns())

    @property
    def switches(self) -> Any:
        return self.opened.engine.switches

    def take(self) -> Events:
        """Take over what the engine has recorded since the last time."""
        events: Events = self.opened.engine.events()
        self.view.take(events)
        self.view.dropped = self.opened.engine.dropped_events
        return events

    @property
    def chat(self) -> bool | None:
        """The next prompt goes in by the chat template; None: there is none, or no prompt."""
        texts = self.texts
        return texts.chat if isinstance(texts, Texts) and self.opened.chat_prompts else None

    def held(self) -> LaneState | None:
        """What holds the host back at present, if it holds back."""
        if self.switches.paused:
            return LaneState.PAUSED
        return LaneState.THROTTLED if self.switches.rate else None

    def tape(self, now: int) -> Tape | None:
        """Where the replay is; None: a model decodes."""
        tape = self.opened.tape
        if tape is None:
            return None
        begin, end = tape.begin_ns, tape.end_ns
        return Tape((now - begin) / 1e9, (end - begin) / 1e9, tape.speed, tape.held)
