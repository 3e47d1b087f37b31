"""What a run is asked for: placement, switches, sampling, prompt. Made by the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata_tui.errors import BadInput


@dataclass(frozen=True)
class Sampling:
    """How a token is picked; temperature 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 0  # 0 = off
    top_p: float = 1.0  # 1 = off
    min_p: float = 0.0  # 0 = off
    repeat_penalty: float = 1.0  # 1 = off
    seed: int = 0

    def __post_init__(self) -> None:
        # Each as "it holds", so that nan is refused too.
        for holds, name, what, got in (
            (0 <= self.temperature <= 100, "temp", "a number from 0 to 100", self.temperature),
            (0 <= self.top_k < 1 << 31, "top-k", "0 (off) or a count", self.top_k),
            (0 < self.top_p <= 1, "top-p", "a number above 0, up to 1", self.top_p),
            (0 <= self.min_p < 1, "min-p", "a number from 0 to below 1", self.min_p),
            (
                0 < self.repeat_penalty <= 100,
                "repeat-penalty",
                "a number above 0, up to 100",
                self.repeat_penalty,
            ),
            (0 <= self.seed < 1 << 64, "seed", "a number from 0 to 2^64 - 1", self.seed),
        ):
            if not holds:
                raise BadInput(f"--{name}: expected {what}, got {got}")


GREEDY = Sampling()


@dataclass(frozen=True)
class DeviceChoice:
    """One stage's device. threads 0 = an equal share of the cores."""

    kind: str = "cpu"
    threads: int = 0
    cores: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str, where: str = "--device") -> DeviceChoice:
        """`cpu`, `cpu:THREADS`, or pinned: `cpu:THREADS@CORES` with CORES as 0, 0-3 or 0+2+4."""
        kind, colon, rest = text.strip().partition(":")
        threads, at, cores = rest.partition("@")
        try:
            if kind != "cpu" or (colon and not 1 <= int(threads) <= 1024):
                raise ValueError
            return DeviceChoice(kind, int(threads or 0), _cores(cores) if at else ())
        except ValueError:
            later = f" ({kind} is not in this version)" if kind in ("gpu", "paced") else ""
            expected = "cpu, cpu:THREADS or cpu:THREADS@CORES"
            raise BadInput(f"{where}: expected {expected}{later}, got {text!r}") from None


def _cores(text: str) -> tuple[int, ...]:
    """0-2+5 -> 0, 1, 2, 5."""
    cores: list[int] = []
    for part in text.split("+"):
        first, dash, last = part.partition("-")
        span = range(int(first), int(last if dash else first) + 1)
        if not 1 <= len(span) <= 4096:
            raise ValueError
        cores += span
    return tuple(cores)


def parse_split(text: str, where: str = "--split") -> tuple[int, ...] | None:
    """First layer of each later stage; None for `auto`."""
    if text.strip() == "auto":
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"{where}: expected auto or layers like 12,24,36, got {text!r}") from None


@dataclass(frozen=True)
class Placement:
    """What is fixed at load. None = the engine's default."""

    stages: int | None = None
    split: tuple[int, ...] | None = None  # first layer of each later stage
    devices: tuple[DeviceChoice, ...] | None = None
    threads: int | None = None  # per stage
    context: int | None = None
    kv: str = "f16"
    chunk: int = 512
    pipeline_max: int | None = None
    isa: str = ""


@dataclass(frozen=True)
class RunOptions:
    """A whole run."""

    model: Path | None = None  # None = the embedded model
    placement: Placement = field(default_factory=Placement)
    switches: Mapping[str, Any] = field(default_factory=dict)
    sampling: Sampling = field(default_factory=Sampling)
    prompt: str | None = None
    tokens: tuple[int, ...] | None = None
    max_tokens: int = 256  # 0 = up to the context
    chat: bool | None = None  # None = where the file has a template
    ignore_eos: bool = False
    log: Path | None = None
    notes: tuple[str, ...] = ()  # lines to say once
    ascii: bool = False
