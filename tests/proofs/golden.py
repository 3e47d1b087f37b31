"""Golden texts of the embedded model, plain decoding on one stage: golden.py [--write]

A new build's serial text equals the last one's. Without --write the texts are compared with
tests/data/golden.json; with it they are written there, which a change of model, prompts or arithmetic needs,
and its commit explains.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from strata_tui import Engine, Sampling
from strata_tui.check.texts import PROMPTS, SAMPLED

FILE = Path(__file__).parents[1] / "data" / "golden.json"
N = 256
TEXTS = {
    "prose": (PROMPTS["prose"], Sampling()),
    "code": (PROMPTS["code"], Sampling()),
    "copy": (PROMPTS["copy"], Sampling()),
    "sampled": (PROMPTS["prose"], SAMPLED),
}


def plain_engine(**how: Any) -> Engine:
    return Engine.open(None, stages=1, draft="none", events=False, **how)


def decode(engine: Engine, tokens: list[int], sampling: Sampling, n: int = N) -> list[int]:
    return list(engine.session().generate(tokens, max_tokens=n, sampling=sampling, ignore_eos=True))


def read() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


def make() -> dict[str, Any]:
    with plain_engine() as engine:
        texts = {}
        for name, (prompt, sampling) in TEXTS.items():
            ids = engine.tokens_of(prompt)
            texts[name] = {
                "prompt": prompt,
                "sampling": dataclasses.asdict(sampling),
                "prompt_ids": ids,
                "token_ids": decode(engine, ids, sampling),
            }
        return {
            "model_sha256": engine.model.sha256,
            "numerics": engine.stages[0].numerics,
            "texts": texts,
        }


def lines(value: dict[str, Any]) -> str:
    """JSON with each list on a line of its own: a diff shows which text has changed."""
    texts = value["texts"]
    shown = json.dumps({**value, "texts": {name: "@" + name for name in texts}}, indent=1)
    for name, text in texts.items():
        fields = ",\n".join(f"   {json.dumps(key)}: {json.dumps(field)}" for key, field in text.items())
        shown = shown.replace(f'"@{name}"', "{\n" + fields + "\n  }")
    return shown + "\n"


def main() -> int:
    made = make()
    if "--write" in sys.argv[1:]:
        if made["numerics"] != "fma16":
            print(f"expected kernels with fused multiply-add, this machine has {made['numerics']}")
            return 2
        FILE.write_text(lines(made))
        print(f"{FILE.name}: {len(made['texts'])} texts of {N} tokens")
        return 0
    same = made == read()
    print(f"{len(made['texts'])} texts of {N} tokens: {'equal' if same else 'NOT equal'} to {FILE.name}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
