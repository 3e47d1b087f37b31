"""The trace of a session, as a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strata_tui.events import Events
    from strata_tui.tui.opened import Opened


OPENS_IN = "ui.perfetto.dev or any Chrome trace viewer"


def dated(suffix: str) -> Path:
    """A name that no key pressed a moment ago has: to the millisecond."""
    now = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    return Path(f"strata-{stamp}-{int(now % 1 * 1000):03d}{suffix}")


def export(path: Path, opened: Opened, events: Events, let_go: int, begin_ns: int, dropped: int) -> str:
    """Write the events kept as a Chrome trace.

    Returns:
        A line that says where it is, from when on it tells and what opens it.
    """
    from strata_tui.record.trace import write_trace
    from strata_tui.terminal_text import counted

    write_trace(path, events, opened.trace_meta())
    first = int(events["start_ns"][0]) if let_go and len(events) else begin_ns
    since = (
        f"from the oldest event kept, {(first - begin_ns) / 1e9:.1f} s in"
        if let_go
        else "from the session's start"
    )
    lost = f"; {dropped:,} events were dropped" if dropped else ""
    told = f"{path.resolve()} ({counted(len(events), 'event')}, {since}{lost})"
    return f"{told}; opens in {OPENS_IN}"
