"""A recording of 100,000 windows: what it weighs, how long it takes to write, to open and to export.

    python tests/proofs/recordings.py [--windows 100000] [--repeats 3]

The events are those of reference/events.py, two stages, three drafts a window. Exit code 1: it does not open
within 2 s or is not opened and exported within 10 s. These are seconds of processor time of one thread, as on
a machine that does nothing else, the median of the repeats; wall times are told beside them. Of half of the
windows: how long idle times by cause and the model of a prediction take.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from record.test_recording import HEADER
from reference.events import decode_run
from strata_tui.analysis.explained import Explained
from strata_tui.analysis.what_if import Setting, WhatIf
from strata_tui.options import GREEDY
from strata_tui.record.reading import open_recording
from strata_tui.record.recorder import Recorder
from strata_tui.record.table import write_table
from strata_tui.record.trace import write_trace

OPEN_S, EXPORT_S = 2.0, 10.0


def seconds(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Medians of processor time and of wall time."""
    times = []
    for _ in range(repeats):
        begin = time.process_time(), time.perf_counter()
        work()
        times.append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
    return median(cpu for cpu, _ in times), median(wall for _, wall in times)


def main() -> int:
    """The proof."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    events = decode_run(args.windows, stages=2, rows=4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.strata"

        def write() -> None:
            recorder = Recorder(path, lambda: HEADER, lambda token: f" word{token}")
            recorder.begin(0, [1, 2, 3], "a prompt", GREEDY)
            for at in range(0, len(events), 20_000):
                recorder.take(events[at : at + 20_000])
                recorder.wrote(int(events["start_ns"][at]), [at % 1000] * 900, " word" * 900)
            recorder.end(1, "length", "", {})
            recorder.close()

        wrote = seconds(write, 1)
        size = path.stat().st_size
        opened = seconds(lambda: open_recording(path), args.repeats)
        recording = open_recording(path)
        meta = recording.trace_meta()
        out = Path(folder)
        fewer = decode_run(args.windows // 2, stages=2, rows=4)
        setting = Setting(draft_max=3, theta=0.0)
        idle = seconds(lambda: Explained(fewer, 2, 0).stages, args.repeats)
        what_if = seconds(lambda: WhatIf(fewer, 2, setting), args.repeats)
        trace = seconds(lambda: write_trace(out / "a.json.gz", recording.events, meta), args.repeats)
        table = seconds(lambda: write_table(out / "a.csv", recording), args.repeats)
    n = len(events)
    print(f"{args.windows:,} windows, {n:,} events, {size:,} bytes ({size / n:.1f} an event)")
    for what, (cpu, wall), most in (
        ("written", wrote, None),
        ("opened", opened, OPEN_S),
        ("half of it: where the time goes", idle, None),
        ("half of it: the model of what if", what_if, None),
        ("exported as .json.gz", trace, EXPORT_S),
        ("exported as .csv", table, EXPORT_S),
    ):
        bound = f", at most {most:g}" if most else f": {cpu / n * 1e9:.0f} ns an event"
        print(f"{what}: {cpu:.2f} s of processor time ({wall:.2f} s by the wall){bound}")
    return 0 if opened[0] < OPEN_S and opened[0] + max(trace[0], table[0]) < EXPORT_S else 1


if __name__ == "__main__":
    sys.exit(main())
