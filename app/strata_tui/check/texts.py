"""What the arms compute: prompts, and how tokens are picked."""

from __future__ import annotations

from dataclasses import replace

from strata_tui.options import GREEDY, Sampling

PROMPTS = {
    # Short enough to be read through windows.
    "prose": (
        "The lighthouse keeper had not spoken to anyone for three weeks when, on the morning of the storm, he"
    ),
    # Longer: read in chunks.
    "code": '''class Queue:
    """First in, first out."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []

    def push(self, item):
        if len(self.items) == self.capacity:
            raise OverflowError("queue is full")
        self.items.append(item)

    def pop(self):
''',
    # The text goes on with what stands in the prompt already.
    "copy": (
        "apple, pear, plum, cherry, quince, medlar, walnut, almond, hazel, elder, sorb, bullace;\n" * 4
        + "apple, pear, plum, cherry,"
    ),
}

SAMPLED = Sampling(temperature=0.8, top_p=0.95, repeat_penalty=1.05, seed=7)


def samplings(seed: int | None = None, only: Sampling | None = None) -> dict[str, Sampling]:
    """By name, as arms say it.

    Args:
        seed: of the sampled one.
        only: what is asked for instead of the two.
    """
    if only is not None:
        return {"greedy" if only.temperature == 0 else "sampled": only}
    return {"greedy": GREEDY, "sampled": SAMPLED if seed is None else replace(SAMPLED, seed=seed)}
