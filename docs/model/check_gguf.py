"""check_gguf.py MODEL.gguf VECTORS.json: the reference, on a file's dequantised weights, against vectors.

Needs the PyPI packages gguf, numpy and torch. A vector file holds, for each prompt: `ids`, the argmax after
each of them, the draft block's argmax, the five largest logits after the last, and 64 greedy tokens.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from names import from_gguf
from torch import Tensor
from transforms import from_file

from reference import Reference

GREEDY_TOKENS = 64


def load(path: str) -> dict[str, Tensor]:
    """The weights of a GGUF file of any type that gguf-py can dequantise, with Hugging Face's names."""
    weights = {}
    for tensor in gguf.GGUFReader(path).tensors:
        values = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        name = from_gguf(tensor.name)
        weights[name] = from_file(name, torch.from_numpy(values)).contiguous()
    return weights


@torch.no_grad()
def check(model: Reference, prompt: dict) -> str:
    """One line on how far the model agrees with the stored vectors of a prompt."""
    ids, state = prompt["ids"], model.new_state()
    hidden, logits = model.trunk(torch.tensor([ids]), state)
    top = zip(prompt["last_top5_ids"], prompt["last_top5_logits"], strict=True)
    off = max(abs(float(logits[0, -1, token]) - value) for token, value in top)
    picks = logits[0].argmax(-1).tolist()

    greedy = [picks[-1]]
    _, draft_logits, _ = model.draft(torch.tensor([ids[1:] + greedy]), hidden, None, 1)
    drafts = draft_logits[0].argmax(-1).tolist()
    while len(greedy) < GREEDY_TOKENS:
        _, logits = model.trunk(torch.tensor([greedy[-1:]]), state)
        greedy.append(int(logits[0, -1].argmax()))

    def equal(ours: list[int], key: str) -> str:
        same = sum(a == b for a, b in zip(ours, prompt[key], strict=True))
        return f"{key} {same}/{len(ours)}"

    parts = [equal(picks, "argmax"), equal(drafts, "mtp_argmax"), equal(greedy, "greedy64")]
    return f"{prompt['name']}: logits off by {off:.1e}, {', '.join(parts)}"


def main() -> None:
    model = Reference(load(sys.argv[1]))
    for prompt in json.loads(Path(sys.argv[2]).read_text())["prompts"]:
        print(check(model, prompt))


if __name__ == "__main__":
    main()
