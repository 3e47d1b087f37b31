"""strata-tui devices: what devices there are."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("devices")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """What devices there are: cores, NUMA nodes, instruction sets, read bandwidth as measured now."""
    from strata_tui.engine import cpu_info, read_bandwidth

    info: dict[str, Any] = cpu_info()
    cores = info["cores"]
    read = {threads: read_bandwidth(threads) for threads in sorted({1, len(cores)})}
    if as_json:
        numa = {str(node): members for node, members in info["numa"].items()}
        cpu = {**info, "numa": numa, "read_gb_per_s": {str(threads): rate for threads, rate in read.items()}}
        click.echo(json.dumps({"cpu": cpu, "gpus": []}))
        return
    click.echo(f"cpu    {info['model'] or 'processor'}: {len(cores)} cores ({', '.join(map(str, cores))})")
    for node, members in info["numa"].items():
        click.echo(f"       NUMA node {node}: cores {', '.join(map(str, members))}")
    click.echo(f"       kernels: {', '.join(info['isas'])}; used: {info['best']}")
    rates = [
        f"{rate:.1f} GB/s with {threads} thread{'' if threads == 1 else 's'}"
        for threads, rate in read.items()
        if rate is not None
    ]
    if rates:
        click.echo(f"       memory read: {', '.join(rates)}")
    click.echo("gpu    none: this version runs on the CPU")
