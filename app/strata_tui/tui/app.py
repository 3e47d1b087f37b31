"""The console: one timer pulls what the engine recorded, one frame a refresh goes to the widgets."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.dom import NoScreen
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import MountError

from strata_tui.terminal_text import counted, printable
from strata_tui.tui.commands import BY_NAME, COMMANDS, ONLY_A_REPLAY, SWITCHES_ARE_PAST, shown_keys
from strata_tui.tui.front import Front
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.leaving import Audience
from strata_tui.tui.listening import Listening, MainScreen
from strata_tui.tui.load import Cancelled, Load
from strata_tui.tui.load_panel import OFTEN_S
from strata_tui.tui.pace import Pace
from strata_tui.tui.palette import Palette
from strata_tui.tui.prompt_line import PromptLine
from strata_tui.tui.texts import Texts
from strata_tui.tui.themed import Themed

if TYPE_CHECKING:
    from strata_tui.analysis.axis import TimeAxis
    from strata_tui.tui.desk import Severity
    from strata_tui.tui.face import Face
    from strata_tui.tui.flips import Flips
    from strata_tui.tui.framing import Framing
    from strata_tui.tui.keeping import Keeping
    from strata_tui.tui.lanes import Lanes
    from strata_tui.tui.log_lines import LogLines
    from strata_tui.tui.moving import Moving
    from strata_tui.tui.opened import Opened
    from strata_tui.tui.sitting import Sitting

TOLD_S = 10.0
AUDIENCE_S = 0.5
PATIENCE_S = 0.5  # with an opening that nobody waits for any more


class Console(Listening, Themed):
    """The screen of a running engine. What its keys do lies in rooms by subject, named in `commands`.

    Args:
        open_model: opens the model, in a thread of its own after the first paint; it says how far it is.
        glyphs: the set of shapes.
        auto_refresh: False in tests, which call `refresh_view` themselves.
        notes: lines to say once, when the screen is up.
        keys: a person's own, by command.
    """

    AUTO_FOCUS = None
    CSS_PATH = "front.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [command.binding for command in COMMANDS]

    def __init__(
        self,
        open_model: Callable[[Load], Opened],
        glyphs: Glyphs = COLOUR,
        auto_refresh: bool = True,
        notes: tuple[str, ...] = (),
        keys: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(glyphs)
        self.keys = {command.name: command.keys for command in COMMANDS} | dict(keys or {})
        self.load = Load()
        self.open_error: Exception | None = None
        self.opened: Opened | None = None
        self.is_open = False  # the model is there, and what follows with it
        self.face: Face
        self.sitting: Sitting
        self.framing: Framing
        self.flips: Flips
        self.moving: Moving
        self.keeping: Keeping
        self.log_lines: LogLines
        self._audience = Audience()
        self._open_model = open_model
        self._alive = auto_refresh
        self._notes = notes
        self._kept: list[str] = []  # lines that the log keeps
        self._pace = Pace()
        self._last_round = (0.0, 0.0)
        self._threads: list[threading.Thread] = []
        self._opener: threading.Thread | None = None
        self._load_timer: Timer | None = None

    def get_default_screen(self) -> Screen[Any]:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        self.front = Front(self.glyphs, self.keys, self.load)
        yield from self.front.compose()

    def on_mount(self) -> None:
        self.set_keymap(self.keys)
        self.front.look()
        for note in self._notes:
            self.tell(note)
        self._loop = asyncio.get_running_loop()
        self.dress()
        if self._alive:
            self.set_interval(AUDIENCE_S, self._look_for_audience)
        self.call_after_refresh(self.call_later, self._furnish)

    # -- opening and closing

    def spawn(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        self._threads.append(thread)
        thread.start()

    def _look_for_audience(self) -> None:
        if self._audience.has_gone:
            signal.raise_signal(signal.SIGHUP)

    async def _furnish(self) -> None:
        """Behind the first paint. What the opener tells is a later message: all is in its place by then."""
        self._start_to_open()
        from strata_tui.tui.face import Face

        self.stylesheet.read(Path(__file__).parent / "strata.tcss")
        for screen in self.screen_stack:  # a quick hand has called for the help already
            self.stylesheet.update(screen)
        self.face = Face(self.front, self.glyphs, self.tell, self.submit, self.set_class)
        try:
            await self.face.take_place()
        except (MountError, NoScreen):
            if not self.is_leaving:
                raise
            return  # the screen is being taken down
        if self._alive:
            self._load_timer = self.set_interval(OFTEN_S, self.front.look)

    def _start_to_open(self) -> None:
        self._opener = threading.Thread(target=self._open, daemon=True)  # a load can't be ended halfway
        self._opener.start()

    def _open(self) -> None:
        """In its own thread: heavy imports and the model; the screen is up already."""
        try:
            opened = self._open_model(self.load)
        except Cancelled:
            return
        except Exception as error:  # whatever it is, the screen says it
            self.from_thread(self._failed_to_open, error)
            return
        self.opened = opened
        self.from_thread(self._begin, opened)

    def from_thread(self, call: Callable[..., None], *args: object) -> None:
        if self.is_running:
            self.call_later(call, *args)

    def _failed_to_open(self, error: Exception) -> None:
        self.open_error = error
        if self.is_leaving:
            return
        self.load.failed = True
        self._stop_looking()
        self.face.tell_unopened(str(error))

    def _stop_looking(self) -> None:
        if self._load_timer is not None:
            self._load_timer.stop()

    def _begin(self, opened: Opened) -> None:
        if self.is_leaving:
            return
        self.load.end()
        self._stop_looking()
        self.face.panels.show("text")
        if opened.tape is not None:
            self.face.take_tape(opened.tape, self.seek)
        self._sit_down(opened)
        self.is_open = True
        self.refresh_view()
        if self._alive:
            self._last_round = (time.thread_time(), time.monotonic())
            self.set_timer(self._pace.interval_s, self._round)

    def _sit_down(self, opened: Opened, axis: TimeAxis | None = None) -> None:
        """Everything that is known is known from here on; a replay that goes back begins anew."""
        from strata_tui.tui.flips import Flips
        from strata_tui.tui.framing import Framing
        from strata_tui.tui.keeping import Keeping
        from strata_tui.tui.log_lines import LogLines
        from strata_tui.tui.moving import Moving
        from strata_tui.tui.sitting import Sitting

        spawn = self.spawn if self._alive else _at_once
        sitting = self.sitting = Sitting(opened, spawn, spare=self._alive, axis=axis)
        self.framing = Framing(sitting)
        self.flips = Flips(sitting, self)
        self.moving = Moving(sitting, self.face.panels, self)
        self.keeping = Keeping(sitting, self)
        self.log_lines = LogLines(sitting, self.face.log_panel)

    def close(self) -> None:
        """Wait for threads of this console and close the engine; idempotent. See `still_opens`."""
        if self.is_open:
            self.keeping.stop()
        self.load.cancel()
        if self._opener is not None:
            self._opener.join(PATIENCE_S)
        for thread in self._threads:
            thread.join()
        if self.opened is not None:
            self.opened.engine.close()

    @property
    def still_opens(self) -> bool:
        """After `close`: the engine is in the middle of what can't be ended; the process had better end."""
        return self._opener is not None and self._opener.is_alive()

    # -- the timer

    def _round(self) -> None:
        if self.leaving or not self.face.lanes.is_attached:  # the screen is being taken down
            return
        self.refresh_view()
        cpu, wall = time.thread_time(), time.monotonic()
        self._pace.note(cpu - self._last_round[0], wall - self._last_round[1])
        self._last_round = (cpu, wall)
        self.set_timer(self._pace.interval_s, self._round)

    def refresh_view(self) -> None:
        """Take over what the engine has recorded, and show it."""
        sitting = self.sitting
        now = sitting.now_ns  # before the events: all that happened by then is among them
        events = sitting.take()
        self.keeping.take(events)
        self.log_lines.verdicts(events)
        for text, style in sitting.texts.pump():
            self.face.text_panel.add(text, style)
        if sitting.texts.ended is not None:
            self.log_lines.request(sitting.texts.ended)
            sitting.texts.ended = None
        for notice in sitting.opened.engine.notices():
            self.notify(notice, markup=False)
        self.face.tell_error(sitting.texts.error)
        self.flips.measure(now)
        self.face.show(self.framing.frame(now, self.face.lanes.columns, self.keeping.recording), sitting)

    # -- commands

    async def on_event(self, event: events.Event) -> None:
        """A key is acted on before the next one is looked at: what is typed right behind `n` is the prompt,
        what is typed behind its end are commands.

        Textual hands it to the screen or the prompt first, which type what is a letter, and looks for its
        command when it comes back from there: after the letters behind it.
        """
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded and self._takes_keys:
            if isinstance(self.focused, PromptLine) and await self.focused.typed(event):
                return
            if isinstance(event, events.Key):
                for priority in (True, False):
                    if await self._check_bindings(event.key, priority=priority):
                        return
        await super().on_event(event)

    @property
    def _takes_keys(self) -> bool:
        if self.is_leaving or not isinstance(self.screen, MainScreen):
            return False
        return self.focused is None or isinstance(self.focused, PromptLine)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Before there is a model only some commands do something."""
        if action != "do":
            return True
        return self.is_open or BY_NAME[str(parameters[0])].always

    def action_do(self, name: str) -> None:
        """Do what a command of `commands` says, or say why a replay can't."""
        command = BY_NAME[name]
        if self.leaving:
            return
        if command.past and self.opened is not None and self.opened.tape is not None:
            from strata_tui.record.playback import LOCKED

            self.tell(LOCKED if command.past == SWITCHES_ARE_PAST else command.past, "warning")
            return
        command.does(self)

    # -- a replay

    def seek(self, at_ns: int) -> None:
        """To a moment of the recording; back in time everything is taken over anew."""
        tape, axis = self.sitting.opened.tape, self.sitting.axis
        assert tape is not None
        frozen = axis.frozen
        axis.resume()
        self.face.panels.hold(False)
        if tape.seek(at_ns):
            self.face.begin_anew(self._kept)
            self._sit_down(self.sitting.opened, axis)
        self.sitting.looking.clear()
        if frozen:
            axis.end_at(tape.now_ns())
            axis.freeze()
        self.refresh_view()
        self.face.panels.hold(frozen)

    def seek_by(self, share: float) -> None:
        """On (or back, where negative) by a share of the recording."""
        tape = self.sitting.opened.tape
        if tape is None:
            self.tell(ONLY_A_REPLAY)
        else:
            self.seek(tape.now_ns() + int(share * (tape.end_ns - tape.begin_ns)))

    # -- what is looked at

    def on_lanes_sized(self) -> None:
        if self.is_open:
            self.refresh_soon()

    def on_lanes_panned(self, panned: Lanes.Panned) -> None:
        if self.is_open:
            self.moving.shift(panned.share)

    def on_lanes_zoomed(self, zoomed: Lanes.Zoomed) -> None:
        if self.is_open:
            self.moving.zoom(zoomed.steps)

    def on_lanes_pointed(self, pointed: Lanes.Pointed) -> None:
        if self.is_open:
            self.moving.point(pointed.lane, pointed.at_ns)

    def see(self, name: str) -> None:
        """A panel in place of the text, or the text again."""
        self.face.see(name)
        self.refresh_soon()

    def see_model(self) -> None:
        """Facts of the model are read once, in a thread: a large vocabulary takes its time."""
        about = self.sitting.opened.about
        if about is not None and not self.face.model_panel.is_filled:
            self.spawn(lambda: self.from_thread(self.face.model_panel.show, about()))
        self.see("model")

    def leave(self) -> None:
        """The prompt, or the cursor over spans."""
        self.set_focus(None)
        if self.is_open:
            self.moving.leave()

    def submit(self) -> None:
        """The prompt as it stands is the next one; without one the next of the list is."""
        prompt = self.face.prompt.value.strip("\n")
        if self.is_open:
            texts = self.sitting.texts
            if prompt.strip() and isinstance(texts, Texts):
                texts.give(prompt)
                self.face.prompt.clear()
            else:
                texts.skip()
        self.set_focus(None)

    def give_prompt(self, prompt: str) -> None:
        """Write on this one next."""
        if self.is_open and isinstance(self.sitting.texts, Texts):
            self.sitting.texts.give(prompt)

    def change_chat(self) -> None:
        """From the next prompt on: by the chat template, or as it is."""
        texts = self.sitting.texts
        if self.sitting.chat is None or not isinstance(texts, Texts):
            self.tell(f"{self.sitting.opened.label.name} has no chat template: prompts go in as they are")
            return
        texts.chat = not texts.chat
        self.tell(f"from the next text on prompts go in {'by the chat template' if texts.chat else 'raw'}")
        self.refresh_soon()

    def copy_text(self) -> None:
        text = self.face.text_panel.last_text
        self.copy_to_clipboard(text)
        self.tell(f"copied: {counted(len(text), 'character')}, as far as the terminal takes them")

    def stop(self) -> None:
        """End the text; again, or where no model writes one: quit."""
        texts = self.sitting.texts if self.is_open else None
        if not isinstance(texts, Texts) or texts.stopped:
            self.exit()
            return
        texts.stop()
        self.notify("the text ends here; n or enter goes on, x quits")

    def show_help(self) -> None:
        from strata_tui.tui.help import Help

        emulated = self.opened is not None and self.opened.label.emulated
        self.push_screen(Help(self.glyphs, self.keys, emulated))

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def tell(self, line: str, severity: Severity = "information") -> None:
        self.notify(line, severity=severity, timeout=TOLD_S, markup=False)

    def tell_kept(self, line: str) -> None:
        """The panel of the log has it from then on; a replay that goes back keeps it."""
        self._kept.append(line)
        self.face.log_panel.add(f"{line}\n", "text")
        self.tell(line)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for command in COMMANDS:
            if command.listed:

                async def run(action: str = command.action) -> None:
                    await self.run_action(action)

                keys = " ".join(shown_keys(self.keys[command.name]))
                yield SystemCommand(command.words[:1].upper() + command.words[1:], f"key: {keys}", run)
        texts = self.sitting.texts if self.is_open else None
        for prompt in texts.prompts if isinstance(texts, Texts) else ():
            words = " ".join(printable(prompt, newlines=False).split())
            yield SystemCommand(
                f"Prompt: {words[:60]}", "write on this one", partial(self.give_prompt, prompt)
            )
        yield from super().get_system_commands(screen)

    def refresh_soon(self) -> None:
        if self._alive:
            self.call_later(self.refresh_view)


def _at_once(work: Callable[[], None]) -> None:
    work()
