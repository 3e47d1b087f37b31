"""The switches in force, with the placement they were tried on, as a run profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strata_tui.engine import Engine
    from strata_tui.options import RunOptions

KEPT = ("overlap", "pipeline_windows", "draft", "draft_max", "draft_min_p", "theta", "short_read", "rate")
"""Not the test switches: what they do is no setting."""


def profile_of(options: RunOptions, engine: Engine, name: str, switches: Mapping[str, Any]) -> str:
    """TOML that `--profile` reads; stages, devices and sampling are those of this run.

    Args:
        name: of the profile.
        switches: in force, by name.
    """
    from dataclasses import asdict

    from strata_tui.options import Profile
    from strata_tui.profile_text import profile_text

    placement = options.placement
    devices = placement.devices
    rig = devices[0].rig if devices is not None and len(devices) == 1 else None
    split = tuple(stage.first_layer for stage in engine.stages[1:])
    profile = Profile(
        name=name,
        description=f"switches in force in the console, with {engine.model.file_name}",
        context=engine.context,
        kv=placement.kv,
        chunk=placement.chunk,
        stages=None if split else 1,
        split=split or None,
        devices=devices,
        threads=placement.threads,
        rig=rig,
        switches={key: switches[key] for key in KEPT if key in switches},
        sampling=asdict(options.sampling),
    )
    return profile_text(profile)
