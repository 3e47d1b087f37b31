"""The native engine, as Python sees it. Only engine.py and gguf_file.py import it."""

from typing import Any

import numpy as np
import numpy.typing as npt

class Error(Exception): ...

def architectures() -> list[str]: ...

class ModelFile:
    def __init__(self, path: str | bytes) -> None: ...
    path: str
    name: str
    version: int
    alignment: int
    size_bytes: int
    def metadata(self) -> dict[str, Any]: ...
    def keys(self) -> list[str]: ...
    def array(self, key: str) -> Any: ...
    def array_length(self, key: str) -> int: ...
    def require_draft(self, draft: ModelFile) -> None: ...
    def tensors(self) -> list[tuple[str, str, int, tuple[int, ...], int, int, int, int, bool]]: ...

class DeviceSpec:
    """One stage's device: `threads` worker threads, pinned to `cores` where that is not empty.

    Kinds: "cpu"; "even", whose programs last `times_ms` by kind; "delayed", whose programs (`only` these
    kinds, [] = all) come up to `max_ms` late with a seeded `chance`.
    """

    kind: str
    threads: int
    cores: list[int]
    def __init__(
        self,
        kind: str = "cpu",
        threads: int = 1,
        cores: list[int] = ...,
        *,
        times_ms: dict[str, float] = ...,
        seed: int = 0,
        only: list[str] = ...,
        chance: float = 0.25,
        max_ms: float = 1.0,
    ) -> None: ...
    @staticmethod
    def paced(
        name: str,
        threads: int,
        cores: list[int],
        *,
        run_ms: list[float],  # [rows - 1]; [] = as long as it takes
        chunk_ms: list[float],
        run_ms_per_1k: float,
        position_offset: int,
        hand_off_ms: dict[str, float],  # launch, serial, overlapped, polled
        times_ms: dict[str, float],  # verdict, draft, commit, undo
        jitter: float,
        seed: int,
    ) -> DeviceSpec:
        """A stage of a described rig."""

class EngineOptions:
    """What is fixed at load."""

    split: list[int]  # first layer of each later stage
    devices: list[DeviceSpec]  # one a stage: len(split) + 1
    context: int
    kv_type: str  # "f32" | "f16"
    chunk: int  # prefill rows
    pipeline_max: int  # windows in flight to allocate for; clamped to the stages
    window_memory: int  # bytes that they may take; 0 = what is available
    memory: int  # bytes that all of it may take beside the mapped model; 0 = what is available
    watchdog_s: float  # a request ends with an error when nothing has moved for so long
    isa: str  # "" = best
    events: bool  # record events (tracing)
    event_capacity: int  # events kept a ring between two drains
    def __init__(self) -> None: ...

class StageInfo:
    index: int
    device: str  # "cpu 1 thread, core 0"
    first_layer: int
    last_layer: int
    layers: list[str]  # "attention" | "gdn"
    weight_bytes: int
    kv_bytes: int
    state_bytes: int
    buffer_bytes: int
    slots: int  # windows that a verifier holds at a time
    states: int  # recurrent states
    snapshot_bytes: int  # of the states beyond one
    slot_bytes: int
    pinned: bool  # False: the system refused to pin it to its cores
    isa: str
    numerics: str

class Switches:
    """Asked-for values, live; each takes effect at the next verdict. An impossible value raises Error."""

    overlap: bool
    pipeline_windows: int
    draft: str  # "mtp" | "lookup" | "none" | "replay:Q"
    draft_max: int
    draft_min_p: float
    theta: float
    short_read: int
    rate: float  # tokens per second; 0 = no cap
    force_miss: int  # every n-th guess is made wrong; 0 = none
    spec_depth: int  # front stages that guesses may run on; 32 = all
    chain_ahead: bool  # the draft chain runs ahead of the verdict; else it is forced after a kept guess
    kernel_times: bool  # measured from the next request on
    keep_drafting: bool  # also with a draft layer that accepts nothing
    paused: bool
    def step(self) -> None: ...  # while paused: let one window through
    def notices(self) -> list[str]: ...  # drained; a line for each switch asked for that can't apply

class Sampling:
    """temperature 0 = greedy; top_k 0, top_p 1, min_p 0, repeat_penalty 1 = off."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    seed: int
    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        seed: int = 0,
    ) -> None: ...

class Engine:
    def __init__(self, model: ModelFile, options: EngineOptions, draft: ModelFile | None = None) -> None: ...
    stages: list[StageInfo]
    emulated: bool  # a device is even: times are not this machine's
    n_layers: int
    n_vocab: int
    n_embd: int
    pipeline_max: int  # windows in flight allocated: 0, or 2 to the number of stages
    context: int
    has_draft_layer: bool
    recurrent: bool
    switches: Switches
    draft_bytes: int
    def session(self) -> Session: ...
    def pace_kept(
        self, anew: bool = False
    ) -> list[dict[str, Any]]: ...  # a dict a (stage, kind of program) that was paced
    def in_force(self) -> dict[str, Any]: ...  # what the running request goes by, by switch name
    def drain_events(self) -> npt.NDArray[np.void]:
        """Events since the last call, in the order of their start within each producer; dtype EVENT_DTYPE."""
    dropped_events: int
    tracing: bool  # may be flipped at any time
    def eval(self, tokens: list[int]) -> dict[str, npt.NDArray[np.float32]]:
        """{"logits": [n, vocab], "hidden": [n, embd]}; with a draft layer "nextn_logits": [n-1, vocab]."""
    def inject_error(self, stage: int, window: int) -> None:
        """For tests: that stage's program of that window (0: the next) fails; DRAFT_LANE: its next pass."""
    def inject_stall(self, stage: int) -> None:
        """For tests: that stage's next window's program stands still until it is dropped."""
    def close(self) -> None: ...  # idempotent; cancels, joins every thread

class Session:
    def start(
        self,
        tokens: list[int],
        max_tokens: int,
        sampling: Sampling,
        end_tokens: list[int],
        replay: list[int] = ...,
    ) -> None:
        """Begin a request on the control thread. `tokens` is the whole prompt; the part already read is not
        read again. max_tokens 0 = up to the context. end_tokens empty = never stop by token (--ignore-eos).
        replay: the text that drafts are taken from by `replay:Q`."""
    def read(self) -> list[int]: ...  # tokens emitted since the last call; never blocks
    def wait(self, timeout_s: float) -> bool: ...  # until tokens or the end are there; releases the GIL
    def cancel(self) -> None: ...  # at the next verdict; finish "cancel"
    finish: str  # "" while running, else "stop" | "length" | "context" | "cancel" | "error"
    error: str  # one line when finish is "error"
    running: bool
    position: int  # rows consumed
    tokens: list[int]  # prompt and text so far, the last emitted token included
    def stats(self) -> dict[str, Any]:
        """Counters of this request: prompt_tokens, cached_tokens, generated, windows, windows_overlapped,
        prompt_windows, drafted, accepted, accepted_per_position [list: windows whose first k drafts were
        accepted, k = 1..], drafted_per_position [list: windows that had a k-th draft], prefill_rows,
        prefill_ns, first_token_ns (since start), begin_ns, end_ns, decode_ns (first token to last), window_ns
        (sum over decode windows), throttled_ns, drafting_stopped (bool: a head that accepted nothing);
        windows_by_class, tokens_by_class, window_ns_by_class [fresh, kept after fresh, kept after kept],
        undone, guesses {built, gated, late, launched, kept, rolled_back, ended, bonus_wrong, draft_wrong,
        forced, second_choice_right}, kept_at_depth [list: guesses kept, by the windows ahead at launch];
        kernels, once it has ended and if they were timed [{stage (DRAFT_LANE: the draft layer), rows (0: more
        than a window has), programs (forward programs of so many rows), ns {kind: ns}}]."""
    def fingerprint(self) -> dict[str, Any]:
        """State up to the length: length, layers [a hash each]; with a draft layer draft_length and draft."""

def event_dtype() -> np.dtype[np.void]:
    """start_ns u8, dur_ns u8, window u4, kind u1, stage u1, rows u2, a i4, b i4: 32 bytes (trace/event.h)."""

EVENT_KINDS: dict[str, int]  # "run": 1, "wait_ready": 2, ..
DRAFT_LANE: int
HOST_LANE: int
FINISHES: list[str]
FATES: list[str]
SWITCHES: list[str]

class kernels:  # a submodule; the rest of it is for tests
    @staticmethod
    def measure_read_bandwidth(bytes: int, threads: int, seconds: float) -> float: ...  # GB/s

def steady_ns() -> int: ...  # the events' clock
def available_memory() -> int | None:
    """Bytes that this process can still take: of the system and of its control groups; None: not known."""

def cpu_info() -> dict[str, Any]:
    """{"cores": [ids that are usable], "numa": {node: [cores]}, "model": str, "isas": [..], "best": str}."""
