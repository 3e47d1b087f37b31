"""An arm of a bench: a name and a whole run's options. Which arms share an engine, which share a text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from strata_tui.errors import BadInput
from strata_tui.options import Placement, RunOptions

DEFAULT_ARMS = (
    "serial: --no-overlap --pipeline-windows 0",
    "overlap: --overlap --pipeline-windows 0",
    "pipeline: --no-overlap --pipeline-windows 2",
    "overlap + pipeline: --overlap --pipeline-windows 2",
)


@dataclass(frozen=True)
class Arm:
    """One way to compute the text; `flags` are those that it was asked for with."""

    name: str
    flags: str
    options: RunOptions

    @property
    def placement(self) -> Placement:
        return self.options.placement

    @property
    def replays(self) -> bool:
        """Are drafts taken from the text itself?"""
        return str(self.options.switches.get("draft")).startswith("replay")

    @property
    def asked(self) -> dict[str, Any]:
        """Placement and switches as JSON has them: what a former bench must have had too."""
        asked = {
            "placement": dataclasses.asdict(self.placement),
            "switches": dict(self.options.switches),
        }
        plain: dict[str, Any] = json.loads(json.dumps(asked))
        return plain


def name_and_flags(text: str) -> tuple[str, str]:
    """`NAME: flags` -> both; the flags may be none."""
    name, colon, flags = text.partition(":")
    name = name.strip()
    if not colon or not name or not name.isprintable() or len(name) > 60:
        raise BadInput(f"--arm: expected NAME: flags, as in 'overlap: --overlap', got {text[:80]!r}")
    return name, flags.strip()


def sharing_engines(arms: Sequence[Arm]) -> list[Arm]:
    """Arms whose placements differ only in the windows in flight that are allocated get the largest of them.

    Equal placements are one engine then: what differs between such arms are live switches alone.
    """
    most: dict[Placement, int] = {}
    for arm in arms:
        bare = replace(arm.placement, pipeline_max=None)
        most[bare] = max(most.get(bare, 0), arm.placement.pipeline_max or 0)
    shared = []
    for arm in arms:
        bare = replace(arm.placement, pipeline_max=None)
        placement = replace(bare, pipeline_max=most[bare])
        shared.append(replace(arm, options=replace(arm.options, placement=placement)))
    return shared
