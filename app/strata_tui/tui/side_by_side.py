"""Two recordings on one screen, aligned at token: move along the text, see both runs' lanes there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from strata_tui.analysis.axis import LADDER_NS
from strata_tui.analysis.view import Mark, View
from strata_tui.tui.commands import shown_key
from strata_tui.tui.frame import Frame
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.key_bar import KeyBar
from strata_tui.tui.lanes import Lanes
from strata_tui.tui.opening import recorded_label
from strata_tui.tui.scrub import Figures, Place, Scrub, Words
from strata_tui.tui.themed import Themed

if TYPE_CHECKING:
    from strata_tui.record.recording import Recording
    from strata_tui.tui.aligned import Aligned, At

PARTS = 16  # that u looks for the greatest difference in
SHARE = 0.75  # of the lanes' width that lies before the verdict
LEAP = 20  # of the text, with shift
_KEYS = (
    ("left", "step(-1)", "a window back"),
    ("right", "step(1)", "on"),
    ("shift+left", "leap(-1)", "back far"),
    ("shift+right", "leap(1)", "on far"),
    ("home", "go(0)", "beginning"),
    ("end", "go(1)", "end"),
    ("u", "different", "most apart"),
    ("up", "zoom(1)", "zoom in"),
    ("down", "zoom(-1)", "zoom out"),
    ("pageup", "figures(-1)", "figures"),
    ("pagedown", "figures(1)", "on in the figures"),
    ("t", "next_theme", "theme"),
    ("q", "quit", "quit"),
    ("escape", "quit", "quit"),
)
_BAR = ("left", "right", "u", "up", "down", "t", "q")


class SideBySide(Themed):
    """A's run above B's, the same time across, both at the verdict that wrote the same token."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, action, words, show=False) for key, action, words in _KEYS),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(self, aligned: Aligned, glyphs: Glyphs = COLOUR) -> None:
        super().__init__(glyphs)
        self.aligned = aligned
        self.token = 0
        self.span_ns = _span(aligned)
        self._views = [_view(side.recording) for side in (aligned.comparison.a, aligned.comparison.b)]
        self._different: list[int] = []

    def compose(self) -> ComposeResult:
        self.place = Place(self.aligned, self.glyphs)
        self.scrub = Scrub(self.aligned, self.glyphs)
        self.words = Words(self.aligned)
        self.lanes = [Lanes(self.glyphs, id="a"), Lanes(self.glyphs, id="b")]
        yield self.place
        yield self.scrub
        yield self.words
        yield from self.lanes
        self.figures = Figures(self.aligned, self.glyphs)
        yield self.figures
        shown = [(shown_key(key), words, action) for key, action, words in _KEYS if key in _BAR]
        yield KeyBar(shown, ("quit",))

    def on_mount(self) -> None:
        self.dress()
        self.call_after_refresh(self._show)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        self.place.show(self.token)
        self.scrub.show(self.token)
        self.words.show(self.token)
        runs = (self.aligned.a, self.aligned.b)
        for name, lanes, view, run in zip("AB", self.lanes, self._views, runs, strict=True):
            lanes.show(self._frame(name, view, run.side.recording, run.at(self.token), lanes.columns))

    def _frame(self, name: str, view: View, recording: Recording, at: At, columns: int) -> Frame:
        t0 = at.end_ns - int(SHARE * self.span_ns)
        told = (
            f"{name}: window {at.window} of {at.rows} rows wrote {at.emitted}, {at.busy_ms:.2f} ms after the "
            f"verdict before, {at.passed_ms:.1f} ms from the start"
        )
        picture = view.picture(t0, t0 + self.span_ns, columns)
        here = Mark(at.end_ns, "toggle", f"token {self.token + 1}")
        begin = int(recording.events["start_ns"][0])
        return Frame(
            model=recorded_label(recording),
            now_ns=at.end_ns,
            begin_ns=begin,
            state="stopped",
            behind_ns=0,
            picture=replace(picture, marks=(*picture.marks, (int(SHARE * columns), here))),
            windows=view.windows_before(at.end_ns, 1),
            rates=view.rates(at.end_ns),
            asked={},
            in_force=recording.switches,
            gains={},
            n_text=1,
            told=told,
        )

    # -- actions

    def action_step(self, windows: int) -> None:
        self._go(self.aligned.step(self.token, windows))

    def action_leap(self, by: int) -> None:
        self._go(self.token + by * max(1, self.aligned.n_tokens // LEAP))

    def action_go(self, share: float) -> None:
        self._go(int(share * self.aligned.n_tokens))

    def action_different(self) -> None:
        """To where the runs differ most; again: the next."""
        if not self._different:
            self._different = self.aligned.most_different(PARTS)
        self._go(self._different.pop(0))

    def on_lanes_sized(self) -> None:
        self._show()

    def on_scrub_sought(self, sought: Scrub.Sought) -> None:
        self._go(sought.token)

    def on_lanes_panned(self, panned: Lanes.Panned) -> None:
        self._go(self.aligned.step(self.token, 1 if panned.share > 0 else -1))

    def on_lanes_zoomed(self, zoomed: Lanes.Zoomed) -> None:
        self.action_zoom(zoomed.steps)

    def _go(self, token: int) -> None:
        self.token = min(max(0, token), self.aligned.n_tokens - 1)
        self._show()

    def action_zoom(self, steps: int) -> None:
        at = min(range(len(LADDER_NS)), key=lambda i: abs(LADDER_NS[i] - self.span_ns))
        self.span_ns = LADDER_NS[min(max(at - steps, 0), len(LADDER_NS) - 1)]
        self._show()

    def action_figures(self, pages: int) -> None:
        self.figures.scroll_lines(pages * max(1, self.figures.page))

    def action_next_theme(self) -> None:
        self.next_theme()

    def close(self) -> None:
        """Nothing is open."""


def _view(recording: Recording) -> View:
    view = View(len(recording.stages), draft_lane=recording.has_draft_layer)
    view.take(recording.events)
    return view


def _span(aligned: Aligned) -> int:
    """Four windows of the slower run."""
    runs: tuple[Any, ...] = (aligned.a, aligned.b)
    end = aligned.n_tokens - 1
    windows = [max(1, run.side.n_windows) for run in runs]
    slower_ms = max(run.at(end).passed_ms / n for run, n in zip(runs, windows, strict=True))
    wanted = 4 * slower_ms * 1e6
    return next((step for step in LADDER_NS if step >= wanted), LADDER_NS[-1])
