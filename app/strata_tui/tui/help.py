"""Every word on the screen and every key, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import LaneState
from strata_tui.tui.commands import COMMANDS, shown_keys
from strata_tui.tui.glyphs import Glyphs

WORDS = (
    ("stage", "a range of layers on one device; a token goes through all stages in order"),
    ("window", "rows that go through the stages together: one token that is certain, and drafts behind it"),
    ("draft", "a guessed token, from the model's own draft layer (mtp) or from earlier text (lookup)"),
    ("accepted", "drafts that the model would have written itself; the text never depends on drafts"),
    ("verdict", "the comparison of the drafts with the model's own picks; accepted + 1 tokens come out"),
    ("fresh", "a window built from a verdict"),
    ("guess", "a window launched on front stages before the verdict ahead of it, on a guessed row 0"),
    ("kept", "a guess that came true: it goes on where it is; told apart after a fresh or a kept window"),
    ("lost", "rolled back, a guess that did not come true: what the stages spent on it and on the undo"),
    ("gated, late", "guesses never launched: estimate below theta; not begun before the verdict"),
    ("ended", "a guess in flight when the text ended"),
    ("ahead", "a front stage commits a window before its verdict, so that a guess can follow"),
    ("undo", "such a commit taken back, and done again with the rows that count"),
    ("misses", "verdicts that a launched guess did not survive: a draft was wrong, or the guessed bonus"),
    ("run", "a stage computes a window; the number is the window's; neighbours differ in shade"),
    ("wait", "a stage's program has begun and waits for the hand-off of the stage before it"),
    ("host", "the processor stages inputs, launches a program, or notices that it has finished"),
    ("commit", "a stage moves its recurrent state on by the rows that count"),
    ("read", "a stage reads a chunk of the prompt"),
    ("throttled", "held back by --rate: never counted as idle"),
    ("in flight", "launched, and not reported back yet"),
    ("idle", "none of these: what overlap and windows in flight are there to shrink"),
    ("hand-off", "the rows that go from one stage to the next, with a word that says they are ready"),
    (
        "overlap",
        "stage s+1 is launched before stage s has finished, and waits on the device, not on the host",
    ),
    ("shares", "percent of the visible time per stage, whole numbers that sum to 100"),
    ("ms/window", "from verdict to verdict, less the time held back"),
    ("first k", "windows whose first k drafts were all accepted, of those that had a k-th draft"),
    (
        "between tokens",
        "gaps between two tokens; the tokens of one window come together, so p50 can be near 0",
    ),
    ("~+12%", "beside a switch: modelled, not measured: tok/s that its key is predicted to give (y first)"),
    ("bottleneck", "the stage whose runs are most of the critical path"),
    (
        "critical path",
        "the chain of runs, hand-offs, verdicts and drafts that no schedule makes shorter",
    ),
    ("bound", "the length of that path: no schedule is faster on these stages with these verdicts"),
    ("estimate", "the probability that the draft layer gives a guess; below theta it is not launched"),
    ("bonus", "the last token of a verdict, the model's own; a guess has to guess it too"),
    ("what a flip gave", "windows before against windows after it, medians and quartiles of groups of four"),
    ("A/B", "two settings by turns; the interval holds 95 % of draws of rounds with replacement"),
    ("dropped", "events that found the engine's buffer full: with any, the lanes have holes"),
    ("EMULATED", "times come from a modelled device, not from this machine"),
)


def keys(in_force: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys and what they do; `in_force`: of each command."""
    for command in COMMANDS:
        names = " ".join(shown_keys(in_force[command.name]))
        yield names, command.words + (f": {command.more}" if command.more else "")


class Help(ModalScreen[None]):
    """Keys, shapes, words."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape,question_mark,q,enter,space", "dismiss", "close"),
    ]

    def __init__(self, glyphs: Glyphs, keys_in_force: Mapping[str, str]) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._keys = keys_in_force

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(self._page(), id="help-page")

    def _page(self) -> Text:
        page = Text()
        self._section(page, "keys", tuple(keys(self._keys)))
        page.append("shapes\n", "bold")
        for state in list(LaneState)[:-1]:
            word = state.name.lower().replace("_", " ")
            word = {"run even": "run", "run odd": "next window"}.get(word, word)
            page.append(f"  {self._glyphs.lane(state, 0, 1) * 4:<14}{word}\n")
        glyphs = self._glyphs
        page.append(f"  {glyphs.accepted * 3 + glyphs.rejected:<14}three drafts accepted, one rejected\n")
        for fate in Fate:
            page.append(f"  {glyphs.fates[fate]:<14}{fate.name.lower().replace('_', ' ')}\n")
        page.append("\n")
        self._section(page, "words", WORDS)
        return page

    @staticmethod
    def _section(page: Text, title: str, rows: tuple[tuple[str, str], ...]) -> None:
        page.append(f"{title}\n", "bold")
        for name, text in rows:
            page.append(f"  {name:<16}", "bold")
            page.append(f"{text}\n")
        page.append("\n")
