"""strata-tui devices: what devices there are."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("devices")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """What devices there are: cores, NUMA nodes, instruction sets."""
    from strata_tui.engine import cpu_info

    info: dict[str, Any] = cpu_info()
    if as_json:
        click.echo(
            json.dumps({"cpu": {**info, "numa": {str(k): v for k, v in info["numa"].items()}}, "gpus": []})
        )
        return
    cores = info["cores"]
    click.echo(f"cpu    {info['model'] or 'processor'}: {len(cores)} cores ({', '.join(map(str, cores))})")
    for node, members in info["numa"].items():
        click.echo(f"       NUMA node {node}: cores {', '.join(map(str, members))}")
    click.echo(f"       kernels: {', '.join(info['isas'])}; used: {info['best']}")
    click.echo("gpu    none: this version runs on the CPU")
