"""The widgets of the console, and what each of them shows of a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.containers import Container

from strata_tui.terminal_text import printable
from strata_tui.tui.commands import BY_NAME, shown_keys
from strata_tui.tui.flip_line import FlipLine
from strata_tui.tui.glyphs import Glyphs
from strata_tui.tui.lanes import Lanes
from strata_tui.tui.model_panel import ModelPanel
from strata_tui.tui.next_settings import next_settings
from strata_tui.tui.panel import Panels
from strata_tui.tui.problem import Problem, advice
from strata_tui.tui.prompt_line import PromptLine
from strata_tui.tui.prompt_state import PromptState
from strata_tui.tui.rates import RatesPanel
from strata_tui.tui.replay_bar import ReplayBar
from strata_tui.tui.switches import SwitchBar
from strata_tui.tui.text import TextPanel
from strata_tui.tui.why import WhyPanel
from strata_tui.tui.window_table import WindowTable
from strata_tui.tui.windows import Windows

if TYPE_CHECKING:
    from strata_tui.record.playback import Playback
    from strata_tui.tui.frame import Frame
    from strata_tui.tui.front import Front
    from strata_tui.tui.sitting import Sitting

NEWEST_WINDOWS = 16  # among which those in flight are
SetClass = Callable[[bool, str], object]


class Face:
    """From top to bottom: head, error, lanes, windows, one panel beside the figures, prompt, switches, keys.

    Made behind the first paint, which would wait for its modules and styles.

    Args:
        front: what is on the screen already.
        tell: takes a line to tell.
        submit: takes the prompt as it stands.
        set_class: turns a class of the app on or off; the style sheet lays out by them.
    """

    def __init__(
        self,
        front: Front,
        glyphs: Glyphs,
        tell: Callable[[str], None],
        submit: Callable[[], None],
        set_class: SetClass,
    ) -> None:
        keys = front.keys
        self._front = front
        self._glyphs = glyphs
        self._set_class = set_class
        self.problem = Problem()
        self.lanes = Lanes(glyphs)
        self.strip = Windows(glyphs)
        self.figures = RatesPanel(glyphs)
        self.text_panel = TextPanel(glyphs)
        self.log_panel = TextPanel(glyphs, empty="a line for each verdict comes here", id="log")
        self.why_panel = WhyPanel(glyphs)
        self.table = WindowTable(glyphs)
        self.model_panel = ModelPanel(glyphs)
        self.panels: Panels = Panels(
            {
                "load": front.load_panel,
                "text": self.text_panel,
                "log": self.log_panel,
                "why": self.why_panel,
                "table": self.table,
                "model": self.model_panel,
            },
            (shown_keys(keys["look-back"])[0], shown_keys(keys["look-on"])[0]),
        )
        self.prompt: PromptLine = PromptLine(tell, submit, BY_NAME["chat"].action)
        self.prompt_state = PromptState(shown_keys(keys["chat"])[0], BY_NAME["chat"].action)
        self.asking = Container(self.prompt_state, self.prompt, id="asking")
        self.replay_bar: ReplayBar | None = None
        self.flip_line = FlipLine(glyphs)
        self.switch_bar = SwitchBar()
        self.panels.show("load")

    async def take_place(self) -> None:
        """Onto the screen."""
        middle, load_panel, key_bar = self._front.middle, self._front.load_panel, self._front.key_bar
        screen = middle.screen
        await screen.mount(self.problem, self.lanes, self.strip, before=middle)
        await middle.mount(self.figures, before=load_panel)
        await middle.mount(*(panel for panel in self.panels.all if panel is not load_panel))
        await screen.mount(self.asking, self.flip_line, self.switch_bar, before=key_bar)

    def tell_unopened(self, error: str) -> None:
        """There will be no model."""
        self._front.look()
        self._front.head.tell("no model is open")
        self.problem.tell(error, f"{advice(error)}; {shown_keys(self._front.keys['quit'])[0]} quits")

    def see(self, name: str) -> None:
        """A panel in place of the text, or the text again."""
        self.panels.toggle(name)
        for panel, of_style in (("why", "-explains"), ("table", "-table"), ("model", "-model")):
            self._set_class(self.panels.shown == panel, of_style)

    def tell_error(self, error: str) -> None:
        """Of the text that ended last; "" = nothing is wrong."""
        if error and not self.problem.display:
            advice = "n or enter starts a new text, q quits; the events up to here can be exported: e"
            self.problem.tell(error, advice)
        elif not error and self.problem.display:
            self.problem.clear()

    def take_tape(self, tape: Playback, seek: Callable[[int], None]) -> None:
        """A replay takes no prompt: where it is stands in its place."""
        self.replay_bar = ReplayBar(tape, seek, self._glyphs)
        self.prompt.display = self.prompt_state.display = False
        self.asking.mount(self.replay_bar)
        self._front.show_keys_of_replay()

    def begin_anew(self, kept: Sequence[str]) -> None:
        """Nothing has been told yet but these lines of the log."""
        self.text_panel.clear()
        self.log_panel.clear()
        for line in kept:
            self.log_panel.add(f"{line}\n", "text")
        self.table.hold(False)

    # -- a frame

    def show(self, frame: Frame, sitting: Sitting) -> None:
        """Each widget looks for itself whether that is anything new."""
        self._set_class(frame.rates.guesses.built > 0, "-guesses")
        self.figures.show(frame.rates)
        self._front.head.show(frame)
        self.switch_bar.show(frame)
        self.prompt_state.show(frame)
        if self.replay_bar is not None:
            self.replay_bar.look()
        self.lanes.show(frame)
        self.strip.show(frame)
        goes_on = frame.behind_ns is not None and frame.tape is None
        line = sitting.measuring.line
        self.flip_line.show(f"live, {line}" if line and goes_on else line)
        self._foresee(frame, sitting)
        if self.panels.shown == "why":
            self._explain(frame, sitting)
        elif self.panels.shown == "table":
            self.table.show(sitting.view, frame.seen_ns, sitting.opened.piece)

    def _foresee(self, frame: Frame, sitting: Sitting) -> None:
        """Drafts behind the text, unless the screen is of another moment."""
        from strata_tui.tui.drafted import drafted

        if frame.behind_ns is None:
            newest = sitting.view.windows_before(frame.now_ns, NEWEST_WINDOWS)
            spans = drafted(newest, sitting.texts.n_tokens, sitting.opened.piece)
            self.text_panel.foresee([(printable(text, newlines=False), style) for text, style in spans])

    def _explain(self, frame: Frame, sitting: Sitting) -> None:
        from strata_tui.tui.predicting import prediction_line

        label = frame.model
        frozen_ns = None if frame.behind_ns is None else frame.seen_ns
        why = sitting.explaining.look(frame.now_ns, frozen_ns, frame.in_force)
        if frozen_ns is None:
            asked = next_settings(frame.in_force, len(label.stages), label.pipeline_max)
            sitting.predicting.look(frame.now_ns, frame.in_force, asked)
        model = sitting.predicting.of(frame.in_force)
        if why is not None:  # what a rule advises and what the model says of it stand together
            told = (
                replace(finding, text=finding.text + model.beside(finding.key)) for finding in why.findings
            )
            why = replace(why, findings=tuple(told))
        goes_on = frozen_ns is not None and frame.tape is None
        self.why_panel.show(why, label.stages, sitting.measuring.lines, prediction_line(model), goes_on)
