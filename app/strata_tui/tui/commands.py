"""Every command of the console: bindings, palette, help and the line of keys are made of this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Binding

if TYPE_CHECKING:
    from strata_tui.tui.app import Console

SWITCHES_ARE_PAST = "past"  # the line is that of the recording's own switches
ONLY_A_REPLAY = "only a replay can be gone through; left and right move the view"
SEEK_SHARE = 0.05  # of a recording, a key


@dataclass(frozen=True)
class Command:
    """What a key does.

    Attributes:
        name: in the file of keys; stays what it is.
        keys: as textual names them, by commas.
        words: in the palette and the help.
        more: what the help says further.
        short: in the line of keys; "" = it isn't there.
        of_replay: the same in a replay, where that is another word.
        always: there is something to do before a model is open.
        past: in a replay, the line that refuses it; "" = a replay can do it too.
        listed: in the palette and the help.
        priority: also while the prompt is being written.
    """

    name: str
    keys: str
    words: str
    does: Callable[[Console], object]
    more: str = ""
    short: str = ""
    of_replay: str = ""
    always: bool = False
    past: str = ""
    listed: bool = True
    priority: bool = False

    @property
    def binding(self) -> Binding:
        return Binding(
            self.keys,
            self.action,
            self.words,
            show=bool(self.short),
            id=self.name,
            priority=self.priority,
        )

    @property
    def action(self) -> str:
        """As textual calls it."""
        return f"do('{self.name}')"


_switch = partial(Command, past=SWITCHES_ARE_PAST)
_HOLDS = "[replay] space holds a recording"
_NO_PROMPT = "[replay] a recording takes no prompt; s goes on to its next text"
_RECORDED = "[replay] this is a recording already"

COMMANDS = (
    Command(
        "why",
        "y",
        "why it takes so long",
        lambda c: c.see("why"),
        "the bottleneck, what to flip, each stage's time by cause, the bounds",
        "why",
    ),
    Command(
        "windows",
        "v",
        "windows as a table",
        lambda c: c.see("table"),
        "drafts in words, accepted or not, the bonus, estimate, why a guess missed",
        "windows",
    ),
    _switch(
        "alternate",
        "b",
        "A/B: the last flip's two settings by turns",
        lambda c: c.flips.alternate(),
        "every 12 windows, until pressed again; the better one stays",
        "A/B",
    ),
    Command(
        "freeze",
        "space",
        "freeze or release the view",
        lambda c: c.moving.freeze(),
        "the engine goes on, a replay stands still",
        "freeze",
        of_replay="pause",
    ),
    Command(
        "help", "question_mark", "help: every key and word", lambda c: c.show_help(), "", "help", always=True
    ),
    Command("quit", "q", "quit", lambda c: c.exit(), "", "quit", always=True, listed=False),
    Command(
        "prompt",
        "n,enter",
        "type a prompt",
        lambda c: c.set_focus(c.face.prompt),
        "enter starts it, escape leaves",
        "prompt",
        past=_NO_PROMPT,
    ),
    Command(
        "chat",
        "h",
        "chat or raw prompts",
        lambda c: c.change_chat(),
        "by the file's template or as they are, from the next text on; tab while one is typed",
        past=_NO_PROMPT,
    ),
    Command(
        "skip",
        "s",
        "skip to the next prompt",
        lambda c: c.sitting.texts.skip(),
        short="skip",
        of_replay="next text",
    ),
    Command(
        "export",
        "e",
        "export the trace",
        lambda c: c.keeping.export(),
        "a Chrome trace, opens in Perfetto",
        "export",
    ),
    Command("stop", "x", "end the text", lambda c: c.stop(), "at a token; again: quit", "stop", always=True),
    Command(
        "model",
        "a",
        "about the model and its stages",
        lambda c: c.see_model(),
        "layers, types, memory of each stage: weights, K/V, states, snapshots",
    ),
    # -- switches
    _switch(
        "overlap", "o", "overlap", lambda c: c.flips.overlap(), "of the stages' hand-off, at the next window"
    ),
    _switch(
        "pipeline-windows",
        "w",
        "windows in flight",
        lambda c: c.flips.windows_in_flight(),
        "0, 2 .. as many as there is memory for, at the next verdict",
    ),
    _switch("theta", "g", "gate of guesses (theta)", lambda c: c.flips.theta(), "0, 0.2 .. 0.8"),
    _switch("draft", "d", "draft source", lambda c: c.flips.draft(), "mtp, lookup, none"),
    _switch(
        "longer-drafts",
        "plus,equals_sign",
        "longer drafts",
        lambda c: c.flips.draft_max(1),
        "the longest of a window",
    ),
    _switch("shorter-drafts", "minus", "shorter drafts", lambda c: c.flips.draft_max(-1)),
    Command(
        "slower",
        "left_square_bracket",
        "slower",
        lambda c: c.flips.faster(-1),
        "caps the pace; of a replay: its speed",
    ),
    Command("faster", "right_square_bracket", "faster", lambda c: c.flips.faster(1)),
    _switch("cap", "c", "cap on or off", lambda c: c.flips.cap(), "of the pace, as it was last"),
    Command("pause", "p", "pause decoding, or go on", lambda c: c.flips.pause(), past=_HOLDS),
    Command("step", "full_stop", "one window", lambda c: c.flips.step(), "pauses first", past=_HOLDS),
    # -- time
    Command("back", "left", "back in time", lambda c: c.moving.pan(-0.25), "freezes"),
    Command("on", "right", "on in time", lambda c: c.moving.pan(0.25)),
    Command("screen-back", "shift+left", "a screen back in time", lambda c: c.moving.pan(-1)),
    Command("screen-on", "shift+right", "a screen on in time", lambda c: c.moving.pan(1)),
    Command("zoom-in", "up", "zoom in", lambda c: c.moving.zoom(1)),
    Command("zoom-out", "down", "zoom out", lambda c: c.moving.zoom(-1)),
    Command(
        "seek-back",
        "less_than_sign",
        "go back in a replay",
        lambda c: c.seek_by(-SEEK_SHARE),
        "by a twentieth of the recording; its bar can be clicked and dragged",
        of_replay="back",
    ),
    Command(
        "seek-on", "greater_than_sign", "go on in a replay", lambda c: c.seek_by(SEEK_SHARE), of_replay="on"
    ),
    Command("seek-begin", "home", "go to a replay's beginning", lambda c: c.seek_by(-1)),
    Command("seek-end", "end", "go to a replay's end", lambda c: c.seek_by(1)),
    Command("follow", "f", "follow", lambda c: c.moving.follow(), "back to live, zoom by itself"),
    Command(
        "gap", "u", "the longest gap", lambda c: c.moving.gap(), "and its cause; again: the next longest"
    ),
    Command("next-verdict", "j", "next verdict", lambda c: c.moving.verdict(1)),
    Command("verdict-before", "J", "verdict before", lambda c: c.moving.verdict(-1)),
    Command("next-miss", "m", "next miss", lambda c: c.moving.miss(1), "a guess that was rolled back"),
    Command("miss-before", "M", "miss before", lambda c: c.moving.miss(-1)),
    Command(
        "inspect",
        "i",
        "inspect spans",
        lambda c: c.moving.inspect(),
        "arrows move from span to span and from lane to lane; escape leaves",
    ),
    Command("path", "k", "critical path over the lanes", lambda c: c.moving.path(), "as a line; again: off"),
    # -- the rest
    Command(
        "record",
        "r",
        "record, or stop recording",
        lambda c: c.keeping.record(),
        "into a .strata file (strata-tui replay, export, compare)",
        past=_RECORDED,
    ),
    Command(
        "save-profile",
        "S",
        "save the switches as a profile",
        lambda c: c.keeping.profile(),
        "a .toml file for --profile, with placement and sampling",
        past=SWITCHES_ARE_PAST,
    ),
    Command("log", "l", "log or text", lambda c: c.see("log"), "a line for each draft chain and verdict"),
    Command(
        "copy",
        "C",
        "copy the text",
        lambda c: c.copy_text(),
        "this one with its prompt, to the terminal's clipboard",
    ),
    Command("look-back", "pageup", "look back", lambda c: c.face.panels.scroll(-1), "in what stands there"),
    Command("look-on", "pagedown", "look on", lambda c: c.face.panels.scroll(1)),
    Command(
        "theme",
        "t",
        "next theme",
        lambda c: c.next_theme(),
        "dark, light, high contrast, the terminal's own colours",
        always=True,
    ),
    Command(
        "leave", "escape", "leave the prompt or the cursor", lambda c: c.leave(), always=True, listed=False
    ),
    Command(
        "interrupt",
        "ctrl+c",
        "end the text; again: quit",
        lambda c: c.stop(),
        always=True,
        listed=False,
        priority=True,
    ),
    Command(
        "suspend",
        "ctrl+z",
        "suspend",
        lambda c: c.action_suspend_process(),
        "fg comes back",
        always=True,
        priority=True,
    ),
)
BY_NAME = {command.name: command for command in COMMANDS}

_SHOWN = {
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "full_stop": ".",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "pageup": "pgup",
    "pagedown": "pgdn",
}


def shown_key(key: str) -> str:
    """A key as a person calls it: `?`, `ctrl-c`."""
    *held, last = key.split("+")
    return "-".join([*held, _SHOWN.get(last, last)])


def shown_keys(keys: str) -> list[str]:
    """Of a command."""
    return [shown_key(key) for key in keys.split(",")]
