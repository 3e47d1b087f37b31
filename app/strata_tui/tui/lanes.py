"""Stage lanes on one time axis: the ruler, one row or more a lane, the legend, shares at the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import SHARE_COLUMNS, LaneState
from strata_tui.terminal_text import layers, span
from strata_tui.tui.columns import label_width
from strata_tui.tui.contrast import contrast
from strata_tui.tui.dragging import Draggable
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget, shortened

if TYPE_CHECKING:
    from strata_tui.analysis.lanes import Run
    from strata_tui.analysis.view import Lane, Picture
    from strata_tui.tui.frame import Frame, ModelLabel

DRAFT_LANE, HOST_LANE = 254, 255
_SHORT = {"commit": "cmt"}
_LABELLED = (LaneState.RUN_EVEN, LaneState.RUN_ODD, LaneState.GUESS, LaneState.LOST)
_WORDS = {
    LaneState.RUN_EVEN: "run",
    LaneState.RUN_ODD: "next",
    LaneState.GUESS: "guess",
    LaneState.LOST: "lost",
    LaneState.PREFILL: "read",
    LaneState.COMMIT: "commit",
    LaneState.COMMIT_AHEAD: "ahead",
    LaneState.UNDO: "undo",
    LaneState.WAIT: "wait",
    LaneState.HOST: "host",
    LaneState.DRAFT: "draft",
    LaneState.THROTTLED: "throttled",
    LaneState.IDLE: "idle",
    LaneState.VERDICT: "verdict",
    LaneState.IN_FLIGHT: "in flight",
    LaneState.PAUSED: "paused",
}
_ONLY_WITH_GUESSES = (LaneState.GUESS, LaneState.LOST, LaneState.COMMIT_AHEAD, LaneState.UNDO)
_LEFT_OUT_WITH_GUESSES = (LaneState.RUN_ODD, LaneState.PREFILL, LaneState.THROTTLED)


def legend(with_guesses: bool) -> list[tuple[LaneState, str]]:
    """States and their words; the last ones go where room lacks, the help has all."""
    without = _LEFT_OUT_WITH_GUESSES if with_guesses else _ONLY_WITH_GUESSES
    return [(state, word) for state, word in _WORDS.items() if state not in without]


_AT = {name: i for i, (name, _) in enumerate(SHARE_COLUMNS)}
_NARROW_COLUMNS = (
    ("work", (_AT["run"], _AT["read"], _AT["commit"])),
    *((name, (_AT[name],)) for name in ("lost", "wait", "host", "held", "idle")),
)


WHEEL_SHARE = 0.1  # of the time that is seen, a notch


class Lanes(Draggable, LineWidget):
    """Draws a `Picture`: runs of like cells are one segment each, only changed rows are drawn anew.

    The mouse moves in time (wheel, or held down), zooms (the wheel with ctrl) and points at spans.
    """

    class Sized(Message):
        """There is another number of cells across: a picture of so many is wanted."""

    class Panned(Message):
        """By a share of the time that is seen; negative = back."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    class Zoomed(Message):
        """In (1) or out (-1)."""

        def __init__(self, steps: int) -> None:
            super().__init__()
            self.steps = steps

    class Pointed(Message):
        """At what a lane did at a moment."""

        def __init__(self, lane: int, at_ns: int) -> None:
            super().__init__()
            self.lane = lane
            self.at_ns = at_ns

    PREFIX = "lanes"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"lanes--{state.name.lower().replace('_', '-')}" for state in LaneState
    } | {
        "lanes--label",
        "lanes--dim",
        "lanes--toggle",
        "lanes--request",
        "lanes--error",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._frame: Frame | None = None
        self._grasp: int | None = None  # the column that is held; None = it has not been moved
        self._grasped_x = 0

    def on_resize(self) -> None:
        if self._frame is not None and self._frame.picture.columns != self.columns:
            self.post_message(self.Sized())

    # -- the mouse

    def grasped(self, x: int, y: int) -> None:
        self._grasp, self._grasped_x = None, x

    def dragged(self, x: int, y: int) -> None:
        """What is under the mouse stays there."""
        before = self._grasped_x if self._grasp is None else self._grasp
        if x != before:
            self._grasp = x
            self.post_message(self.Panned((before - x) / self.columns))

    def let_go(self, x: int, y: int) -> None:
        if self._grasp is None and self._frame is not None:
            picture = self._frame.picture
            rows, column = self._rows(picture), x - self.label_width
            if 0 <= column < self.columns and 1 <= y <= len(rows):
                at_ns = picture.t0_ns + (2 * column + 1) * (picture.t1_ns - picture.t0_ns) // (
                    2 * self.columns
                )
                self.post_message(self.Pointed(rows[y - 1][0].stage, at_ns))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        self.post_message(self.Zoomed(-by) if event.ctrl else self.Panned(by * WHEEL_SHARE))

    # -- geometry

    @property
    def label_width(self) -> int:
        return label_width(self)

    @property
    def shares_width(self) -> int:
        return 5 * len(self.share_columns)

    @property
    def is_narrow(self) -> bool:
        return self.screen.has_class("-narrow")

    @property
    def share_columns(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Heading and the SHARE_COLUMNS that it sums: narrow screens see run, read and commit as one."""
        if self.is_narrow:
            return _NARROW_COLUMNS
        return tuple((_SHORT.get(name, name), (i,)) for i, (name, _) in enumerate(SHARE_COLUMNS))

    @property
    def columns(self) -> int:
        """Cells across the time axis."""
        return max(1, self.size.width - self.label_width - self.shares_width - 2)

    def lane_height(self, stage: int) -> int:
        """Stages are two rows high where the screen is tall."""
        return 2 if stage < DRAFT_LANE and self.screen.has_class("-tall") else 1

    def _rows(self, picture: Picture) -> list[tuple[Lane, int]]:
        return [(lane, row) for lane in picture.lanes for row in range(self.lane_height(lane.stage))]

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        if self._frame is None:
            return 4
        return len(self._rows(self._frame.picture)) + 2

    # -- what is shown

    def show(self, frame: Frame) -> None:
        """Draw this frame's picture."""
        before, self._frame = self._frame, frame
        if before is None or len(before.picture.lanes) != len(frame.picture.lanes):
            self.refresh(layout=True)
            return
        old, new = before.picture, frame.picture
        if old is new and (before.with_guesses, before.told, before.cursor, before.path) == (
            frame.with_guesses,
            frame.told,
            frame.cursor,
            frame.path,
        ):
            return
        width = self.size.width
        overlay = [(f.told, f.cursor, f.path) for f in (before, frame)]
        whole = overlay[0] != overlay[1] or (old.columns, old.marks, before.with_guesses) != (
            new.columns,
            new.marks,
            frame.with_guesses,
        )
        if whole or _is_blank(old):
            self.refresh()
            return
        if (old.t0_ns, old.t1_ns) != (new.t0_ns, new.t1_ns):
            self.refresh(Region(0, 0, width, 1))
        y = 1
        for was, now in zip(old.lanes, new.lanes, strict=True):
            height = self.lane_height(now.stage)
            if was != now:
                self.refresh(Region(0, y, width, height))
            y += height

    def _state_style(self, state: LaneState) -> Style:
        return self.style(state.name.lower().replace("_", "-"))

    # -- drawing

    def render_line(self, y: int) -> Strip:
        if self._frame is None or _is_blank(self._frame.picture):
            return self._empty(y)
        picture = self._frame.picture
        rows = self._rows(picture)
        if y == 0:
            segments = self._ruler(self._frame)
        elif y <= len(rows):
            segments = self._lane(self._frame, *rows[y - 1])
        elif y == len(rows) + 1:
            segments = self._legend(self._frame)
        else:
            segments = []
        return self.strip(segments)

    def _empty(self, y: int) -> Strip:
        text = "waiting for the first window" if y == 1 else ""
        line = Segment(f"{'':{self.label_width}}{text}", self.style("dim"))
        return self.strip([line])

    def _ruler(self, frame: Frame) -> list[Segment]:
        from strata_tui.analysis.axis import duration, tick_step

        picture, columns = frame.picture, self.columns
        span = picture.t1_ns - picture.t0_ns
        start = (picture.t0_ns - frame.begin_ns) / 1e9
        ruler = _Ruler(columns)
        for mark_kind in ("error", "toggle", "request"):
            for column, mark in picture.marks:
                if mark.kind == mark_kind:
                    ruler.put(column, self.glyphs.flag, mark.text, mark.kind)
        step = tick_step(span, columns, 12)
        for at in range(0, span, step):
            ruler.put(at * columns // span, self.glyphs.tick, f"+{duration(at)}" if at else "0", "dim")
        head = f"{start:6.1f} s" if self.is_narrow else f" at {start:9.3f} s"
        (first, _), *others = self.share_columns
        heads = f"{'%' + first.rjust(4)}" + "".join(f"{name:>5}" for name, _ in others)
        cells = [Segment(text, self.style(kind)) for text, kind in ruler.parts()]
        dim = self.style("dim")
        return [_fitted(head, self.label_width, dim), *cells, Segment(" " + heads, dim)]

    def _lane(self, frame: Frame, lane: Lane, row: int) -> list[Segment]:
        model, picture = frame.model, frame.picture
        height = self.lane_height(lane.stage)
        cells = Strip(
            [s for run in lane.runs for s in self._run(run, lane.stage, row, height, picture.fates)]
        )
        for column, mark in picture.marks:
            flag = Strip([Segment(self.glyphs.mark, self.style(mark.kind))])
            cells = Strip.join([cells.crop(0, column), flag, cells.crop(column + 1, picture.columns)])
        if row == height - 1:
            cells = self._with_path(cells, frame, lane.stage)
        if row == 0 and frame.cursor is not None and frame.cursor[0] == lane.stage:
            cells = self._with_cursor(cells, picture, *frame.cursor[1:])
        if picture.columns != self.columns:  # the screen has just been resized
            cells = cells.adjust_cell_length(self.columns)
        return [*self._label(model, lane.stage, row), *cells, Segment(" "), *self._shares(lane, row, height)]

    def _with_path(self, cells: Strip, frame: Frame, stage: int) -> Strip:
        picture = frame.picture
        for lane, start, end in frame.path:
            if lane == stage and start < picture.t1_ns and end > picture.t0_ns:
                first, last = _columns(picture, start, end)
                line = Strip([Segment(self.glyphs.path * (last - first), self.style("toggle"))])
                cells = Strip.join([cells.crop(0, first), line, cells.crop(last, picture.columns)])
        return cells

    def _with_cursor(self, cells: Strip, picture: Picture, start: int, end: int) -> Strip:
        if start >= picture.t1_ns or end < picture.t0_ns:
            return cells
        first, last = _columns(picture, start, end)
        style, (left, right, only) = self.style("toggle"), self.glyphs.cursor
        if last - first == 1:
            inner = Strip([Segment(only, style)])
        else:
            middle = cells.crop(first + 1, last - 1)
            inner = Strip.join([Strip([Segment(left, style)]), middle, Strip([Segment(right, style)])])
        return Strip.join([cells.crop(0, first), inner, cells.crop(last, picture.columns)])

    def _run(self, run: Run, stage: int, row: int, height: int, fates: Mapping[int, int]) -> list[Segment]:
        """Its cells, with the sign of its window's fate unless that is fresh, and the window's number."""
        state, length, window = run.state, run.length, run.window
        style = self._state_style(state)
        fill = self.glyphs.lane(state, row, height) * length
        if row or state not in _LABELLED or stage >= DRAFT_LANE:
            return [Segment(fill, style)]
        fate = fates.get(window, Fate.FRESH)
        sign = "" if fate in (Fate.FRESH, Fate.PROMPT) else self.glyphs.fates.get(fate, "?")
        label = f"{sign}{window}" if length > len(f"{sign}{window}") else sign
        if not label or length <= len(label):
            return [Segment(fill, style)]
        named = _on_its_colour(style, self.style("toggle")) if self.glyphs is COLOUR else style
        return [Segment(fill[:1], style), Segment(label, named), Segment(fill[len(label) + 1 :], style)]

    def _label(self, model: ModelLabel, stage: int, row: int) -> list[Segment]:
        width = self.label_width
        label, dim = self.style("label"), self.style("dim")
        if stage >= DRAFT_LANE:
            return [_fitted(" draft" if stage == DRAFT_LANE else " host", width, label)]
        about = model.stages[stage]
        if self.is_narrow:
            return [_fitted(f" {stage} {span(about.first_layer, about.last_layer)}", width, label)]
        if row:
            device = about.device if len(about.device) < width - 3 else about.device.split(" (")[0]
            return [_fitted(f"   {device}", width, dim)]  # that it is emulated stands in the head too
        return [
            _fitted(f" stage {stage}", 9, label),
            _fitted(f" {layers(about.first_layer, about.last_layer)}", width - 9, dim),
        ]

    def _shares(self, lane: Lane, row: int, height: int) -> list[Segment]:
        if lane.stage >= DRAFT_LANE or row < height - 1:
            return [Segment(" " * self.shares_width)]
        segments = []
        for _, parts in self.share_columns:
            share = sum(lane.shares[i] for i in parts)
            segments.append(Segment(f"{share:>5}", self.style("label" if share else "dim")))
        return segments

    def _legend(self, frame: Frame) -> list[Segment]:
        """Shapes and their words, under the cells, as far as they fit."""
        segments = [Segment(" " * self.label_width)]
        if frame.told:
            told = shortened(f" {frame.told}", self.size.width - 1, self.glyphs.ellipsis)
            return [_fitted(told, self.size.width, self.style("toggle"))]
        room = self.size.width - self.label_width
        for state, name in legend(with_guesses=frame.with_guesses):
            if state == LaneState.RUN_ODD and self.is_narrow:
                continue
            if len(name) + 2 > room:
                break
            segments.append(Segment(self.glyphs.lane(state, 0, 1), self._state_style(state)))
            segments.append(Segment(f" {name}  ", self.style("dim")))
            room -= len(name) + 4
        return segments


def _columns(picture: Picture, start: int, end: int) -> tuple[int, int]:
    """The cells [first, last) that a span of time is seen in, at least one."""
    span = picture.t1_ns - picture.t0_ns
    first = (max(start, picture.t0_ns) - picture.t0_ns) * picture.columns // span
    last = -(-(min(end, picture.t1_ns) - picture.t0_ns) * picture.columns // span)
    first = min(first, picture.columns - 1)
    return first, min(max(last, first + 1), picture.columns)


def _is_blank(picture: Picture) -> bool:
    return all(run.state == LaneState.UNKNOWN for lane in picture.lanes for run in lane.runs)


def _fitted(text: str, width: int, style: Style) -> Segment:
    """Cut or filled to `width` cells, the last one blank."""
    return Segment(f"{text[: width - 1]:<{width}}", style)


@lru_cache(256)
def _on_its_colour(style: Style, strong: Style) -> Style:
    """Words on a run: in the background's colour, or in the strongest where that is told apart better."""
    fill = style.color
    choices = [
        (c.triplet, c) for c in (style.bgcolor, strong.color) if c is not None and c.triplet is not None
    ]
    if fill is None or fill.triplet is None or not choices:
        return Style(color=style.bgcolor, bgcolor=fill)  # a terminal's own colours: nobody knows them
    behind = fill.triplet
    return Style(color=max(choices, key=lambda choice: contrast(choice[0], behind))[1], bgcolor=fill)


class _Ruler:
    """Words on one line, each put where it belongs as long as the place is free: the first come stay."""

    def __init__(self, columns: int) -> None:
        self._cells = [" "] * columns
        self._kinds = ["dim"] * columns
        self._taken = [False] * columns

    def put(self, column: int, sign: str, text: str, kind: str) -> None:
        """`sign` at the column and `text` behind or before it; the sign alone where the text has no room."""
        for begin, word in ((column, sign + text), (column - len(text), text + sign), (column, sign)):
            end = begin + len(word)
            if begin >= 0 and end <= len(self._cells) and not any(self._taken[begin : end + 1]):
                self._cells[begin:end] = word
                self._kinds[begin:end] = [kind] * len(word)
                self._taken[begin:end] = [True] * len(word)
                return

    def parts(self) -> Iterator[tuple[str, str]]:
        """Text and kind of neighbouring cells of one kind."""
        for kind, cells in groupby(zip(self._cells, self._kinds, strict=True), key=lambda cell: cell[1]):
            yield "".join(character for character, _ in cells), kind
