"""What is kept of a session as a file: a recording from here on, a trace of what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata_tui.errors import why
from strata_tui.terminal_text import counted
from strata_tui.tui.export import dated, export

if TYPE_CHECKING:
    from strata_tui.events import Events
    from strata_tui.record.recorder import Recorder
    from strata_tui.tui.desk import Desk
    from strata_tui.tui.sitting import Sitting


class Keeping:
    """Writes in threads; each says when it is done, or why it isn't."""

    def __init__(self, sitting: Sitting, desk: Desk) -> None:
        self._sitting = sitting
        self._desk = desk
        self._recorder: Recorder | None = None
        self._dropped_before = 0  # events, when the recording began

    @property
    def recording(self) -> bool:
        return self._recorder is not None

    def take(self, events: Events) -> None:
        """Events that have come since the last time, for the recording if there is one."""
        if self._recorder is None:
            return
        self._recorder.take(events)
        if self._recorder.error:
            self._desk.tell(f"{self._recorder.path}: {self._recorder.error}", "error")
            self.stop()

    def record(self) -> None:
        """Begin a recording, or end it."""
        if self._recorder is not None:
            self.stop()
        else:
            self._start()
        self._desk.refresh_soon()

    def _start(self) -> None:
        from strata_tui.record.recorder import Recorder

        opened = self._sitting.opened
        if opened.recording_header is None:
            return
        path = dated(".strata")
        try:
            self._recorder = Recorder(path, opened.recording_header, opened.piece, new=True)
        except OSError as error:
            self._desk.tell(f"nothing is recorded: {why(error)}", "error")
            return
        self._dropped_before = opened.engine.dropped_events
        self._sitting.texts.record_to(self._recorder)

    def stop(self) -> None:
        """Nothing more goes into it; what has gone in is written by a thread that says when it is done."""
        if self._recorder is None:
            return
        recorder, self._recorder = self._recorder, None
        self._sitting.texts.record_to(None)
        dropped = self._sitting.opened.engine.dropped_events - self._dropped_before

        def close() -> None:
            recorder.close(dropped)
            told = recorder.error or counted(recorder.n_events, "event")
            line = f"{recorder.path.resolve()} ({told})"
            self._desk.from_thread(self._desk.tell_kept, line)

        self._desk.spawn(close)

    def profile(self) -> None:
        """Save the switches in force as a run profile."""
        from strata_tui.files import whole_file

        opened = self._sitting.opened
        if opened.profile is None:
            return
        path = dated(".toml")
        try:
            text = opened.profile(path.stem, self._sitting.switches.in_force())
            with whole_file(path) as file:
                file.write(text.encode())
        except OSError as error:
            self._desk.tell(f"no profile was written: {why(error)}", "error")
        else:
            self._desk.tell_kept(f"{path.resolve()}; strata-tui --profile {path} starts with these switches")

    def export(self) -> None:
        """Write the trace: from the session's start, or from the oldest event kept."""
        sitting, view = self._sitting, self._sitting.view
        events, let_go = view.events.copy(), view.events_let_go
        if not len(events):
            self._desk.tell("nothing to export yet: there are no events so far", "warning")
            return
        path = dated(".json.gz")

        def write() -> None:
            try:
                line = export(path, sitting.opened, events, let_go, sitting.begin_ns, view.dropped)
            except OSError as error:
                self._desk.from_thread(self._desk.tell, f"no trace was written: {why(error)}", "error")
            else:
                self._desk.from_thread(self._desk.tell_kept, line)

        self._desk.spawn(write)
