"""The console: one timer pulls what the engine recorded, one frame a refresh goes to the widgets."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from strata_tui.switches import MAX_DRAFTS
from strata_tui.tui.flip_line import FlipLine
from strata_tui.tui.frame import Frame, Tape
from strata_tui.tui.glyphs import ASCII, COLOUR, Glyphs
from strata_tui.tui.header import Header
from strata_tui.tui.key_bar import KeyBar
from strata_tui.tui.lanes import Lanes
from strata_tui.tui.next_settings import next_settings, next_theta, next_windows
from strata_tui.tui.pace import Pace
from strata_tui.tui.panel import Panels
from strata_tui.tui.played_texts import PlayedTexts
from strata_tui.tui.problem import Problem
from strata_tui.tui.rates import REFRESH_NS, RatesPanel
from strata_tui.tui.switches import SwitchBar
from strata_tui.tui.text import TextPanel
from strata_tui.tui.texts import Texts
from strata_tui.tui.themes import DEFAULTS, THEMES
from strata_tui.tui.why import WhyPanel
from strata_tui.tui.window_table import WindowTable
from strata_tui.tui.windows import Windows

if TYPE_CHECKING:
    from strata_tui.analysis.axis import TimeAxis
    from strata_tui.analysis.lane_state import LaneState
    from strata_tui.analysis.pipeline_log import PipelineLog
    from strata_tui.analysis.view import Picture, Rates, View
    from strata_tui.events import Events
    from strata_tui.record.recorder import Recorder
    from strata_tui.tui.explaining import Explaining
    from strata_tui.tui.looking import Looking
    from strata_tui.tui.measuring import Measuring
    from strata_tui.tui.opened import Opened
    from strata_tui.tui.predicting import Predicting

Progress = Callable[[str], None]
RATES = (2, 5, 10, 20, 40, 80, 160, 320)


class Console(App[None]):
    """The screen of a running engine.

    Args:
        open_model: opens the model, in a thread of its own after the first paint; it may report what it does.
        glyphs: the set of shapes.
        auto_refresh: False in tests, which call `refresh_view` themselves.
        notes: lines to say once, when the screen is up.
    """

    CSS_PATH = "strata.tcss"
    TITLE = "strata"
    AUTO_FOCUS = None
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "why", "why"),
        Binding("v", "table", "windows"),
        Binding("b", "alternate", "A/B"),
        Binding("space", "freeze", "freeze"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
        Binding("o", "overlap", "overlap", show=False),
        Binding("n,enter", "prompt", "prompt", key_display="n"),
        Binding("left_square_bracket", "slower", "slower", show=False, key_display="["),
        Binding("right_square_bracket", "faster", "faster", show=False, key_display="]"),
        Binding("s", "skip", "skip"),
        Binding("e", "export", "export"),
        Binding("x", "stop", "stop"),
        Binding("w", "pipeline", "windows in flight", show=False),
        Binding("g", "gate", "gate of guesses (theta)", show=False),
        Binding("d", "draft", "draft source", show=False),
        Binding("plus,equals_sign", "draft_max(1)", "longer drafts", show=False),
        Binding("minus", "draft_max(-1)", "shorter drafts", show=False),
        Binding("r", "record", "record, or stop recording", show=False),
        Binding("c", "cap", "cap on or off", show=False),
        Binding("f", "follow", "follow: live, zoom by itself", show=False),
        Binding("u", "gap", "longest gap, again: the next longest", show=False),
        Binding("j", "verdict(1)", "next verdict", show=False),
        Binding("J", "verdict(-1)", "verdict before", show=False),
        Binding("m", "miss(1)", "next miss", show=False),
        Binding("M", "miss(-1)", "miss before", show=False),
        Binding("i", "inspect", "inspect spans with the arrows", show=False),
        Binding("k", "path", "critical path over the lanes", show=False),
        Binding("p", "pause", "pause decoding, or go on", show=False),
        Binding("full_stop", "step", "one window, while paused", show=False, key_display="."),
        Binding("left", "pan(-0.25)", "back in time", show=False),
        Binding("right", "pan(0.25)", "on in time", show=False),
        Binding("shift+left", "pan(-1)", "a screen back in time", show=False),
        Binding("shift+right", "pan(1)", "a screen on in time", show=False),
        Binding("up", "zoom(1)", "zoom in", show=False),
        Binding("down", "zoom(-1)", "zoom out", show=False),
        Binding("pageup", "scroll_text(-1)", "look back in the text", show=False),
        Binding("pagedown", "scroll_text(1)", "on in the text", show=False),
        Binding("l", "log", "log or text", show=False),
        Binding("t", "next_theme", "next theme", show=False),
        Binding("escape", "leave_prompt", "leave the prompt", show=False),
        Binding("ctrl+c", "stop", "end the text; again: quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", show=False, priority=True),
    ]

    def __init__(
        self,
        open_model: Callable[[Progress], Opened],
        glyphs: Glyphs = COLOUR,
        auto_refresh: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.open_error: Exception | None = None
        self.opened: Opened | None = None
        self.is_open = False  # the model is there, and view, axis and texts with it
        self.view: View
        self.pipeline_log: PipelineLog
        self.axis: TimeAxis
        self.texts: Texts | PlayedTexts
        self.explaining: Explaining
        self.looking: Looking
        self.measuring: Measuring
        self.predicting: Predicting
        self._open_model = open_model
        self._auto_refresh = auto_refresh
        self._notes = notes
        self._pace = Pace()
        self._last_round = (0.0, 0.0)
        self._threads: list[threading.Thread] = []
        self._picture: Picture | None = None
        self._windows: Any = ()
        self._path: tuple[tuple[int, int, int], ...] = ()
        self._rates: Rates | None = None
        self._rates_due_ns = 0
        self._begin_ns = 0
        self._last_cap = 20.0
        self._recorder: Recorder | None = None
        self._dropped_before = 0  # events, when the recording began
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "strata-dark"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return DEFAULTS

    def compose(self) -> ComposeResult:
        self.head = Header(self.glyphs)
        self.problem = Problem()
        self.lanes = Lanes(self.glyphs)
        self.strip = Windows(self.glyphs)
        self.figures = RatesPanel(self.glyphs)
        self.text_panel = TextPanel()
        self.log_panel = TextPanel(empty="a line for each verdict comes here", id="log")
        self.why_panel = WhyPanel(self.glyphs)
        self.table = WindowTable(self.glyphs)
        self.flip_line = FlipLine()
        self.panels = Panels(
            {"text": self.text_panel, "log": self.log_panel, "why": self.why_panel, "table": self.table}
        )
        self.prompt = Input(placeholder="n: a prompt of your own", compact=True)
        self.switch_bar = SwitchBar()
        yield self.head
        yield self.problem
        yield self.lanes
        yield self.strip
        with Container(id="middle"):
            yield self.figures
            yield self.text_panel
            yield self.log_panel
            yield self.why_panel
            yield self.table
        yield self.prompt
        yield self.flip_line
        yield self.switch_bar
        yield KeyBar([*_SHOWN_KEYS, ("^p", "palette", "command_palette")])

    def on_mount(self) -> None:
        self.set_class(self.glyphs is ASCII, "-ascii")
        self.problem.clear()
        self.log_panel.display = self.why_panel.display = self.table.display = False
        for note in self._notes:
            self._say(note)
        self._leave_on_signals()
        self.call_after_refresh(self._spawn, self._open)

    def _leave_on_signals(self) -> None:
        """A terminated process leaves the terminal as it was."""
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self.exit)

    # -- opening and closing

    def _spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        self._threads.append(thread)
        thread.start()

    def _open(self) -> None:
        """In its own thread: heavy imports and the model; the screen is up already."""
        try:
            opened = self._open_model(lambda line: self._from_thread(self._tell_progress, line))
        except Exception as error:  # whatever it is, the screen says it
            self._from_thread(self._failed_to_open, error)
            return
        self.opened = opened
        self._from_thread(self._begin)

    def _from_thread(self, call: Callable[..., None], *args: object) -> None:
        """Run on the screen's thread, unless the screen has gone."""
        if self.is_running:
            self.call_later(call, *args)

    def _tell_progress(self, line: str) -> None:
        self.head.tell(line)

    def _failed_to_open(self, error: Exception) -> None:
        self.open_error = error
        self.head.tell("no model is open")
        self.problem.tell(str(error), "q quits; strata-tui inspect FILE tells what is in a model file")

    def _begin(self) -> None:
        from strata_tui.analysis.axis import TimeAxis
        from strata_tui.analysis.pipeline_log import PipelineLog
        from strata_tui.analysis.view import View
        from strata_tui.tui.explaining import Explaining
        from strata_tui.tui.looking import Looking
        from strata_tui.tui.measuring import Measuring
        from strata_tui.tui.predicting import Predicting

        assert self.opened is not None
        label = self.opened.label
        self.view = View(len(label.stages), draft_lane=label.has_draft_layer)
        self.pipeline_log = PipelineLog()
        self.axis = TimeAxis()
        self.texts = Texts(self.opened) if self.opened.tape is None else PlayedTexts(self.opened.tape)
        alive = bool(self._auto_refresh)
        self.explaining = Explaining(self.view, label.pipeline_max, spare=alive)
        at_once = _at_once if not alive else self._spawn
        self.predicting = Predicting(self.view, label.pipeline_max, at_once, spare=alive)
        self.measuring = Measuring(self.view)
        self.looking = Looking(self.view, self.axis, label.has_draft_layer)
        self._begin_ns = self.opened.engine.now_ns()
        self.is_open = True
        self.refresh_view()
        if self._auto_refresh:
            self._last_round = (time.thread_time(), time.monotonic())
            self.set_timer(self._pace.interval_s, self._round)

    def close(self) -> None:
        """Wait for threads of this console and close the engine; idempotent."""
        self._stop_recording()
        for thread in self._threads:
            thread.join()
        if self.opened is not None:
            self.opened.engine.close()

    # -- the timer

    def _round(self) -> None:
        if not self.lanes.is_attached:  # the screen is being taken down
            return
        self.refresh_view()
        cpu, wall = time.thread_time(), time.monotonic()
        self._pace.note(cpu - self._last_round[0], wall - self._last_round[1])
        self._last_round = (cpu, wall)
        self.set_timer(self._pace.interval_s, self._round)

    def refresh_view(self) -> None:
        """Take over what the engine has recorded, and show it."""
        assert self.opened is not None
        engine = self.opened.engine
        now = engine.now_ns()  # before the events: all that happened by then is among them
        events = engine.events()
        self.view.take(events)
        if self._recorder is not None:
            self._recorder.take(events)
        self._log_verdicts(events)
        self.view.dropped = engine.dropped_events
        for text, style in self.texts.pump():
            self.text_panel.add(text, style)
        if self.texts.ended is not None:
            self._log_request(self.texts.ended)
            self.texts.ended = None
        for notice in engine.notices():
            self.notify(notice, markup=False)
        self._tell_errors()
        if self._recorder is not None and self._recorder.error:
            self.notify(self._recorder.error, severity="error", markup=False)
            self._stop_recording()
        self._show(now)

    def _log_verdicts(self, events: Events) -> None:
        """A line for each chain and verdict, while the log is looked at or STRATA_PIPELINE_LOG asks."""
        assert self.opened is not None
        asked = "pipeline_log" in self.opened.reports
        if asked or self.log_panel.display:
            lines = self.pipeline_log.take(events)
            self._log_lines(lines, to_file=asked)

    def _log_request(self, stats: dict[str, Any]) -> None:
        """The lines of a request that has ended."""
        from strata_tui.report import request_lines

        assert self.opened is not None
        events = self.view.events
        of_request = events[events["start_ns"] >= stats["begin_ns"]]
        self._log_lines(request_lines(of_request, self.view.n_stages, stats, self.opened.reports))

    def _log_lines(self, lines: list[str], to_file: bool = True) -> None:
        assert self.opened is not None
        for line in lines:
            short = line.removeprefix("strata pipeline: ").removeprefix("strata: ")
            self.log_panel.add(f"{short}\n", "note" if short.startswith("chain") else "text")
        if self.opened.log is not None and to_file:
            for line in lines:
                self.opened.log(line)

    def _tell_errors(self) -> None:
        if self.texts.error and not self.problem.display:
            self.problem.tell(
                self.texts.error,
                "n or enter starts a new text, q quits; the events up to here can be exported: e",
            )
        elif not self.texts.error and self.problem.display:
            self.problem.clear()

    def _show(self, now: int) -> None:
        from strata_tui.tui.predicting import prediction_line

        assert self.opened is not None
        if self._rates is None or now >= self._rates_due_ns:
            self._rates, self._rates_due_ns = self.view.rates(now, history=120), now + REFRESH_NS
            self.axis.fit(self._rates.ms_per_window)
            self.set_class(self._rates.guesses.built > 0, "-guesses")
            self.figures.show(self._rates)
        t0, t1 = self.axis.look(now, self.lanes.columns, self.view.window_start_before)
        shown = self._picture
        if shown is None or (shown.t0_ns, shown.t1_ns, shown.columns) != (t0, t1, self.lanes.columns):
            self._picture = self.view.picture(t0, t1, self.lanes.columns, now, self._held())
            self._windows = self.view.windows_before(t1, 64)
            in_flight = self.opened.engine.switches.in_force().get("pipeline_windows", 0)
            self._path = self.looking.path(self._picture, in_flight)
        assert self._picture is not None
        switches = self.opened.engine.switches
        in_force = switches.in_force()
        moment = self.looking.moment
        frame = Frame(
            model=self.opened.label,
            now_ns=now,
            begin_ns=self._begin_ns,
            state="stopped" if self.texts.stopped and not self.texts.running else "live",
            behind_ns=max(0, now - t1) if self.axis.frozen else None,
            picture=self._picture,
            windows=self._windows,
            rates=self._rates,
            asked={
                name: getattr(switches, name)
                for name in ("overlap", "pipeline_windows", "theta", "draft", "draft_max", "rate")
            },
            in_force=in_force,
            gains=self.predicting.of(in_force).gains,
            n_text=self.texts.n_started,
            recording=self._recorder is not None,
            tape=self._tape(now),
            told=self.looking.told(self._begin_ns),
            cursor=None if moment is None else (moment.lane, moment.start_ns, moment.end_ns),
            path=self._path,
        )
        self.head.show(frame)
        self.switch_bar.show(frame)
        self.lanes.show(frame)
        self.strip.show(frame)
        self._measure(now, in_force)
        frozen_ns = t1 if self.axis.frozen else None
        if self.panels.shown == "why":
            why = self.explaining.look(now, frozen_ns, in_force)
            if frozen_ns is None:
                label = frame.model
                asked = next_settings(in_force, len(label.stages), label.pipeline_max)
                self.predicting.look(now, in_force, asked)
            modelled = prediction_line(self.predicting.of(in_force))
            self.why_panel.show(why, frame.model.stages, self.measuring.lines, modelled)
        elif self.panels.shown == "table":
            self.table.show(self.view, now if frozen_ns is None else frozen_ns, self.opened.piece)

    def _measure(self, now: int, in_force: dict[str, Any]) -> None:
        due = self.measuring.look(now, in_force)
        if due is not None:
            setattr(self._switches, *due)
        self.flip_line.show(self.measuring.line)

    def _tape(self, now: int) -> Tape | None:
        assert self.opened is not None
        tape = self.opened.tape
        if tape is None:
            return None
        begin, end = tape.begin_ns, tape.end_ns
        return Tape((now - begin) / 1e9, (end - begin) / 1e9, tape.speed, tape.held)

    def _held(self) -> LaneState | None:
        """What holds the host back at present, if it holds back."""
        from strata_tui.analysis.lane_state import LaneState

        assert self.opened is not None
        switches = self.opened.engine.switches
        if switches.paused:
            return LaneState.PAUSED
        return LaneState.THROTTLED if switches.rate else None

    # -- actions: each changes state; the next refresh shows it

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Before there is a model only these do something."""
        always = {"help", "quit", "stop", "next_theme", "suspend_process", "leave_prompt", "command_palette"}
        needs_model = hasattr(self, f"action_{action}") and action in _OWN_ACTIONS - always
        return self.is_open if needs_model else True

    def action_freeze(self) -> None:
        if self.axis.frozen:
            self.axis.resume()
            self.looking.clear()
        else:
            self.axis.freeze()
        self._hold_texts(self.axis.frozen)
        self._refresh_soon()

    def _hold_texts(self, on: bool) -> None:
        assert self.opened is not None
        self.panels.hold(on)
        if self.opened.tape is not None:
            self.opened.tape.hold(on)

    def action_follow(self) -> None:
        self.axis.follow()
        self.looking.clear()
        self._hold_texts(False)
        self._refresh_soon()

    def action_pan(self, share: float) -> None:
        assert self.opened is not None
        if self.looking.inspecting:
            self._look(lambda: self.looking.move(spans=1 if share > 0 else -1))
            return
        if not self.axis.frozen:
            self._hold_texts(True)
        events = self.view.events
        oldest = int(events["start_ns"][0]) if len(events) else self._begin_ns
        self.axis.pan(share, oldest, self.opened.engine.now_ns())
        self._refresh_soon()

    def action_zoom(self, steps: int) -> None:
        if self.looking.inspecting:
            self._look(lambda: self.looking.move(lanes=-steps))
            return
        self.axis.zoom(steps)
        self._refresh_soon()

    # -- looking closer

    def _look(self, move: Callable[[], bool | None], nothing: str = "") -> None:
        """Freeze on what is looked at; say so where there is nothing."""
        was_frozen = self.axis.frozen
        if move() is False:
            self.notify(nothing)
        if self.axis.frozen and not was_frozen:
            self._hold_texts(True)
        self._refresh_soon()

    def action_gap(self) -> None:
        self._look(self.looking.to_gap, "no window has its verdict yet")

    def action_verdict(self, by: int) -> None:
        self._look(lambda: self.looking.to_verdict(by), "no verdict further on")

    def action_miss(self, by: int) -> None:
        self._look(lambda: self.looking.to_miss(by), "no guess was rolled back there")

    def action_inspect(self) -> None:
        self._look(self.looking.inspect)

    def action_path(self) -> None:
        self.looking.path_on = not self.looking.path_on
        self._picture = None  # drawn anew
        self._refresh_soon()

    def action_pause(self) -> None:
        if not self._refused_in_replay("[replay] space holds a recording"):
            self._switches.paused = not self._switches.paused
            self._refresh_soon()

    def action_step(self) -> None:
        """One window; pauses first."""
        if self._refused_in_replay("[replay] space holds a recording"):
            return
        if self._switches.paused:
            self._switches.step()
        else:
            self._switches.paused = True
        self._refresh_soon()

    def action_scroll_text(self, screens: int) -> None:
        self.panels.scroll(screens)

    def action_log(self) -> None:
        self._see("log")

    def action_why(self) -> None:
        self._see("why")
        self._refresh_soon()

    def _see(self, name: str) -> None:
        """In place of the text, or the text again."""
        self.panels.toggle(name)
        self.set_class(self.panels.shown == "why", "-explains")
        self.set_class(self.panels.shown == "table", "-table")

    def action_table(self) -> None:
        self._see("table")
        self._refresh_soon()

    def action_alternate(self) -> None:
        """Begin to alternate the last flip's settings, or end it."""
        if self._refused_in_replay():
            return
        if self.measuring.alternation is not None:
            self._end_alternation(keep=True)
        elif not self.measuring.begin(self._now_ns):
            self.notify("b alternates the two settings of the last flip: flip a switch first (o, w, d, g, +)")
        self._refresh_soon()

    def _end_alternation(self, keep: bool) -> None:
        """`keep` the better setting; a person who flips has one in mind."""
        kept = self.measuring.end(self._now_ns)
        if kept is not None and keep:
            setattr(self._switches, *kept)

    @property
    def _now_ns(self) -> int:
        assert self.opened is not None
        return int(self.opened.engine.now_ns())

    def _refused_in_replay(self, line: str = "") -> bool:
        """What only a running model can do: a line says so."""
        from strata_tui.record.playback import LOCKED

        assert self.opened is not None
        if self.opened.tape is None:
            return False
        self.notify(line or LOCKED, severity="warning", markup=False)
        return True

    def action_overlap(self) -> None:
        if self._refused_in_replay():
            return
        self._switch("overlap", not self._switches.overlap)

    def action_pipeline(self) -> None:
        assert self.opened is not None
        if self._refused_in_replay():
            return
        label = self.opened.label
        if label.pipeline_max < 2:
            self.notify(
                "one stage runs one window at a time: open the model with --stages 2 or more"
                if len(label.stages) == 1
                else "no windows in flight were allocated: open the model with --pipeline-max 2 or more",
                severity="warning",
            )
            return
        now = self._switches.pipeline_windows
        self._switch("pipeline_windows", next_windows(now, label.pipeline_max))

    def action_gate(self) -> None:
        if self._refused_in_replay():
            return
        self._switch("theta", next_theta(self._switches.theta))

    def action_draft(self) -> None:
        assert self.opened is not None
        if self._refused_in_replay():
            return
        sources = ["mtp", "lookup", "none"] if self.opened.label.has_draft_layer else ["lookup", "none"]
        now = self._switches.draft
        at = sources.index(now) if now in sources else -1
        self._switch("draft", sources[(at + 1) % len(sources)])

    def action_draft_max(self, by: int) -> None:
        if self._refused_in_replay():
            return
        self._switch("draft_max", min(max(self._switches.draft_max + by, 0), MAX_DRAFTS))

    def action_slower(self) -> None:
        if self._changed_speed(-1):
            return
        rate = self._switches.rate or float("inf")
        self._switch("rate", float(max((r for r in RATES if r < rate), default=RATES[0])))

    def action_faster(self) -> None:
        if self._changed_speed(1):
            return
        rate = self._switches.rate
        if rate:
            self._switch("rate", float(min((r for r in RATES if r > rate), default=0)))

    def _changed_speed(self, steps: int) -> bool:
        """Of a replay, if one is played."""
        assert self.opened is not None
        if self.opened.tape is None:
            return False
        self.opened.tape.faster(steps)
        self._refresh_soon()
        return True

    def action_cap(self) -> None:
        if self._refused_in_replay():
            return
        rate = self._switches.rate
        if rate:
            self._last_cap = rate
        self._switch("rate", 0.0 if rate else self._last_cap)

    @property
    def _switches(self) -> Any:
        assert self.opened is not None
        return self.opened.engine.switches

    def _switch(self, name: str, value: object) -> None:
        """Ask for a value; what the engine refuses is said, and the old value stays."""
        self._end_alternation(keep=False)
        before = getattr(self._switches, name)
        try:
            setattr(self._switches, name, value)
            self.measuring.flipped(name, before, value)
        except Exception as error:
            self.notify(str(error), severity="warning", markup=False)
        self._refresh_soon()

    def action_prompt(self) -> None:
        if self._refused_in_replay("[replay] a recording takes no prompt; s goes on to its next text"):
            return
        self.prompt.focus()

    def action_leave_prompt(self) -> None:
        self.set_focus(None)
        if self.is_open and self.looking.moment is not None:
            self.looking.clear()
            self._refresh_soon()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        prompt = submitted.value.strip("\n")
        if prompt.strip() and self.is_open and isinstance(self.texts, Texts):
            self.texts.give(prompt)
            submitted.input.clear()
        elif self.is_open:
            self.texts.skip()
        self.set_focus(None)

    def action_skip(self) -> None:
        self.texts.skip()

    def action_stop(self) -> None:
        assert self.opened is not None or not self.is_open
        if not self.is_open or self.texts.stopped or isinstance(self.texts, PlayedTexts):
            self.exit()
            return
        assert isinstance(self.texts, Texts)
        self.texts.stop()
        self.notify("the text ends here; n or enter goes on, x quits")

    def action_help(self) -> None:
        from strata_tui.tui.help import Help

        self.push_screen(Help(self.glyphs))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]

    def action_record(self) -> None:
        """Begin a recording, or end it."""
        if self._refused_in_replay("[replay] this is a recording already"):
            return
        if self._recorder is not None:
            self._stop_recording()
        else:
            self._start_recording()
        self._refresh_soon()

    def _start_recording(self) -> None:
        from strata_tui.record.recorder import Recorder
        from strata_tui.tui.export import dated

        assert self.opened is not None
        if self.opened.recording_header is None:
            return
        path = dated(".strata")
        try:
            self._recorder = Recorder(path, self.opened.recording_header, self.opened.piece, new=True)
        except OSError as error:
            self.notify(f"nothing is recorded: {error}", severity="error", markup=False)
            return
        self._dropped_before = self.opened.engine.dropped_events
        self.texts.record_to(self._recorder)

    def _stop_recording(self) -> None:
        """Nothing more goes into it; what has gone in is written by a thread that says when it is done."""
        if self._recorder is None:
            return
        assert self.opened is not None
        recorder, self._recorder = self._recorder, None
        self.texts.record_to(None)
        dropped = self.opened.engine.dropped_events - self._dropped_before

        def close() -> None:
            recorder.close(dropped)
            line = recorder.error or f"{recorder.path.resolve()} ({recorder.n_events:,} events)"
            self._from_thread(self._say, line)

        self._spawn(close)

    def action_export(self) -> None:
        """Write the trace in a thread: from the session's start, or from the oldest event kept."""
        from strata_tui.tui.export import dated, export

        assert self.opened is not None
        opened, events, let_go = self.opened, self.view.events.copy(), self.view.events_let_go
        path = dated(".json.gz")
        begin = self._begin_ns

        def write() -> None:
            try:
                line = export(path, opened, events, let_go, begin, self.view.dropped)
            except OSError as error:
                self._from_thread(self._say, f"no trace was written: {error}")
            else:
                self._from_thread(self._say, line)

        self._spawn(write)

    def _say(self, line: str) -> None:
        self.notify(line, timeout=10, markup=False)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for binding in self.BINDINGS:
            assert isinstance(binding, Binding)
            if binding.action not in {"leave_prompt", "quit"} and binding.key != "ctrl+c":
                keys = binding.key_display or binding.key.split(",")[0]

                async def run(action: str = binding.action) -> None:
                    await self.run_action(action)

                yield SystemCommand(binding.description.capitalize(), f"key: {keys}", run)
        yield from super().get_system_commands(screen)

    def _refresh_soon(self) -> None:
        """A key is answered at once, not at the next round."""
        if self._auto_refresh:
            self.call_later(self.refresh_view)


def _at_once(work: Callable[[], None]) -> None:
    work()


_OWN_ACTIONS = {name.removeprefix("action_") for name in vars(Console) if name.startswith("action_")}
_SHOWN_KEYS = [
    (binding.key_display or binding.key, binding.description, binding.action)
    for binding in Console.BINDINGS
    if isinstance(binding, Binding) and binding.show
]
