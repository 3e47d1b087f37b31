"""An arm: one way to compute a text. Its factors, and which of their combinations mean anything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from strata_tui.errors import BadInput

ALL_FRONT_STAGES = 32  # of the switch spec_depth
REPLAY = "replay:0.8"  # dials the keep rate where a file's own drafter can't


Text = tuple[str, str, str]  # prompt, sampling, ending


class Arm(NamedTuple):
    """One combination of factor values; the fields from `overlap` to `chain_ahead` are live switches."""

    stages: int
    overlap: bool
    pipeline_windows: int
    draft: str
    draft_max: int
    theta: float
    force_miss: int
    spec_depth: int
    chain_ahead: bool
    sampling: str
    prompt: str
    ending: str  # what ends the text: a limit, or an end token (amid a window)

    @property
    def switches(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SWITCHES}

    @property
    def text(self) -> Text:
        """What is computed, as opposed to how."""
        return self.prompt, self.sampling, self.ending

    @property
    def guesses(self) -> bool:
        """Are guesses built here?"""
        return self.pipeline_windows >= 2 and self.draft != "none"

    @property
    def launches(self) -> bool:
        """Do guesses get past the gate and onto a front stage?"""
        return self.guesses and self.theta <= 1 and self.spec_depth > 0

    @property
    def may_keep(self) -> bool:
        return self.launches and self.force_miss != 1

    @property
    def drafts_go_on(self) -> bool:
        """Are drafts made from the text beyond an end token, often enough right to be accepted?"""
        return self.draft == REPLAY and self.draft_max > 1

    @property
    def reaches_part(self) -> bool:
        """Are guesses held back on the first of several front stages?"""
        return self.launches and self.spec_depth < self.stages - 1

    @property
    def name(self) -> str:
        parts = [f"{self.stages} stage" + "s" * (self.stages > 1), "overlap" if self.overlap else "serial"]
        if self.pipeline_windows:
            parts.append(f"{self.pipeline_windows} in flight")
        parts.append(f"{self.draft} x{self.draft_max}" if self.draft != "none" else "no drafts")
        if self.guesses:
            parts.append(f"theta {self.theta:g}")
            if self.force_miss:
                parts.append(f"miss 1/{self.force_miss}")
            if self.spec_depth < ALL_FRONT_STAGES:
                parts.append(f"depth {self.spec_depth}")
            if not self.chain_ahead:
                parts.append("forced chain")
        parts += [self.sampling, self.prompt]
        return ", ".join([*parts, "end token"] if self.ending == "token" else parts)


SWITCHES = Arm._fields[1:9]
Factors = Mapping[str, Sequence[Any]]
"""By field of Arm: its values. Where a factor has no effect arms have its first one: each exists once."""

TRIPLES = (
    ("stages", "pipeline_windows", "force_miss"),
    ("stages", "pipeline_windows", "spec_depth"),
)
"""What is covered three by three, beside all pairs."""


def factors(n_layers: int, has_draft_layer: bool, fixed: Mapping[str, Any]) -> Factors:
    """The matrix for a model, factors that a user has `fixed` at their one value."""
    stages = range(1, min(4, n_layers) + 1)
    values = {
        "stages": tuple(stages),
        "overlap": (False, True),
        "pipeline_windows": (0, 1, *range(2, len(stages) + 1)),
        "draft": ("mtp",) * has_draft_layer + ("lookup", "none", REPLAY),
        "draft_max": (4, 1, 2, 7),
        "theta": (0.2, 0.0, 2.0),
        "force_miss": (0, 1, 3),
        "spec_depth": (ALL_FRONT_STAGES, 0, 1, 2),
        "chain_ahead": (True, False),
        "sampling": ("greedy", "sampled"),
        "prompt": ("prose", "code", "copy"),
        "ending": ("limit", "token"),
    }
    return {name: (fixed[name],) if name in fixed else options for name, options in values.items()}


def impossible(arm: Arm, factors: Factors) -> str:
    """Why there is no such arm; "" if there is: it can't be run, or is another arm by another name."""

    def rests(*names: str) -> bool:
        return all(getattr(arm, name) == factors[name][0] for name in names)

    if arm.overlap and arm.stages == 1:
        return "one stage has no hand-off to overlap"
    if arm.pipeline_windows > arm.stages:
        return "windows in flight are clamped to the stages"
    if arm.pipeline_windows and arm.stages == 1:
        return "one stage has nothing to guess ahead on"
    if arm.pipeline_windows == 1 and arm.stages != 2:
        return "one window in flight means two stages"
    if arm.draft == "none" and not rests("draft_max"):
        return "without drafts there is no length of them"
    if not arm.guesses and not rests("theta", "force_miss", "spec_depth"):
        return "without guesses there is nothing to gate, miss or hold back"
    if (not arm.guesses or arm.draft == "lookup") and not rests("chain_ahead"):
        return "no chain of drafts runs on behind a guess"
    if arm.theta > 1 and not rests("force_miss", "spec_depth", "chain_ahead"):
        return "what is gated neither misses nor is held back, nor is it kept"
    if not rests("spec_depth") and arm.spec_depth >= arm.stages - 1:
        return "no stage is left to be held back from"
    return ""


def product(factors: Factors) -> Iterator[Arm]:
    """Every arm that there is, in the order of the factors' values."""
    *how, samplings, prompts, endings = (factors[name] for name in Arm._fields)
    texts = list(itertools.product(samplings, prompts, endings))
    for values in itertools.product(*how):
        if not impossible(Arm._make([*values, *texts[0]]), factors):  # whatever the text
            yield from (Arm._make([*values, *text]) for text in texts)


def all_arms(factors: Factors) -> list[Arm]:
    """Raises BadInput if the fixed factors leave none."""
    arms = list(product(factors))
    if not arms:
        fixed = {name: values[0] for name, values in factors.items() if len(values) == 1}
        why = impossible(Arm(*(factors[name][0] for name in Arm._fields)), factors)
        given = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in fixed.items())
        raise BadInput(f"check: expected options that leave an arm to run, got {given}: {why}")
    return arms
