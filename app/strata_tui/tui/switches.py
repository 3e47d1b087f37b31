"""The switches by their names on the command line and in the environment, asked for and in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual.strip import Strip

from strata_tui.tui.line_widget import LineWidget

if TYPE_CHECKING:
    from strata_tui.tui.frame import Frame


@dataclass(frozen=True)
class Switch:
    """One switch: `name=asked` and its key; `in_force` where that is another value at present."""

    name: str
    asked: str
    in_force: str
    key: str
    available: bool = True
    gain: float | None = None  # of tok/s, modelled: what the key is predicted to give


def switches(
    asked: dict[str, Any],
    in_force: dict[str, Any],
    pipelines: bool,
    gains: dict[str, float] | None = None,
) -> list[Switch]:
    """What the bar shows, in its order; `pipelines`: there is memory for windows in flight."""

    def of(name: str, label: str, key: str, available: bool = True) -> Switch:
        want = shown(name, asked.get(name))
        return Switch(
            label,
            want,
            shown(name, in_force[name]) if name in in_force else want,
            key,
            available,
            (gains or {}).get(name),
        )

    return [
        of("overlap", "STRATA_SPLIT_OVERLAP", "o"),
        of("pipeline_windows", "STRATA_PIPELINE_WINDOWS", "w", pipelines),
        of("draft", "draft", "d"),
        of("draft_max", "draft-max", "- +"),
        of("rate", "rate", "[ ]"),
        *([of("theta", "theta", "g")] if pipelines else []),
    ]


def shown(name: str, value: Any) -> str:
    """A value as it would be written on the command line; `?`: a recording does not know it."""
    if value is None:
        return "?"
    if name == "rate":
        return f"{value:g}" if value else "off"
    if name == "theta":
        return f"{value:g}"
    return str(int(value)) if isinstance(value, bool) else f"{value}"


class SwitchBar(LineWidget):
    """One line, or two on a narrow screen; a value that is asked for and not in force yet stands out."""

    PREFIX = "switches"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "switches--name",
        "switches--value",
        "switches--key",
        "switches--modelled",
        "switches--off",
        "switches--waiting",
    }

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._switches: list[Switch] = []

    def show(self, frame: Frame) -> None:
        """Draw this frame's switches."""
        now = switches(frame.asked, frame.in_force, frame.model.pipeline_max > 1, frame.gains)
        if now != self._switches:
            self._switches = now
            self.refresh()

    def render_line(self, y: int) -> Strip:
        lines = self._lines(with_gains=True)
        if len(lines) > self.size.height:
            lines = self._lines(with_gains=False)
        return self.strip(lines[y] if y < len(lines) else [])

    def _lines(self, with_gains: bool) -> list[list[Segment]]:
        lines: list[list[Segment]] = [[]]
        used = 0
        for switch in self._switches:
            item = self._item(switch, with_gains)
            length = sum(s.cell_length for s in item)
            if used and used + length > self.size.width:
                lines.append([])
                used = 0
            lines[-1] += item
            used += length
        return lines

    def _item(self, switch: Switch, with_gain: bool) -> list[Segment]:
        waiting = switch.asked != switch.in_force
        value = f"{switch.asked} ({switch.in_force} in force)" if waiting else switch.asked
        if not switch.available:
            return [Segment(f" {switch.name}={value} {switch.key} ", self.style("off"))]
        gain = f"~{switch.gain:+.0%} " if with_gain and switch.gain is not None else ""
        return [
            Segment(f" {switch.name}=", self.style("name")),
            Segment(value, self.style("waiting" if waiting else "value")),
            Segment(f" {switch.key} ", self.style("key")),
            Segment(gain, self.style("modelled")),
        ]
