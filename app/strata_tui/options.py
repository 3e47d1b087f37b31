"""What a run is asked for: placement, switches, sampling, prompt. Made by the command line, read by everyone."""

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
        def expect(ok: bool, name: str, what: str, got: Any) -> None:
            if not ok:
                raise BadInput(f"--{name}: expected {what}, got {got}")

        expect(0 <= self.temperature <= 100, "temp", "a number from 0 to 100", self.temperature)
        expect(0 <= self.top_k < 1 << 31, "top-k", "0 (off) or a count", self.top_k)
        expect(0 < self.top_p <= 1, "top-p", "a number above 0, up to 1", self.top_p)
        expect(0 <= self.min_p < 1, "min-p", "a number from 0 to below 1", self.min_p)
        expect(0 < self.repeat_penalty <= 100, "repeat-penalty", "a number above 0, up to 100", self.repeat_penalty)
        expect(0 <= self.seed < 1 << 64, "seed", "a number from 0 to 2^64 - 1", self.seed)


@dataclass(frozen=True)
class DeviceChoice:
    """One stage's device. threads 0 = an equal share of the cores."""

    kind: str = "cpu"
    threads: int = 0
    cores: tuple[int, ...] = ()

    @staticmethod
    def parse(text: str) -> DeviceChoice:
        """`cpu`, `cpu:THREADS`, `cpu:THREADS@CORE`, `cpu:THREADS@CORE+CORE` or `@FIRST-LAST`."""
        kind, _, rest = text.strip().partition(":")
        if kind in ("gpu", "paced"):
            raise BadInput(f"--device: expected cpu, cpu:THREADS or cpu:THREADS@CORES (no {kind} yet), got {text!r}")
        threads_text, at, cores_text = rest.partition("@")
        try:
            threads = int(threads_text) if threads_text else 0
            cores: list[int] = []
            for part in cores_text.split("+") if at else []:
                first, dash, last = part.partition("-")
                cores += range(int(first), int(last) + 1) if dash else [int(first)]
            if kind != "cpu" or threads < 0 or (":" in text and not rest) or (at and not cores):
                raise ValueError
        except ValueError:
            raise BadInput(f"--device: expected cpu, cpu:THREADS or cpu:THREADS@CORES, got {text!r}") from None
        return DeviceChoice(kind, threads, tuple(cores))


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
