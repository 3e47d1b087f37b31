"""The first line: what is open, on what, and whether the view is live."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.line_widget import LineWidget, fitted

if TYPE_CHECKING:
    from strata_tui.tui.frame import Frame, ModelLabel, Tape


class Header(LineWidget):
    """Model, devices and layer ranges at the left, EMULATED and the state of the view at the right."""

    PREFIX = "header"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "header--name",
        "header--dim",
        "header--paused",
        "header--emulated",
        "header--recording",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self._left: tuple[tuple[str, str], ...] = (("name", " strata"), ("dim", "  opening"))
        self._right: tuple[tuple[str, str], ...] = ()

    def show(self, frame: Frame) -> None:
        """Draw this frame's state."""
        self._set(
            (("name", f" {frame.model.name}"), ("dim", self._about(frame.model))),
            self._state(frame),
        )

    def tell(self, text: str) -> None:
        """Say what is going on before there is a model."""
        self._set((("name", " strata"), ("dim", f"  {text}")), ())

    def _set(self, left: tuple[tuple[str, str], ...], right: tuple[tuple[str, str], ...]) -> None:
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def _about(self, model: ModelLabel) -> str:
        dot = f" {self.glyphs.dot} "
        stages = f" {self.glyphs.times}{len(model.stages)}" if len(model.stages) > 1 else ""
        devices = sorted({stage.device.split()[0] for stage in model.stages})
        return dot.join(
            [
                "",
                model.arch,
                f"{model.n_layers} layers",
                f"{'+'.join(devices)}{stages}",
                f"context {model.context}",
            ]
        )

    def _state(self, frame: Frame) -> tuple[tuple[str, str], ...]:
        labels: tuple[tuple[str, str], ...] = ()
        if frame.model.emulated:
            labels = (("emulated", " EMULATED "), ("dim", " "))
        if frame.tape is not None:
            return (*labels, *self._tape(frame.tape))
        if frame.recording:
            labels = (*labels, ("recording", f" {self.glyphs.recording} rec "), ("dim", " "))
        text = f"text {frame.n_text}  "
        if frame.behind_ns is not None:
            behind = f"{frame.behind_ns / 1e9:.1f} s behind live"
            held = ", decoding paused" if frame.state == "paused" else ""
            return (*labels, ("paused", f" {self.glyphs.pause} FROZEN {behind}{held} "))
        if frame.state == "stopped":
            return (*labels, ("dim", text + f"{self.glyphs.stopped} stopped "))
        if frame.state == "paused":
            return (*labels, ("dim", text), ("paused", f" {self.glyphs.pause} decoding paused "))
        return (*labels, ("dim", text), ("name", f"{self.glyphs.live} live "))

    def _tape(self, tape: Tape) -> tuple[tuple[str, str], ...]:
        where = f"{tape.at_s:.1f} of {tape.length_s:.1f} s at {tape.speed:g}{self.glyphs.times}  "
        if tape.held:
            return ("dim", where), ("paused", f" {self.glyphs.pause} PAUSED replay ")
        return ("dim", where), ("name", f"{self.glyphs.replay} replay ")

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        right = self._segments(self._right)
        room = max(0, width - sum(s.cell_length for s in right))
        parts = fitted(self._segments(self._left), max(0, room - 1), self.glyphs.ellipsis)
        left = Strip(parts).adjust_cell_length(room)
        return self.strip([*left, *right])

    def _segments(self, parts: tuple[tuple[str, str], ...]) -> list[Segment]:
        return [Segment(text, self.style(name)) for name, text in parts]
