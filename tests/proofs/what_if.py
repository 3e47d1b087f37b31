"""Predicted from a run with one setting against measured with another: what_if.py [--real]

Each pair is recorded with the first setting, predicted for the second and measured with it, interleaved, so
often as --repeats says; medians count. Even devices (emulated: programs last a fixed time; tokens and
verdicts are real) must agree within 5 % in ms per window; two real CPU stages within 10 %. More real stages
than cores are only reported.

A busy machine is late by itself: `chrt -r 10` in front keeps other work from getting in between.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from strata_tui import Engine
from strata_tui.analysis.passages import last_text
from strata_tui.analysis.what_if import Setting, WhatIf

PROMPT = "def read_lines(path):\n"
EVEN = "even:{ms:g}+commit=0.4+draft=1"
WINDOW_MS = 60.0  # of all stages


@dataclass(frozen=True)
class Pair:
    devices: tuple[str, ...]
    recorded: dict[str, Any]
    other: dict[str, Any]
    draft: str = "mtp"
    within: float = 0.05  # 0: reported only


def even(*shares: float) -> tuple[str, ...]:
    return tuple(EVEN.format(ms=WINDOW_MS * share) for share in shares)


CARDS_2, CARDS_4 = ("paced:rx7900xtx-2x",) * 2, ("paced:rx7900xt-4x",) * 4
TWO, THREE, FOUR = even(0.5, 0.5), even(0.3, 0.3, 0.4), even(0.2, 0.2, 0.25, 0.35)
SERIAL = {"pipeline_windows": 0, "theta": 0.0}


def guesses(n: int, **other: Any) -> dict[str, Any]:
    return {"pipeline_windows": n, "theta": 0.0, **other}


EMULATED = [
    Pair(TWO, SERIAL, {**SERIAL, "overlap": True}),
    Pair(TWO, SERIAL, guesses(2)),
    Pair(TWO, guesses(2), SERIAL),
    Pair(TWO, guesses(2), guesses(2, theta=0.5)),
    Pair(TWO, SERIAL, {**SERIAL, "draft_max": 1}),
    Pair(THREE, SERIAL, guesses(3), "replay:0.9"),
    Pair(THREE, guesses(2), guesses(3)),
    Pair(THREE, guesses(3), guesses(3, chain_ahead=True), "replay:0.9"),
    Pair(FOUR, SERIAL, guesses(4), "replay:0.9"),
    Pair(FOUR, guesses(4), SERIAL, "replay:0.8"),
    Pair(FOUR, guesses(4), guesses(2, draft_max=2)),
    Pair(FOUR, guesses(2), guesses(4, overlap=True), "replay:0.9"),
    Pair(CARDS_2, SERIAL, {**SERIAL, "overlap": True}),
    Pair(CARDS_2, {**SERIAL, "overlap": True}, SERIAL),
    Pair(CARDS_2, guesses(2), SERIAL),
    Pair(CARDS_4, SERIAL, {**SERIAL, "overlap": True}),
    Pair(CARDS_4, guesses(4), SERIAL, "replay:0.8"),
]
CORES = sorted(os.sched_getaffinity(0))[:2]
ANYWHERE, PINNED = ("cpu:1",) * 2, tuple(f"cpu:1@{core}" for core in CORES)
REAL = [
    *(
        Pair(devices, recorded, other, within=0.1)
        for devices in (ANYWHERE, PINNED)
        for recorded, other in (
            (SERIAL, {**SERIAL, "overlap": True}),
            (SERIAL, guesses(2)),
            (guesses(2), SERIAL),
            (SERIAL, {**SERIAL, "draft_max": 1}),
        )
    ),
    Pair(("cpu:1",) * 4, SERIAL, guesses(4), within=0),
]


def run(
    engine: Engine, tokens: int, setting: dict[str, Any]
) -> tuple[Any, Setting, dict[str, Any], list[int]]:
    """Events of the text, the setting in force, counters, tokens."""
    engine.set_switches({"overlap": False, "draft_max": 3, "chain_ahead": False, **setting})
    session = engine.session()
    prompt = engine.tokens_of(PROMPT)
    request: dict[str, Any] = {"max_tokens": tokens}
    replay = session.record_plain(prompt, **request) if engine.switches.draft.startswith("replay") else []
    engine.events()
    prefer_the_host()
    session.start(prompt, replay=replay, **request)
    session.to_the_end()
    in_force = Setting.of(engine.switches.in_force(), allocated=engine.pipeline_max)
    return last_text(engine.events()), in_force, session.stats(), session.tokens


def prefer_the_host() -> None:
    """Under a real-time policy nobody makes way for a thread that wakes up; the usual policy sees to it.

    The session's thread was made last, the draft layer's before it.
    """
    if os.sched_getscheduler(0) == os.SCHED_RR:
        draft, control = sorted(int(name) for name in os.listdir("/proc/self/task"))[-2:]
        os.sched_setscheduler(control, os.SCHED_RR, os.sched_param(20))
        os.sched_setscheduler(draft, os.SCHED_RR, os.sched_param(15))


def compare(pair: Pair, model: Path | None, tokens: int, repeats: int) -> tuple[float, float, float, str]:
    """ms per window with the first setting, predicted and measured with the second; the basis."""
    first, predicted, measured, basis = [], [], [], ""
    with Engine.open(
        model, devices=list(pair.devices), pipeline_max=len(pair.devices), draft=pair.draft
    ) as engine:
        for _ in range(repeats):
            events, recorded, stats, text = run(engine, tokens, pair.recorded)
            first.append(stats["window_ns"] / stats["windows"] / 1e6)
            _, setting, stats, again = run(engine, tokens, pair.other)
            if again != text:
                raise SystemExit(f"another text: {pair}")
            prediction = WhatIf(
                events, len(pair.devices), recorded, engine.shared_cores, engine.hand_offs
            ).predict(setting)
            predicted.append(prediction.ms_per_window)
            measured.append(stats["window_ns"] / stats["windows"] / 1e6)
            basis = "; ".join(prediction.basis[1:])
    return median(first), median(predicted), median(measured), basis


def name(setting: dict[str, Any]) -> str:
    n = setting["pipeline_windows"]
    others = [
        f"{key} {value:g}" for key, value in setting.items() if key not in ("pipeline_windows",) and value
    ]
    return " ".join([f"{n} in flight" if n else "serial", *others])


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("model", nargs="?", type=Path)
    options.add_argument("--tokens", type=int, default=200)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--only", choices=("emulated", "real"))
    options.add_argument("--pairs", type=int, nargs="*", help="numbers of those to run")
    options.add_argument("--tries", type=int, default=2, help="a pair that falls short is run again")
    asked = options.parse_args()
    pairs = [*enumerate([*EMULATED, *REAL])]
    if asked.only:
        pairs = pairs[: len(EMULATED)] if asked.only == "emulated" else pairs[len(EMULATED) :]
    short = 0
    print("stages | recorded with -> predicted for | ms per window: recorded, predicted, measured | off by")
    for number, pair in pairs:
        if asked.pairs and number not in asked.pairs:
            continue
        for _ in range(asked.tries):
            recorded, predicted, measured, basis = compare(pair, asked.model, asked.tokens, asked.repeats)
            off = predicted / measured - 1
            missed = pair.within > 0 and abs(off) > pair.within
            if not missed:
                break
        short += missed
        kind = pair.devices[0].split(":")[0] + ("@" if "@" in pair.devices[0] else "")
        arms = f"{name(pair.recorded)} -> {name(pair.other)}"
        print(
            f"{number:2} {len(pair.devices)} {kind:4} {pair.draft:10} | {arms}"
            f" | {recorded:7.2f} {predicted:7.2f} {measured:7.2f} | {off:+6.1%}"
            f"{' FALLS SHORT' if missed else ''} | {basis}",
            flush=True,
        )
    print(f"{short} pairs fall short")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
