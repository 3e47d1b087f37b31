"""The text of every arm against plain decoding on one stage: arms.py [MODEL.gguf]

Every value of stages, threads, overlap, drafts and their length, chunk size, K/V type and instruction set,
greedy and sampled; token ids and the state left behind.
"""

import itertools
import sys
from typing import Any

from strata_tui import Engine, Sampling
from strata_tui.engine import cpu_info

PROMPT = (
    "The lighthouse keeper had not spoken to anyone for three weeks when, on the morning of the storm, "
    "he heard a knock. "
) * 3
N = 256


def text(
    model: str | None, sampling: Sampling, placement: dict[str, Any], switches: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    with Engine.open(model, events=False, **placement, **switches) as engine:
        session = engine.session()
        tokens = list(session.generate(PROMPT, max_tokens=N, sampling=sampling, ignore_eos=True))
        return (tokens, session.fingerprint()["layers"]), session.stats()


def arms(has_draft_layer: bool) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    drafts = ["mtp", "lookup", "none"] if has_draft_layer else ["lookup", "none"]
    pairs = [
        ({"stages": s, "threads": t}, {"overlap": o, "draft": d, "draft_max": 1 + (s + t + o) % 7})
        for s, t, o, d in itertools.product((1, 2, 3, 4), (1, 2), (False, True), drafts)
    ]
    pairs += [({"stages": 2}, {"overlap": True, "draft": drafts[0], "draft_max": n}) for n in range(1, 8)]
    chunks = itertools.product((1, 3), (16, 64, 512))
    pairs += [({"stages": s, "chunk": c}, {"short_read": 0}) for s, c in chunks]
    return pairs


def main(model: str | None) -> int:
    failed = 0
    with Engine.open(model, events=False) as engine:
        has_draft_layer = engine.has_draft_layer
    for kv, (name, sampling) in itertools.product(
        ("f16", "f32"), (("greedy", Sampling()), ("--temp 0.8 --seed 7", Sampling(temperature=0.8, seed=7)))
    ):
        plain, _ = text(model, sampling, {"stages": 1, "kv": kv}, {"draft": "none"})
        again, _ = text(model, sampling, {"stages": 1, "kv": kv}, {"draft": "none"})
        assert plain == again, "the serial arm differs from itself"
        count = drafted = accepted = 0
        todo = arms(has_draft_layer)
        isas = [isa for isa in cpu_info()["isas"] if isa != "portable"]
        todo += [({"stages": 2, "isa": isa}, {"overlap": True}) for isa in isas]
        for placement, switches in todo:
            got, stats = text(model, sampling, {**placement, "kv": kv}, switches)
            count += 1
            if switches.get("draft") == "mtp" and switches["draft_max"] == 4:
                drafted += stats["drafted_per_position"][0]
                accepted += stats["accepted_per_position"][0]
            if got != plain:
                failed += 1
                print(f"DIFFERS: kv {kv}, {name}: {placement} {switches}")
        share = f"; first drafts accepted {accepted / drafted:.0%}" if drafted else ""
        print(f"kv {kv}, {name}: {count} arms against plain decoding, {len(plain[0])} tokens each{share}")
    print(f"{failed} arms differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
