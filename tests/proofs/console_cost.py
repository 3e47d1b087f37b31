"""What the console and its tracing cost the engine: console_cost.py [ROUNDS [STAGES [busy]]]

In each round the embedded model writes the same texts twice: without events and without a screen, and in
the console in a terminal of its own, 120x40. ms per window of each, their ratio by rounds; the windows of
each text are compared. Also the processor time of the console's own thread, a share of one core, and what it
sends to the terminal. `busy`: every core has something else to do as well.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.tui.terminal import Terminal

TEXTS = 5  # the first warms up
LINE = re.compile(r"pipeline: windows (\d+),.* ms fresh ([\d.]+)")
HEADLESS = """
import sys
from strata_tui.cli.run_options import PLEASANT
from strata_tui.engine import Engine
from strata_tui.options import Placement
from strata_tui.tui.opening import _sampling
from strata_tui.tui.texts import PROMPTS
with Engine.open(stages=int(sys.argv[2]), events=False) as engine:
    for n, prompt in enumerate(PROMPTS[: int(sys.argv[1])]):
        session = engine.session()
        session.start(engine.tokens_of(prompt), 256, _sampling(PLEASANT, n), engine.end_tokens)
        session.to_the_end()
        stats = session.stats()
        print(f"pipeline: windows {stats['windows']}, ms fresh {stats['window_ns'] / stats['windows'] / 1e6}")
"""
Windows = list[tuple[int, float]]  # of each text: windows, ms per window


def windows_of(log: str) -> Windows:
    return [(int(n), float(ms)) for n, ms in LINE.findall(log)][:TEXTS]


def headless(stages: int) -> Windows:
    arguments = [sys.executable, "-c", HEADLESS, str(TEXTS), str(stages)]
    return windows_of(subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True).stdout)


def thread_s(pid: int) -> float:
    """Processor time of the process's first thread, which draws."""
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Shown:
    """The texts in the console; behind the first one its thread's share of a core, and bytes a second."""

    texts: Windows
    share: float
    bytes_per_s: float


def console(stages: int) -> Shown:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        terminal = Terminal("--stages", stages, "--log", log)
        pid, began = terminal.process.pid, (0.0, 0.0, 0)
        texts: Windows = []
        while len(texts) < TEXTS:
            terminal.read(0.05)
            texts = windows_of(log.read_text()) if log.exists() else []
            if texts and not began[0]:
                began = time.monotonic(), thread_s(pid), len(terminal.out)
        passed_s = time.monotonic() - began[0]
        shown = Shown(texts, (thread_s(pid) - began[1]) / passed_s, (len(terminal.out) - began[2]) / passed_s)
        terminal.type(b"q")
        terminal.wait()
        return shown


def ms_per_window(texts: Windows) -> float:
    windows = sum(n for n, _ in texts[1:])
    return sum(n * ms for n, ms in texts[1:]) / windows


@contextmanager
def burners(on: bool) -> Iterator[None]:
    """Something else on each core."""
    started = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in os.sched_getaffinity(0) if on
    ]  # fmt: skip
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    stages = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    alone: list[float] = []
    seen: list[float] = []
    screens: list[Shown] = []
    differ = 0
    with burners("busy" in sys.argv):
        for n in range(rounds):
            if n % 2:
                plain, shown = headless(stages), console(stages)
            else:
                shown, plain = console(stages), headless(stages)
            differ += [w for w, _ in plain] != [w for w, _ in shown.texts]
            alone.append(ms_per_window(plain))
            seen.append(ms_per_window(shown.texts))
            screens.append(shown)
            print(f"  {alone[-1]:.3f} ms alone, {seen[-1]:.3f} in the console", flush=True)
        load = os.getloadavg()[0]
    ratios = [b / a for a, b in zip(alone, seen, strict=True)]
    low, high = min(ratios), max(ratios)
    print(f"{stages} stages, {rounds} rounds, load {load:.1f}; texts with other windows: {differ}")
    print(f"ms per window in the console / alone: {statistics.median(ratios):.3f} ({low:.3f}-{high:.3f})")
    print(f"its thread: {statistics.median(s.share for s in screens):.1%} of a core")
    print(f"to the terminal: {statistics.median(s.bytes_per_s for s in screens) / 1e3:.1f} kB/s")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
