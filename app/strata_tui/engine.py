"""Engine and Session: the two nouns of the program, over the native module."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from strata_tui import _core
from strata_tui.errors import BadInput, StrataError
from strata_tui.events import Events
from strata_tui.gguf_file import ModelFile, open_model_file, require_supported
from strata_tui.options import GREEDY, DeviceChoice, Placement, Sampling, parse_split
from strata_tui.paced import MAX_WINDOW_ROWS, table
from strata_tui.placement import crowded, place, shared_cores
from strata_tui.switches import BY_NAME
from strata_tui.tokenizer import Tokenizer

__all__ = ["Engine", "Sampling", "Session", "Switches", "available_memory", "cpu_info", "read_bandwidth"]

cpu_info = _core.cpu_info
available_memory = _core.available_memory
MAX_DEFAULT_CONTEXT = 8192
BANDWIDTH_BYTES = 128 << 20  # more than most processors' caches, little enough to be quick
BANDWIDTH_S = 0.06


@contextmanager
def _native_errors(kind: type[StrataError]) -> Iterator[None]:
    """What the native module throws, as one of ours."""
    try:
        yield
    except _core.Error as error:
        raise kind(str(error)) from None


def read_bandwidth(threads: int) -> float | None:
    """GB/s at which so many threads together read memory, measured now in about 0.1 s; the roof of decoding.

    None where the memory for it can't be had.
    """
    try:
        return _core.kernels.measure_read_bandwidth(BANDWIDTH_BYTES, threads, BANDWIDTH_S)
    except MemoryError:
        return None


class Switches:
    """The live switches: set an attribute, and it takes effect at the next verdict.

    Raises:
        BadInput: a value that its switch doesn't accept.
        AttributeError: there is no such switch.
    """

    overlap: bool
    pipeline_windows: int
    draft: str
    draft_max: int
    draft_min_p: float
    theta: float
    short_read: int
    rate: float
    force_miss: int
    spec_depth: int
    chain_ahead: bool
    kernel_times: bool
    keep_drafting: bool
    paused: bool

    def __init__(self, native: _core.Engine) -> None:
        object.__setattr__(self, "_native", native)

    def __getattr__(self, name: str) -> Any:
        if name not in Switches.__annotations__:
            raise AttributeError(f"there is no switch {name!r}")
        with _native_errors(StrataError):
            return getattr(self._asked, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Switches.__annotations__:
            raise AttributeError(f"there is no switch {name!r}")
        try:
            with _native_errors(BadInput):
                setattr(self._asked, name, value)
        except TypeError:
            expected = BY_NAME[name].accepts.what if name in BY_NAME else "True or False"
            raise BadInput(f"[switch] {name}: expected {expected}, got {value!r}") from None

    @property
    def _asked(self) -> _core.Switches:
        native: _core.Engine = self.__dict__["_native"]
        return native.switches  # refused once the engine is closed

    def in_force(self) -> dict[str, Any]:
        """What the running request goes by."""
        native: _core.Engine = self.__dict__["_native"]
        with _native_errors(StrataError):
            return native.in_force()

    def notices(self) -> list[str]:
        """A line for each switch that was asked for and can't apply, since the last call."""
        with _native_errors(StrataError):
            return self._asked.notices()

    def step(self) -> None:
        """While paused: let one window through."""
        with _native_errors(StrataError):
            self._asked.step()


class Session:
    """One line of tokens. Requests follow one another; a prompt that extends it is read from there on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._native = engine.native.session()

    def start(
        self,
        tokens: Sequence[int],
        max_tokens: int = 0,
        sampling: Sampling = GREEDY,
        end_tokens: Sequence[int] = (),
        replay: Sequence[int] = (),
    ) -> None:
        """Begin a request; returns at once.

        Args:
            tokens: the whole prompt.
            max_tokens: 0 = up to the context.
            end_tokens: what ends the text; empty = nothing but a limit.
            replay: the text that `replay:Q` drafts from.

        Raises:
            BadInput: an empty prompt, ids out of range, a prompt longer than the context.
        """
        native = _core.Sampling(**dataclasses.asdict(sampling))
        try:
            with _native_errors(BadInput):
                self._native.start(list(tokens), max_tokens, native, list(end_tokens), list(replay))
        except TypeError:
            raise BadInput(
                "[session] expected token ids and limits that are whole numbers below 2^31"
            ) from None

    def read(self) -> list[int]:
        """Tokens emitted since the last call; never waits."""
        return self._native.read()

    def wait(self, timeout_s: float) -> bool:
        """Until there are tokens to read or the request has ended; False after `timeout_s`.

        Tokens that stay unread end every wait at once: who calls it in a loop reads in the loop.
        """
        return self._native.wait(timeout_s)

    def to_the_end(self) -> list[int]:
        """Wait until the request has ended; the tokens that were not read before."""
        tokens: list[int] = []
        while self.running:
            self.wait(1.0)
            tokens += self.read()
        return tokens + self.read()

    def cancel(self) -> None:
        """End the request at its next verdict."""
        self._native.cancel()

    @property
    def finish(self) -> str:
        """ "" while running, else stop, length, context, cancel or error."""
        return self._native.finish

    @property
    def error(self) -> str:
        return self._native.error

    @property
    def running(self) -> bool:
        return self._native.running

    @property
    def position(self) -> int:
        """Rows that the state holds."""
        return self._native.position

    @property
    def tokens(self) -> list[int]:
        """Prompt and text so far."""
        return self._native.tokens

    def stats(self) -> dict[str, Any]:
        """Counters of the request; see _core.pyi."""
        return self._native.stats()

    def fingerprint(self) -> dict[str, Any]:
        """The state, as a hash per layer."""
        with _native_errors(StrataError):
            return self._native.fingerprint()

    def record_plain(self, tokens: Sequence[int], **request: Any) -> list[int]:
        """The text of plain decoding, for `replay` drafts; the session begins anew afterwards."""
        switches = self._engine.switches
        draft, rate = switches.draft, switches.rate
        switches.draft, switches.rate = "none", 0.0
        try:
            self.start(tokens, **request)
            text = self.to_the_end()
        finally:
            switches.draft, switches.rate = draft, rate
            self._native = self._engine.native.session()
        return text

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int = 0,
        sampling: Sampling = GREEDY,
        ignore_eos: bool = False,
    ) -> Iterator[int]:
        """Token ids as they come.

        Closing the iterator cancels the request; what it had not taken is in `tokens`.

        Raises:
            BadInput: see `start`.
            StrataError: a stage failed; the session has ended.
        """
        tokens = self._engine.tokens_of(prompt) if isinstance(prompt, str) else list(prompt)
        request: dict[str, Any] = {
            "max_tokens": max_tokens,
            "sampling": sampling,
            "end_tokens": [] if ignore_eos else self._engine.end_tokens,
        }
        replays = self._engine.switches.draft.startswith("replay")
        replay = self.record_plain(tokens, **request) if replays else []
        self.start(tokens, replay=replay, **request)
        try:
            while True:
                ended = not self.running
                yield from self.read()
                if ended:
                    break
                self.wait(1.0)
        finally:
            if self.running:
                self.cancel()
                self.to_the_end()
        if self.finish == "error":
            raise StrataError(self.error)


class Engine:
    """A model placed on stages. Use it as a context manager, or close it.

    Attributes:
        model: the file.
        switches: live switches.
        stages: what lies where: index, device, first_layer, last_layer, bytes.
        emulated: is the time of some stage not this machine's, but a paced or even device's?
        kv: the type of K/V cells, f32 or f16.
        shared_cores: which stages (and the draft layer) share which cores; none where times are emulated.
        hand_offs: of each stage, how long the rows take to it by the rig that it emulates; None = no rig.
    """

    def __init__(self, model: ModelFile, placement: Placement, events: bool = True) -> None:
        require_supported(model)
        self.model = model
        cores = cpu_info()["cores"]
        split, devices = place(placement, model, len(cores))
        try:
            with _native_errors(BadInput):
                options = _native_options(model, placement, split, devices, events)
                draft = model.draft.native if model.draft else None
                self.native = _core.Engine(model.native, options, draft)
        except MemoryError:
            raise BadInput("[engine] not enough memory: try a smaller --ctx or --chunk") from None
        self.switches = Switches(self.native)
        self.stages = self.native.stages
        self.emulated = self.native.emulated
        self.kv = placement.kv
        self.hand_offs = tuple(device.rig.hand_off_ms if device.rig else None for device in devices)
        self.n_layers = self.native.n_layers
        self.n_vocab = self.native.n_vocab
        self.context = self.native.context
        self.has_draft_layer = self.native.has_draft_layer
        pinned = [
            device if stage.pinned else dataclasses.replace(device, cores=())
            for device, stage in zip(devices, self.stages, strict=True)
        ]
        self.shared_cores = () if self.emulated else shared_cores(pinned, cores, self.has_draft_layer)
        self.pipeline_max = self.native.pipeline_max
        self._notices = [*crowded(devices, len(cores)), *_refused_pins(self.stages)]
        self._said: set[str] = set()  # of these lines, those that are said once

    @classmethod
    def open(
        cls,
        path: Path | str | None = None,
        *,
        draft_model: Path | str | None = None,
        split: Sequence[int] | str | None = None,
        stages: int | None = None,
        devices: Sequence[str] | str | None = None,
        threads: int | None = None,
        context: int | None = None,
        kv: str = "f16",
        chunk: int = 512,
        pipeline_max: int | None = None,
        isa: str | None = None,
        events: bool = True,
        **switches: Any,
    ) -> Engine:
        """Open a model file (None: the embedded model) and place it. The environment is not looked at.

        Args:
            draft_model: a file whose draft layer is used in place of the model's own.
            split: first layer of each later stage: (12, 24), or as on the command line, "12,24" or "auto".
            devices: one a stage, as on the command line: ("cpu:2", "cpu:2@2-3"); see `DeviceChoice.parse`.
            threads: per stage, where its device says nothing.
            context: tokens that a session can hold. None: the model's, 8192 at most.
            pipeline_max: windows in flight to allocate for. None: as many as `pipeline_windows` asks for.
            isa: avx512, avx2 or portable. None: the best.
            events: record what happens; see `events()`.
            switches: values of live switches: overlap=True, draft="none".

        Raises:
            BadInput: a file, placement or switch that can't be used.
        """
        if isinstance(split, str):
            split = parse_split(split)
        if isinstance(devices, str):
            devices = devices.split(",")
        placement = Placement(
            stages=stages,
            split=None if split is None else tuple(split),
            devices=None if devices is None else tuple(DeviceChoice.parse(text) for text in devices),
            threads=threads,
            context=context,
            kv=kv,
            chunk=chunk,
            pipeline_max=switches.get("pipeline_windows") if pipeline_max is None else pipeline_max,
            isa=isa or "",
        )
        engine = cls(open_model_file(path, draft_model), placement, events)
        try:
            engine.set_switches(switches)
        except Exception:
            engine.close()
            raise
        return engine

    def set_switches(self, values: Mapping[str, Any]) -> None:
        """Set what is not None."""
        for name, value in values.items():
            if value is not None:
                setattr(self.switches, name, value)

    def notices(self) -> list[str]:
        """A line for whatever was asked for and can't be had, since the last call."""
        lines, self._notices = self._notices + self.switches.notices(), []
        return lines

    def _note_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._notices.append(line)

    def session(self) -> Session:
        """A new session; the one before is ended."""
        with _native_errors(StrataError):
            return Session(self)

    def events(self) -> Events:
        """What was recorded since the last call; times are of `now_ns`'s clock."""
        with _native_errors(StrataError):
            return self.native.drain_events()

    def pace_kept(self, anew: bool = False) -> list[dict[str, Any]]:
        """How well paced, even and delayed devices kept their times, a dict a stage and kind of program.

        Args:
            anew: count anew from here, between two requests.

        Keys: stage (254 = the draft layer), kind, programs (held or delayed), held_ns, overruns (that took
        longer to compute than they should have lasted, so that the times are not what was asked for),
        over_ns (by how much in all), worst_over_ns, worst_late_ns (the latest end of a hold), late
        (holds by how late they ended, in steps of 5 us; the 256th: or later).
        """
        return self.native.pace_kept(anew)

    @property
    def dropped_events(self) -> int:
        return self.native.dropped_events

    @property
    def tracing(self) -> bool:
        return self.native.tracing

    @tracing.setter
    def tracing(self, on: bool) -> None:
        self.native.tracing = on

    def now_ns(self) -> int:
        """The clock of the events."""
        return _core.steady_ns()

    def eval(self, tokens: Sequence[int]) -> dict[str, Any]:
        """Arrays `logits` [n, vocab], `hidden` [n, embd]; with a draft layer `nextn_logits` [n-1, vocab]."""
        try:
            with _native_errors(BadInput):
                return self.native.eval(list(tokens))
        except TypeError:
            raise BadInput("[eval] expected token ids that are whole numbers below 2^31") from None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.model)

    @property
    def end_tokens(self) -> list[int]:
        return self.tokenizer.end_tokens

    def tokens_of(self, prompt: str, chat: bool = False, thinking: bool | None = None) -> list[int]:
        """A prompt's ids. An empty one is the BOS token where the model has one.

        Args:
            chat: by the file's chat template.
            thinking: whether the model should think first, where the template has a switch for that; None: as
                the template has it.

        Raises:
            BadInput: an empty prompt for a model without BOS; a chat template that fails.
        """
        if chat:
            from strata_tui.chat import ChatTemplate

            template = ChatTemplate(self.model, self.tokenizer)
            if thinking is not None and not template.has_thinking_switch:
                self._note_once(
                    f"[chat] {self.model.file_name}: its template has no switch for thinking: "
                    "--thinking and --no-thinking change nothing"
                )
            return template.encode([{"role": "user", "content": prompt}], thinking=thinking)
        if thinking is not None:
            self._note_once(
                f"[chat] {self.model.file_name}: a raw prompt: --thinking and --no-thinking change nothing"
            )
        tokens = self.tokenizer.encode(prompt)
        if not tokens:
            if self.tokenizer.bos is None:
                raise BadInput(
                    f"[prompt] expected a text ({self.model.file_name} has no BOS token), got none"
                )
            tokens = [self.tokenizer.bos]
        return tokens

    def close(self) -> None:
        """Cancel, join every thread, free the memory; idempotent."""
        self.native.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _paced_spec(device: DeviceChoice, stage: int, bounds: Sequence[int], chunk: int) -> _core.DeviceSpec:
    rig = device.rig
    assert rig is not None
    times = rig.stage(stage, bounds)
    return _core.DeviceSpec.paced(
        rig.name,
        device.threads,
        list(device.cores),
        run_ms=table(times.run_ms, MAX_WINDOW_ROWS),
        chunk_ms=table(times.chunk_ms, chunk),
        run_ms_per_1k=times.run_ms_per_1k,
        position_offset=rig.position_offset,
        hand_off_ms=dataclasses.asdict(rig.hand_off_ms),
        times_ms={
            "verdict": rig.verdict_ms,
            "draft": rig.draft_ms,
            "commit": rig.commit_ms,
            "undo": rig.undo_ms,
        },
        jitter=rig.jitter,
        seed=rig.seed,
    )


def _device_spec(device: DeviceChoice) -> _core.DeviceSpec:
    pace = device.pace
    return _core.DeviceSpec(
        device.kind,
        device.threads,
        list(device.cores),
        times_ms=dict(pace.times_ms),
        seed=pace.seed,
        only=list(pace.only),
        chance=pace.chance,
        max_ms=pace.max_ms,
    )


def _refused_pins(stages: Sequence[_core.StageInfo]) -> list[str]:
    return [
        f"[device] stage {stage.index}: the system refused to pin it ({stage.device}); it runs on any core"
        for stage in stages
        if not stage.pinned
    ]


def _native_options(
    model: ModelFile,
    placement: Placement,
    split: Sequence[int],
    devices: Sequence[DeviceChoice],
    events: bool,
) -> _core.EngineOptions:
    options = _core.EngineOptions()
    options.split = list(split)
    options.context = placement.context or min(
        model.context_length or MAX_DEFAULT_CONTEXT, MAX_DEFAULT_CONTEXT
    )
    options.kv_type = placement.kv
    options.chunk = min(placement.chunk, options.context)
    bounds = [0, *split, model.n_layers]
    options.devices = [
        _paced_spec(device, stage, bounds, options.chunk) if device.rig else _device_spec(device)
        for stage, device in enumerate(devices)
    ]
    options.pipeline_max = placement.pipeline_max or 0
    options.isa = placement.isa
    options.events = events
    return options
