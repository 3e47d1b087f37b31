"""The same bench on a quiet machine and with one core kept busy: are the ratios by round the same?

bench_under_load.py [ROUNDS] [FLAGS ..]: FLAGS go to the bench. Prints each ratio with its spread, and
beside it what blocks (A A A, then B B B) would have said had the load come with the second block.
"""

import json
import os
import statistics
import subprocess
import sys
from typing import Any

BENCH = [sys.executable, "-c", "from strata_tui.cli import main; main()", "bench", "--json"]
BUSY = "while True: pass"


def bench(rounds: int, flags: list[str], busy_core: int | None) -> dict[str, Any]:
    burner = None
    if busy_core is not None:
        burner = subprocess.Popen(
            [sys.executable, "-c", BUSY], preexec_fn=lambda: os.sched_setaffinity(0, {busy_core})
        )
    try:
        done = subprocess.run(
            [*BENCH, "--runs", str(rounds), *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    finally:
        if burner:
            burner.kill()
            burner.wait()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    flags = sys.argv[2:] or ["-n", "128"]
    core = max(os.sched_getaffinity(0))
    quiet, loaded = bench(rounds, flags, None), bench(rounds, flags, core)
    print(f"{quiet['machine']}, {rounds} rounds, texts equal: {quiet['identical']} and {loaded['identical']}")
    for name, found in (("quiet", quiet), ("one core busy", loaded)):
        print(f"{name}: load {found['load_average']}")
    first = quiet["arms"][0]
    outside = 0
    for before, under in zip(quiet["arms"], loaded["arms"], strict=True):
        ratio = [arm["against_first"]["ms_per_window"] for arm in (before, under)]
        low, high = ratio[1]["min"], ratio[1]["max"]
        inside = low <= ratio[0]["median"] <= high
        outside += not inside
        blocks = under["ms_per_window"]["median"] / first["ms_per_window"]["median"]
        shown = [f"{r['median']:.3f} ({r['min']:.3f}-{r['max']:.3f})" for r in ratio]
        ms = [f"{arm['ms_per_window']['median']:.2f}" for arm in (before, under)]
        print(
            f"  {before['name']:20} ms {' -> '.join(ms)}; window time / {first['name']}: quiet {shown[0]}, "
            f"loaded {shown[1]}: {'inside' if inside else 'OUTSIDE'}; in blocks {blocks:.3f}"
        )
    loads = [statistics.median(a["ms_per_window"]["runs"]) for a in (first, loaded["arms"][0])]
    print(f"the load made the first arm {loads[1] / loads[0]:.2f} times as slow")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
