"""The engine's schedule on even devices against the simulator's and the lower bound: schedule.py [MODEL]

Each arm decodes a text with replayed drafts on stages whose programs last a fixed time (an emulation of time;
tokens and verdicts are real). The verdicts that happened and the measured costs of host, drafts and commits
go into the simulator; each window's start and end on each stage, counted from the verdict before it, must
agree within 2 % of the arm's mean ms per window, and that mean with the lower bound of its depth within 3 %.

The model is a small random one, so that what is computed takes little of the cores; MODEL names another.
A busy machine is late by itself: an arm that falls short is run again, up to --tries times, and the best try
counts. `chrt -r 10` in front keeps other work from getting in between.
"""

import argparse
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dataclasses

from reference.lower_bound import actual, lower_bound, measured
from reference.random_models import Shape, random_tensors, write_model
from reference.recorded import Recording, measured_rig, recorded
from strata_tui import Engine
from strata_tui.analysis.schedule import Switches, Window
from strata_tui.analysis.simulator import simulate

WINDOW_MS = 240.0  # a serial window: what the host adds is small beside it
AGREE, BOUND = 0.02, 1.03
CUT_MS = 0.2  # how soon a rolled-back program ends

# Where the engine leaves the letter of the specification, each time for less waiting: a verdict doesn't wait
# for a draft step, a tail is continued with no catch-up before it, a commit that was right isn't done again.
ENGINE = {"running_step": "queued", "late_catch_up": True, "undo_again": False}


@dataclasses.dataclass
class Off:
    """The farthest that a start or an end of a verified window is from the simulated one."""

    ms: float = 0.0
    where: str = ""


@dataclasses.dataclass
class Arm:
    stages: int
    switches: Switches
    recording: Recording
    simulated: list[Window]
    off: Off  # with the time that a stage's programs last
    off_own: Off  # with the time that each of them lasted: what is left is not the devices'

    @property
    def ms(self) -> float:
        return actual(self.recording.windows) / len(self.recording.verified)

    @property
    def simulated_ms(self) -> float:
        return actual(self.simulated) / len(self.recording.verified)

    @property
    def ratio(self) -> float:
        bound = lower_bound(measured(self.recording.windows), max(1, self.switches.windows) - 1)
        return actual(self.recording.windows) / bound

    @property
    def passes(self) -> bool:
        bounded = (
            self.switches.spec_depth >= self.stages - 1
        )  # the bound knows guesses on all front stages only
        return self.off.ms <= AGREE * self.ms and (self.ratio <= BOUND or not bounded)


def compare(stages: int, switches: Switches, recording: Recording) -> Arm:
    rig = measured_rig(recording, cut=CUT_MS)
    fixed, own = (simulate(rig, switches, recording.verdicts(own_times)) for own_times in (False, True))
    return Arm(
        stages,
        switches,
        recording,
        fixed,
        farthest(recording.windows, fixed),
        farthest(recording.windows, own),
    )


def farthest(ours: list[Window], theirs: list[Window]) -> Off:
    """Over all verified windows; times count from the verdict before."""
    off, zero, origins = Off(), theirs[0].start_ms[0], (0.0, 0.0)
    pairs = zip((w for w in ours if w.verified), (w for w in theirs if w.verified), strict=True)
    for our, their in pairs:
        if (our.rows, our.fate) != (their.rows, their.fate):
            return Off(
                math.inf, f"window {our.id}: {our.fate} {our.rows}, simulated {their.fate} {their.rows}"
            )
        for stage in range(len(our.start_ms)):
            for a, b in ((our.start_ms, their.start_ms), (our.end_ms, their.end_ms)):
                ms = (a[stage] - origins[0]) - (b[stage] - zero - origins[1])
                if abs(ms) > off.ms:
                    off = Off(abs(ms), f"window {our.id} ({our.fate}) stage {stage} {ms:+.2f} ms")
        origins = our.verdict_ms, their.verdict_ms - zero
    return off


def decode(engine: Engine, text: list[int], switches: Switches) -> Arm:
    session = engine.session()
    session.start(text[:1], max_tokens=len(text) - 1, replay=text[1:])
    session.to_the_end()
    if session.tokens != text:
        raise SystemExit(f"another text, with {switches}")
    return compare(len(engine.stages), switches, recorded(engine.events()))


def best_of(tries: int, engine: Engine, text: list[int], switches: Switches) -> Arm:
    arms: list[Arm] = []
    while len(arms) < tries and not (arms and arms[-1].passes):
        arms.append(decode(engine, text, switches))
    return min(arms, key=lambda arm: (not arm.passes, arm.off.ms))


HEADER = (
    "stages windows | verified kept, rolled back/late/ended (simulated) | ms per window, simulated | "
    "off by, with own times | actual / lower bound of the same depth"
)


def fates(windows: list[Window]) -> str:
    return "/".join(str(sum(w.fate == fate for w in windows)) for fate in ("rolled back", "late", "ended"))


def row(asked: int, arm: Arm) -> str:
    verified = arm.recording.verified
    return (
        f"{arm.stages:6} {asked:7} | {len(verified):4} {sum(w.kept for w in verified):4}"
        f" {fates(arm.recording.windows):>8} ({fates(arm.simulated)}) | {arm.ms:7.2f} {arm.simulated_ms:7.2f}"
        f" | {arm.off.ms / arm.ms:6.2%} {arm.off_own.ms / arm.ms:6.2%} | {arm.ratio:.3f}"
        f" | {'' if arm.passes else 'FALLS SHORT: '}{arm.off.where}"
    )


def arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("model", nargs="?")
    options.add_argument("--stages", type=int, nargs="*", default=[2, 3, 4, 8])
    options.add_argument("--windows", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--tries", type=int, default=3)
    options.add_argument("--keep", type=float, default=0.9, help="q of replay:Q")
    options.add_argument(
        "--costs", default="draft=1", help="what else lasts: draft=1+commit=3 (no part of the bound)"
    )
    options.add_argument("--chain-ahead", action="store_true")
    options.add_argument("--overlap", action="store_true")
    options.add_argument("--spec-depth", type=int, default=32)
    return options.parse_args()


def main(asked: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(asked.model or f"{folder}/random.gguf")
        if asked.model is None:
            shape = Shape("qwen35", n_layers=max(asked.stages))
            write_model(model, shape, random_tensors(shape, "Q8_0"))
        return prove(model, asked)


def prove(model: Path, asked: argparse.Namespace) -> int:
    short, most = 0, max(asked.windows)
    with Engine.open(model, draft="none", events=False) as plain:
        text = [1, *plain.session().generate([1], max_tokens=asked.tokens, ignore_eos=True)]
    print(HEADER)
    for stages in asked.stages:
        with Engine.open(
            model,
            devices=[f"even:{WINDOW_MS / stages:g}+{asked.costs}"] * stages,
            pipeline_max=most,
            draft=f"replay:{asked.keep}",
            draft_max=3,
            theta=0.0,
            chain_ahead=asked.chain_ahead,
            overlap=asked.overlap,
            spec_depth=asked.spec_depth,
        ) as engine:
            for windows in asked.windows:
                switches = Switches(
                    windows=0 if windows == 1 else min(windows, stages),  # there are no prompt windows
                    first_rows=1,
                    allocated=min(most, stages),
                    overlap=asked.overlap,
                    chain_ahead=asked.chain_ahead,
                    spec_depth=asked.spec_depth,
                    tokens=asked.tokens,
                    **ENGINE,
                )
                engine.switches.pipeline_windows = windows
                arm = best_of(asked.tries, engine, text, switches)
                short += not arm.passes
                print(row(windows, arm), flush=True)
    print(f"{short} arms fall short")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(arguments()))
