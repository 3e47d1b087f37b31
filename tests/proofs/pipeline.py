"""Two stages pinned to two cores, windows in flight 0 and 2, chains ahead and forced: pipeline.py [ROUNDS]

Arms are interleaved; the texts of a prompt are compared. Prints medians and their spread.
"""

import statistics
import sys

from strata_tui import Engine
from strata_tui.engine import cpu_info

TOKENS = 256
PROMPTS = {
    "prose": "Once upon a time there was a poor miller who had three daughters, and the youngest of them",
    "code": "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return",
    "copy": "Copy this list.\n"
    + "1. bread\n2. salt\n3. butter\n4. eggs\n5. milk\n6. honey\n" * 4
    + "1. bread\n",
}
ARMS = {
    "0": {"pipeline_windows": 0, "chain_ahead": True},
    "2, chain ahead": {"pipeline_windows": 2, "chain_ahead": True},
    "2, chain forced": {"pipeline_windows": 2, "chain_ahead": False},
}


def main() -> int:
    """The measurement."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    cores = cpu_info()["cores"][:2]
    devices = [f"cpu:1@{core}" for core in cores]
    same = True
    with Engine.open(stages=2, devices=devices, pipeline_max=2, events=False) as engine:
        for name, prompt in PROMPTS.items():
            texts, runs = set(), {arm: [] for arm in ARMS}
            for _ in range(rounds):
                for arm, switches in ARMS.items():
                    engine.set_switches(switches)
                    session = engine.session()
                    texts.add(tuple(session.generate(prompt, TOKENS, ignore_eos=True)))
                    runs[arm].append(session.stats())
            same &= len(texts) == 1
            print(f"{name}: {rounds} rounds of {TOKENS} tokens, texts equal: {len(texts) == 1}")
            for arm, stats in runs.items():
                print("  " + line(arm, stats))
    return 0 if same else 1


def line(arm: str, runs: list[dict]) -> str:
    """One arm."""

    def spread(values: list[float], form: str) -> str:
        return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"

    ms = spread([s["window_ns"] / s["windows"] / 1e6 for s in runs], ".2f")
    per_window = statistics.median(s["generated"] / s["windows"] for s in runs)
    rate = spread([s["generated"] / s["window_ns"] * 1e9 for s in runs], ".0f")
    text = f"windows {arm:16}: {ms} ms per window, {per_window:.2f} tokens per window, {rate} tok/s"
    total = {key: sum(s["guesses"][key] for s in runs) for key in runs[0]["guesses"]}
    if not total["built"]:
        return text
    classes = [
        f"{sum(s['window_ns_by_class'][k] for s in runs) / n / 1e6:.2f} ms x {n}"
        if (n := sum(s["windows_by_class"][k] for s in runs))
        else "none"
        for k in range(3)
    ]
    missed = total["bonus_wrong"] + total["draft_wrong"]
    return (
        f"{text}\n    fresh {classes[0]}, kept after fresh {classes[1]}, kept after kept {classes[2]}"
        f"\n    launched {total['launched']}, kept {total['kept']}, rolled back {total['rolled_back']}, "
        f"gated {total['gated']}, late {total['late']}, ended {total['ended']}"
        f"\n    of {missed} misses: drafts wrong {total['draft_wrong']}, bonus wrong {total['bonus_wrong']} "
        f"(second choice right in {total['second_choice_right']})"
    )


if __name__ == "__main__":
    sys.exit(main())
