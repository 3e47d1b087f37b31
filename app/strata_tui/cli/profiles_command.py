"""strata-tui profiles: the run profiles that ship."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from strata_tui.errors import BadInput
from strata_tui.options import Profile
from strata_tui.placement import DEFAULT_STAGES
from strata_tui.profile import load_profile, shipped_profiles


def _stages(profile: Profile) -> int:
    """As `place` counts them, on a model with layers enough."""
    if profile.stages is not None:
        return profile.stages
    if profile.split is not None:
        return len(profile.split) + 1
    devices = len(profile.devices or ())
    return devices if devices > 1 else DEFAULT_STAGES


def _about(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "description": profile.description,
        "stages": _stages(profile),
        "stage_per_numa_node": profile.per_node,
        "emulated": any(device.emulated for device in profile.devices or ()),
        "sources": list(profile.sources),
        "switches": profile.switches,
    }


def _lines(about: dict[str, Any]) -> list[str]:
    n = about["stages"]
    stages = "a stage per NUMA node" if about["stage_per_numa_node"] else f"{n} stage{'s' if n > 1 else ''}"
    kind = "emulated: real tokens, that rig's times" if about["emulated"] else "real: this machine's times"
    return [about["description"], f"{stages}; {kind}", *(f"source: {source}" for source in about["sources"])]


def _print_recorded(recording: Path, write: str | None) -> None:
    from dataclasses import replace

    from strata_tui.profile_text import profile_path, profile_text
    from strata_tui.record.reading import open_recording
    from strata_tui.record.recorded_rig import profile_of

    path = profile_path(write) if write is not None else None
    profile, comments = profile_of(open_recording(recording))
    if path is None:
        click.echo(profile_text(profile, comments), nl=False)
        return
    path.write_text(profile_text(replace(profile, name=path.stem), comments), encoding="utf-8")
    click.echo(f"{path}: try it with --profile {path}", err=True)


@click.command("profiles")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--from",
    "recording",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Print a paced profile made of a recording: its rig's times, on any machine.",
)
@click.option("--write", metavar="NAME", help="With --from: save it as NAME.toml.")
def command(name: str | None, as_json: bool, recording: Path | None, write: str | None) -> None:
    """The run profiles that ship, or the one named: what each stands for and where its numbers come from.

    Use one with --profile NAME; take only its times with --device paced:NAME.
    """
    if recording is not None:
        if name is not None or as_json:
            raise BadInput(
                "profiles: expected --from FILE alone or with --write NAME, got a name or --json too"
            )
        _print_recorded(recording, write)
        return
    if write is not None:
        raise BadInput("profiles: expected --write with --from FILE, got it alone")
    names = list(shipped_profiles()) if name is None else [name]
    profiles = [_about(load_profile(each, "profiles")) for each in names]
    if as_json:
        click.echo(json.dumps({"profiles": profiles}))
        return
    width = max(len(about["name"]) for about in profiles) + 2
    for about in profiles:
        first, *others = _lines(about)
        click.echo(f"{about['name']:<{width}}{first}")
        for line in others:
            click.echo(" " * width + line)
