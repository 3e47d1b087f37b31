"""The lines of the log: for the panel, and for the file that --log or the environment asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strata_tui.analysis.pipeline_log import PipelineLog

if TYPE_CHECKING:
    from strata_tui.events import Events
    from strata_tui.tui.sitting import Sitting
    from strata_tui.tui.text import TextPanel


MOST_EVENTS = 50_000  # at a time: a replay may have leapt far on


class LogLines:
    """Made from events, as everything that is told."""

    def __init__(self, sitting: Sitting, panel: TextPanel) -> None:
        self._sitting = sitting
        self._panel = panel
        self._of_verdicts = PipelineLog(sitting.opened.label.emulated)

    def verdicts(self, events: Events) -> None:
        """A line for each chain and verdict, while the log is looked at or STRATA_PIPELINE_LOG asks."""
        asked = "pipeline_log" in self._sitting.opened.reports
        events = events[-MOST_EVENTS:]
        if asked or self._panel.display:
            self._say(self._of_verdicts.take(events), to_file=asked)

    def request(self, stats: dict[str, Any]) -> None:
        """The lines of a request that has ended."""
        from strata_tui.report import request_lines

        view = self._sitting.view
        of_request = view.events[view.events["start_ns"] >= stats["begin_ns"]]
        opened = self._sitting.opened
        emulated = opened.label.emulated
        self._say(request_lines(of_request, view.n_stages, stats, opened.reports, emulated))

    def _say(self, lines: list[str], to_file: bool = True) -> None:
        log = self._sitting.opened.log
        for line in lines:
            short = line.removeprefix("strata pipeline: ").removeprefix("strata: ")
            self._panel.add(f"{short}\n", "note" if short.startswith("chain") else "text")
            if log is not None and to_file:
                log(line)
