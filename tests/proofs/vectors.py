"""A model file against its oracle, float32 on the dequantised weights: vectors.py MODEL.gguf VECTORS.json

Prints the share of positions whose argmax agrees, for the trunk and the draft layer; chains of drafts, top-5
logits and greedy tokens.
"""

import json
import sys

import numpy as np

from strata_tui import Engine


def main(model: str, vectors: str) -> None:
    with open(vectors) as file:
        prompts = json.load(file)["prompts"]
    with Engine.open(model, kv="f32", draft="none", events=False) as engine:
        trunk = draft = chain = greedy = total = 0
        worst_logit = 0.0
        for prompt in prompts:
            ids, text = prompt["ids"], prompt["greedy64"]
            # The draft layer's last pair takes the first greedy token.
            arrays = engine.eval([*ids, text[0]])
            logits = arrays["logits"][: len(ids)]
            trunk += int((logits.argmax(-1) == prompt["argmax"]).sum())
            draft += int((arrays["nextn_logits"].argmax(-1) == prompt["mtp_argmax"]).sum())
            total += len(ids)
            off = np.abs(logits[-1][prompt["last_top5_ids"]] - prompt["last_top5_logits"]).max()
            worst_logit = max(worst_logit, float(off))
            written = list(engine.session().generate(ids, max_tokens=64))
            same = [a == b for a, b in zip(written, text, strict=True)]
            greedy += same.index(False) if False in same else 64
            engine.switches.draft, engine.switches.draft_max = "mtp", 4
            chain += first_chain(engine, ids, prompt["mtp_draft4_after_first_greedy"])
            engine.switches.draft = "none"
    print(f"{engine.model.file_name}: trunk argmax {trunk} / {total}, draft layer's argmax {draft} / {total}")
    print(f"  chains of 4: {chain} / {4 * len(prompts)} drafts equal; top-5 logits off by {worst_logit:.3f}")
    print(f"  greedy tokens equal before the first that differs: {greedy} / {64 * len(prompts)}")


def first_chain(engine: Engine, ids: list[int], expected: list[int]) -> int:
    """How many of the first four drafts, in order, are the oracle's."""
    from strata_tui.events import Kind, WindowFate

    engine.tracing = True
    engine.events()
    list(engine.session().generate(ids, max_tokens=6))
    events = engine.events()
    engine.tracing = False
    of_prompt = events[(events["kind"] == Kind.window) & (events["b"] == WindowFate.prompt)]["window"]
    drafts = events[(events["kind"] == Kind.draft_token) & ~np.isin(events["window"], of_prompt)]
    drafts = drafts[drafts["window"] == drafts["window"].min(initial=1 << 31)]
    first = drafts[np.argsort(drafts["rows"])]["a"].tolist()
    return sum(a == b for a, b in zip(first, expected, strict=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
