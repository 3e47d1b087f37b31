"""The recordings that the pictures of the screens are of: made once, kept in tests/data/recordings.

    PYTHONPATH=tests python -m tests.tui.record_runs [FOLDER]

Two runs of the embedded model on the rig that the profile rx7900xt-4x describes (times are emulated, tokens
and verdicts real), two texts each, the same in both: in-turn.strata with one window at a time, of which the
hand-off is overlapped from the middle of the first text on; in-flight.strata with four windows in flight.
"""

import sys
import time
from pathlib import Path
from typing import Any

from strata_tui.cli.headless import decode, open_engine, recording_to
from strata_tui.cli.run_command import command
from strata_tui.cli.run_options import gather
from strata_tui.engine import Engine
from strata_tui.options import RunOptions

PROMPTS = (
    'def median(values):\n    """Return the middle value of a list of numbers."""\n',
    "The lighthouse keeper had not spoken to anyone for three weeks when, on the morning of the storm,",
)
N_TOKENS = 220
FLIP_AT_S = 2.2  # of a text


def options(*switches: str, **request: Any) -> RunOptions:
    """Of a run on the rig, as the command line has them."""
    parsed = command.make_context("run", ["--profile", "rx7900xt-4x", *switches, "-p", ""]).params
    for name in ("model", "file", "ids", "as_json", "trace", "record", "prompt", "max_tokens"):
        parsed.pop(name)
    return gather(parsed, None, max_tokens=N_TOKENS, **request)


def record(path: Path, *switches: str, flip: bool) -> None:
    """Two texts; `flip` overlaps the hand-off from the middle of the first one on."""
    with open_engine(options(*switches, prompt="")) as engine, recording_to(path, engine) as recorder:
        for number, prompt in enumerate(PROMPTS):
            begin = time.monotonic()
            asked = options(*switches, prompt=prompt)
            decode(
                engine,
                asked,
                lambda _, n=number, b=begin: look(engine, flip and n == 0, b),
                recorder=recorder,
            )
            print(path.name, *(line for line in engine.pace_kept() if line["overruns"]), sep="\n  ")


def look(engine: Engine, flip: bool, begin_s: float) -> None:
    if flip and time.monotonic() > begin_s + FLIP_AT_S:
        engine.switches.overlap = True


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "data/recordings")
    record(folder / "in-turn.strata", flip=True)
    record(folder / "in-flight.strata", "--pipeline-windows", "4", "--overlap", flip=False)


if __name__ == "__main__":
    main()
