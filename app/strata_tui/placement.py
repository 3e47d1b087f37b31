"""Where the layers go: a split filled in from what was asked for and what the model file weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE
from strata_tui.options import MAX_STAGES, DeviceChoice, Placement

MAX_THREADS_PER_CORE = 16  # of a stage: far beyond what helps, and such a team still gets through a text
DEFAULT_STAGES = 2


@dataclass(frozen=True)
class SharedCores:
    """Cores that the programs of some lanes share.

    Attributes:
        lanes: stages, and DRAFT_LANE; ascending.
        at_once: how many of their programs run side by side at their full speed, each on its stage's threads.
    """

    lanes: tuple[int, ...]
    at_once: int


class Weights(Protocol):
    """What a placement needs to know of a model file."""

    @property
    def file_name(self) -> str: ...

    @property
    def n_layers(self) -> int: ...

    @property
    def layer_reads(self) -> list[int]: ...

    @property
    def tail_reads(self) -> int: ...


def balanced_split(layer_reads: Sequence[int], tail_reads: int, stages: int) -> tuple[int, ...]:
    """First layer of each later stage, so that the heaviest stage is as light as possible.

    Args:
        layer_reads: of each layer.
        tail_reads: what the last stage reads besides (head and draft layer).
        stages: at most as many as layers.
    """
    n = len(layer_reads)
    total = [0]
    for size in layer_reads:
        total.append(total[-1] + size)
    # best[s][i]: the least maximum of s + 1 stages over the first i layers, and where the last of them begins
    best = [[(total[i], 0) for i in range(n + 1)]]
    for s in range(1, stages):
        row = [(1 << 62, 0)] * (n + 1)
        for i in range(s + 1, n + 1):
            tail = tail_reads if s == stages - 1 and i == n else 0
            row[i] = min((max(best[-1][j][0], total[i] - total[j] + tail), j) for j in range(s, i))
        best.append(row)
    split: list[int] = []
    end = n
    for s in range(stages - 1, 0, -1):
        end = best[s][end][1]
        split.append(end)
    return tuple(reversed(split))


def stage_per_node(
    nodes: Mapping[int, Sequence[int]], usable: Sequence[int]
) -> tuple[DeviceChoice, ...] | None:
    """A CPU device for each NUMA node with usable cores, pinned there; None where there is but one."""
    cores = [tuple(core for core in nodes[node] if core in usable) for node in sorted(nodes)]
    devices = tuple(DeviceChoice("cpu", len(own), own) for own in cores if own)[:MAX_STAGES]
    return devices if len(devices) > 1 else None


def place(asked: Placement, model: Weights, n_cores: int) -> tuple[tuple[int, ...], tuple[DeviceChoice, ...]]:
    """The split, and one device a stage with its threads; by default two stages, equal shares of the cores.

    Raises:
        BadInput: stages, split and devices that don't fit together or the model.
    """
    n_layers = model.n_layers
    n_devices = len(asked.devices or ())
    if asked.split is not None:
        split = asked.split
        layers = f"({model.file_name} has layers 0 to {n_layers - 1})"
        for before, layer in zip((0, *split), split, strict=False):
            if not before < layer < n_layers:
                shown = ",".join(map(str, split))
                raise BadInput(
                    f"--split (or STRATA_LAYER_SPLIT): expected layers that ascend from 1 {layers}, "
                    f"got {shown}"
                )
        if asked.stages not in (None, len(split) + 1):
            raise BadInput(f"--stages: expected {len(split) + 1} as --split has it, got {asked.stages}")
    else:
        stages = asked.stages or (n_devices if n_devices > 1 else min(DEFAULT_STAGES, n_layers))
        if not 1 <= stages <= min(n_layers, MAX_STAGES):
            most = min(n_layers, MAX_STAGES)
            raise BadInput(
                f"--stages: expected 1 to {most} ({model.file_name} has {n_layers} layers), got {stages}"
            )
        split = balanced_split(model.layer_reads, model.tail_reads, stages)
    n_stages = len(split) + 1
    if n_devices > 1 and n_devices != n_stages:
        raise BadInput(f"--device: expected 1 or {n_stages} devices, one a stage, got {n_devices}")
    share = asked.threads or max(1, n_cores // n_stages)
    choices = asked.devices or (DeviceChoice(),)
    if len(choices) == 1:
        choices *= n_stages
    devices = tuple(replace(c, threads=c.threads or share) for c in choices)
    most, asked_for = MAX_THREADS_PER_CORE * n_cores, max(device.threads for device in devices)
    if asked_for > most:
        raise BadInput(
            f"--threads: expected at most {most} a stage ({MAX_THREADS_PER_CORE} for each usable core), "
            f"got {asked_for}"
        )
    return split, devices


def shared_cores(
    devices: Sequence[DeviceChoice], usable: Sequence[int], has_draft_layer: bool
) -> tuple[SharedCores, ...]:
    """Which lanes share which cores: those whose cores overlap, in turn with all that overlap with them.

    Args:
        devices: as placed, one a stage. The draft layer runs on the last one's threads and cores.
        usable: the process's cores; a device that is not pinned runs on any of them.
    """
    lanes = [*enumerate(devices), *([(DRAFT_LANE, devices[-1])] if has_draft_layer else [])]
    groups: list[tuple[set[int], list[tuple[int, DeviceChoice]]]] = []
    for lane, device in lanes:
        cores, sharers = set(device.cores or usable), [(lane, device)]
        for group in [group for group in groups if group[0] & cores]:
            groups.remove(group)
            cores, sharers = cores | group[0], group[1] + sharers
        groups.append((cores, sharers))
    return tuple(
        SharedCores(
            lanes=tuple(sorted(lane for lane, _ in sharers)),
            at_once=max(1, len(cores) // max(device.threads or 1 for _, device in sharers)),
        )
        for cores, sharers in groups
    )


def crowded(devices: Sequence[DeviceChoice], n_cores: int) -> list[str]:
    """A line for each stage whose threads take turns on its cores; one for all where they are alike."""
    lines = {
        i: f"{device.threads} threads take turns on {n} usable core{'' if n == 1 else 's'}"
        for i, device in enumerate(devices)
        if device.threads > (n := len(set(device.cores)) or n_cores)
    }
    if len(lines) == len(devices) and len(set(lines.values())) == 1:
        return [f"[device] every stage: {lines[0]}"]
    return [f"[device] stage {i}: {line}" for i, line in lines.items()]
