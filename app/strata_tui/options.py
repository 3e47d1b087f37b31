"""What a run is asked for: placement, switches, sampling, prompt. Made by the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_tui.errors import BadInput

if TYPE_CHECKING:
    from strata_tui.paced import Rig

MAX_STAGES = 32


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
            (
                self.temperature == 0 or 1e-6 <= self.temperature <= 100,
                "temp",
                "a number from 0 to 100 (0, or at least 0.000001)",
                self.temperature,
            ),
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


PROGRAMS = ("forward", "publish", "commit", "undo", "draft", "chunk", "hand_off", "verdict")


@dataclass(frozen=True)
class Pace:
    """When the programs of a device end.

    Attributes:
        times_ms: even: how long a program of each kind named lasts.
        seed: delayed: what the delays are drawn from.
        only: delayed: kinds of programs; () = all.
        chance: delayed: of a delay at each place where there may be one.
        max_ms: delayed: of one delay.
    """

    times_ms: tuple[tuple[str, float], ...] = ()
    seed: int = 0
    only: tuple[str, ...] = ()
    chance: float = 0.25
    max_ms: float = 1.0


@dataclass(frozen=True)
class DeviceChoice:
    """One stage's device. threads 0 = an equal share of the cores."""

    kind: str = "cpu"
    threads: int = 0
    cores: tuple[int, ...] = ()
    pace: Pace = Pace()
    rig: Rig | None = None  # paced: whose times; each stage takes its own

    @property
    def emulated(self) -> bool:
        """Are its times another device's?"""
        return self.kind in ("even", "paced")

    @property
    def text(self) -> str:
        """What `parse` reads as this device."""
        pinned = "@" + "+".join(map(str, self.cores)) if self.cores else ""
        if self.kind == "cpu":
            threads = self.threads or len(self.cores)
            return f"cpu:{threads}{pinned}" if threads else "cpu"
        if self.rig:
            return f"paced:{self.rig.name}{pinned}"
        if self.kind == "even":
            (_, forward), *others = self.pace.times_ms
            return "+".join([f"even:{forward:g}", *(f"{kind}={ms:g}" for kind, ms in others)]) + pinned
        only = f"+only={'/'.join(self.pace.only)}" if self.pace.only else ""
        return f"delayed:{self.pace.seed}{only}+chance={self.pace.chance:g}+max={self.pace.max_ms:g}{pinned}"

    @staticmethod
    def parse(text: str, where: str = "--device") -> DeviceChoice:
        """A device from its text; each may end with `@CORES`, as 0, 0-3 or 0+2+4, and is then pinned there.

        `cpu`, `cpu:THREADS`;
        `even:MS`, `even:MS+commit=MS+draft=MS`: an emulation, programs that last a fixed time;
        `delayed:SEED`, `delayed:SEED+only=KIND/KIND+chance=P+max=MS`: a test, programs that come late;
        `paced:PROFILE`, a profile's name or file: an emulation of the rig that it describes.

        Raises:
            BadInput: one line that says what was expected.
        """
        kind, colon, rest = text.strip().partition(":")
        setting, at, pinned = rest.rpartition("@") if "@" in rest else (rest, "", "")
        expected = {
            "even": "even:MS or even:MS+commit=MS (also publish, undo, draft, chunk, hand_off, verdict), "
            "up to 5000 ms",
            "delayed": "delayed:SEED or delayed:SEED+only=KIND/KIND+chance=P+max=MS "
            f"(kinds {'/'.join(PROGRAMS)}, up to 1000 ms)",
            "paced": "paced:PROFILE, a run profile with [paced] times",
        }.get(kind, "cpu, cpu:THREADS or cpu:THREADS@CORES; paced:PROFILE, even:MS, delayed:SEED")
        try:
            cores = _cores(pinned) if at else ()
            if kind == "even":
                return DeviceChoice(kind, 0, cores, _even(setting))
            if kind == "delayed":
                return DeviceChoice(kind, 0, cores, _delayed(setting))
            if kind == "paced" and setting:
                return DeviceChoice(kind, 0, cores, rig=_rig(setting, where))
            if kind != "cpu" or (colon and not 1 <= int(setting) <= 1024):
                raise ValueError
            return DeviceChoice(kind, int(setting or 0), cores)
        except ValueError:
            later = " (gpu is not in this version)" if kind == "gpu" else ""
            raise BadInput(f"{where}: expected {expected}{later}, got {text!r}") from None


def _rig(profile: str, where: str) -> Rig:
    from strata_tui.profile import load_rig, paced_profiles  # here: a profile names devices itself

    rig = load_rig(profile, where)
    if rig is None:
        expected = f"a profile with [paced] times ({', '.join(paced_profiles())})"
        raise BadInput(f"{where}: expected {expected}, got {profile!r}, which has none")
    return rig


def _within(text: str, most: float) -> float:
    value = float(text)
    if not 0 <= value <= most:  # nan too
        raise ValueError
    return value


def _even(text: str) -> Pace:
    """10+commit=0.2 -> what lasts how long."""
    forward, *others = text.split("+")
    times = {"forward": _within(forward, 5000)}
    for part in others:
        kind, _, ms = part.partition("=")
        if kind not in PROGRAMS or kind in times:
            raise ValueError
        times[kind] = _within(ms, 5000)
    return Pace(times_ms=tuple(times.items()))


def _delayed(text: str) -> Pace:
    """7+only=commit/undo+chance=0.5+max=2 -> how programs come late."""
    seed, *others = text.split("+")
    given = dict(part.split("=") for part in others)
    only = tuple(given.pop("only").split("/")) if "only" in given else ()
    pace = Pace(
        seed=int(seed),
        only=only,
        chance=_within(given.pop("chance", "0.25"), 1),
        max_ms=_within(given.pop("max", "1"), 1000),
    )
    if given or not set(only) <= set(PROGRAMS) or not 0 <= pace.seed < 1 << 64:
        raise ValueError
    return pace


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
class Profile:
    """What a profile sets; what it leaves out stays the program's default."""

    name: str
    description: str = ""
    sources: tuple[str, ...] = ()  # where its numbers come from
    context: int | None = None
    kv: str | None = None
    chunk: int | None = None
    stages: int | None = None
    split: tuple[int, ...] | None = None
    devices: tuple[DeviceChoice, ...] | None = None
    threads: int | None = None
    per_node: bool = False  # a stage per NUMA node, pinned there; its other placement where there is one
    rig: Rig | None = None  # what paced devices go by
    switches: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunOptions:
    """A whole run."""

    model: Path | None = None  # None = the embedded model
    draft_model: Path | None = None  # whose draft layer is used; None = the model's own
    placement: Placement = field(default_factory=Placement)
    switches: Mapping[str, Any] = field(default_factory=dict)
    sampling: Sampling = field(default_factory=Sampling)
    prompt: str | None = None
    tokens: tuple[int, ...] | None = None
    max_tokens: int = 256  # 0 = up to the context
    chat: bool | None = None  # None = where the file has a template
    thinking: bool | None = None  # of a chat; None = as the template has it
    ignore_eos: bool = False
    log: Path | None = None
    reports: frozenset[str] = frozenset()  # told of each request; see switches.REPORTS
    notes: tuple[str, ...] = ()  # lines to say once
    ascii: bool = False
