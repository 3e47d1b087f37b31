"""Serial against overlapped hand-off, two CPU stages pinned to two cores, in one process: overlap.py [MODEL]

Arms off, on, off in every round: ms per window with its spread, the text compared; what of the difference is
sync and launch, from the events; prefill with the overlap off and on.
"""

import statistics
import sys
from typing import Any

import numpy as np

from strata_tui import Engine
from strata_tui.engine import cpu_info
from strata_tui.events import Kind

PROMPT = (
    "It was a cold, bright evening in November, and the train from London was an hour late. In the corner"
)
ROUNDS, TOKENS = 7, 256
HOST = (Kind.sync, Kind.launch, Kind.stage_inputs, Kind.verdict)


def run(engine: Engine, overlap: bool, prompt: list[int], n: int) -> dict[str, Any]:
    engine.switches.overlap = overlap
    engine.events()
    session = engine.session()
    tokens = list(session.generate(prompt, max_tokens=n, ignore_eos=True))
    events, stats = engine.events(), session.stats()
    per_window = {
        kind.name: float(events["dur_ns"][events["kind"] == kind].sum()) / 1e3 / max(1, stats["windows"])
        for kind in HOST
    }
    return {
        "tokens": tokens,
        "ms": stats["window_ns"] / stats["windows"] / 1e6,
        "prefill": stats["prefill_rows"] / stats["prefill_ns"] * 1e9,
        **per_window,
    }


def show(name: str, runs: list[dict[str, Any]]) -> None:
    ms = [run["ms"] for run in runs]
    spread = f"{statistics.median(ms):7.3f} ms per window ({min(ms):.3f} - {max(ms):.3f})"
    host = {kind.name: statistics.median(run[kind.name] for run in runs) for kind in HOST}
    print(f"  {name:<8} {spread}; host: {', '.join(f'{key} {us:.0f} us' for key, us in host.items())}")


def main(model: str | None) -> None:
    with Engine.open(
        model, devices=[f"cpu:1@{core}" for core in cpu_info()["cores"][:2]], chunk=512
    ) as engine:
        prompt = engine.tokens_of(PROMPT)
        arms: dict[str, list[dict[str, Any]]] = {"off": [], "on": [], "off again": []}
        run(engine, False, prompt, 64)
        for _ in range(ROUNDS):
            for name in arms:
                arms[name].append(run(engine, name == "on", prompt, TOKENS))
        texts = {tuple(r["tokens"]) for runs in arms.values() for r in runs}
        print(f"{engine.model.file_name}: {ROUNDS} rounds of {TOKENS} tokens; texts equal: {len(texts) == 1}")
        for name, runs in arms.items():
            show(name, runs)
        rng = np.random.default_rng(1)
        for n in (1000, 3000):
            long = rng.integers(1, engine.n_vocab, n).tolist()
            rates: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(3):
                for overlap in rates:
                    rates[overlap].append(run(engine, overlap, long, 1)["prefill"])
            shown = ", ".join(f"{'on' if o else 'off'} {statistics.median(r):,.0f}" for o, r in rates.items())
            print(f"  prefill of {n} tokens, tok/s: {shown}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
