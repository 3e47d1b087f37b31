"""The widgets of the console, and what each of them shows of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container

from strata_tui.terminal_text import printable
from strata_tui.tui.commands import BY_NAME, COMMANDS, shown_keys
from strata_tui.tui.flip_line import FlipLine
from strata_tui.tui.glyphs import Glyphs
from strata_tui.tui.header import Header
from strata_tui.tui.key_bar import Item, KeyBar
from strata_tui.tui.lanes import Lanes
from strata_tui.tui.load_panel import LoadPanel
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
    from strata_tui.tui.load import Load
    from strata_tui.tui.sitting import Sitting

NEWEST_WINDOWS = 16  # among which those in flight are
SetClass = Callable[[bool, str], object]


class Face:
    """From top to bottom: head, error, lanes, windows, one panel beside the figures, prompt, switches, keys.

    Args:
        keys: in force, by command.
        load: how far the opening of the model is.
        tell: takes a line to tell.
        set_class: turns a class of the app on or off; the style sheet lays out by them.
    """

    def __init__(
        self,
        glyphs: Glyphs,
        keys: Mapping[str, str],
        load: Load,
        tell: Callable[[str], None],
        set_class: SetClass,
    ) -> None:
        self._glyphs = glyphs
        self._keys = keys
        self._load = load
        self._set_class = set_class
        self.head = Header(glyphs)
        self.problem = Problem()
        self.lanes = Lanes(glyphs)
        self.strip = Windows(glyphs)
        self.figures = RatesPanel(glyphs)
        self.load_panel = LoadPanel(load, glyphs)
        self.text_panel = TextPanel()
        self.log_panel = TextPanel(empty="a line for each verdict comes here", id="log")
        self.why_panel = WhyPanel(glyphs)
        self.table = WindowTable(glyphs)
        self.model_panel = ModelPanel()
        self.panels: Panels = Panels(
            {
                "load": self.load_panel,
                "text": self.text_panel,
                "log": self.log_panel,
                "why": self.why_panel,
                "table": self.table,
                "model": self.model_panel,
            },
            (shown_keys(keys["look-back"])[0], shown_keys(keys["look-on"])[0]),
        )
        self.prompt: PromptLine = PromptLine(tell, BY_NAME["chat"].action)
        self.prompt_state = PromptState(shown_keys(keys["chat"])[0], BY_NAME["chat"].action)
        self.replay_bar: ReplayBar | None = None
        self.flip_line = FlipLine(glyphs)
        self.switch_bar = SwitchBar()
        self.key_bar = KeyBar(self._shown_keys(), (BY_NAME["quit"].action, BY_NAME["help"].action))

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.problem
        yield self.lanes
        yield self.strip
        with Container(id="middle"):
            yield self.figures
            yield from self.panels.all
        with Container(id="asking"):
            yield self.prompt_state
            yield self.prompt
        yield self.flip_line
        yield self.switch_bar
        yield self.key_bar

    def begin(self) -> None:
        """Before there is a model."""
        self.problem.clear()
        self.panels.show("load")
        self.look_at_load()

    def look_at_load(self) -> None:
        """Say what is done until there is a model."""
        if self._load.what:
            self.head.tell(f"opening {self._load.what}")
        self.load_panel.look()

    def tell_unopened(self, error: str) -> None:
        """There will be no model."""
        self.look_at_load()
        self.head.tell("no model is open")
        self.problem.tell(error, f"{advice(error)}; {shown_keys(self._keys['quit'])[0]} quits")

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

    def _shown_keys(self, of_replay: bool = False) -> list[Item]:
        """The commands that the last line names; a replay has those that act on it in place of others."""
        shown: list[Item] = []
        for command in COMMANDS:
            key, word = shown_keys(self._keys[command.name])[0], command.short
            if of_replay:
                word = "" if command.past else command.of_replay or word
            if word:
                shown.append((key, word, command.action))
        return [*shown, ("^p", "palette", "command_palette")]

    def take_tape(self, tape: Playback, seek: Callable[[int], None]) -> None:
        """A replay takes no prompt: where it is stands in its place."""
        self.replay_bar = ReplayBar(tape, seek, self._glyphs)
        asking = self.prompt.parent
        assert isinstance(asking, Container)
        self.prompt.display = self.prompt_state.display = False
        asking.mount(self.replay_bar)
        self.key_bar.show(self._shown_keys(of_replay=True))

    def begin_anew(self) -> None:
        """Nothing has been told yet."""
        self.text_panel.clear()
        self.log_panel.clear()
        self.table.hold(False)

    # -- a frame

    def show(self, frame: Frame, sitting: Sitting) -> None:
        """Each widget looks for itself whether that is anything new."""
        self._set_class(frame.rates.guesses.built > 0, "-guesses")
        self.figures.show(frame.rates)
        self.head.show(frame)
        self.switch_bar.show(frame)
        self.prompt_state.show(frame)
        if self.replay_bar is not None:
            self.replay_bar.look()
        self.lanes.show(frame)
        self.strip.show(frame)
        self.flip_line.show(sitting.measuring.line)
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
        modelled = prediction_line(sitting.predicting.of(frame.in_force))
        self.why_panel.show(why, label.stages, sitting.measuring.lines, modelled)
