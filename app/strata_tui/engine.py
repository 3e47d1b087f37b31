"""Engine and Session: the two nouns of the program, over the native module."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from strata_tui import _core
from strata_tui.errors import BadInput, StrataError
from strata_tui.gguf_file import ModelFile, embedded_model_path, require_supported
from strata_tui.options import DeviceChoice, Placement, Sampling
from strata_tui.events import Events
from strata_tui.tokenizer import Tokenizer

__all__ = ["Engine", "Sampling", "Session", "Switches", "balanced_split", "cpu_info"]

cpu_info = _core.cpu_info
MAX_DEFAULT_CONTEXT = 8192


def balanced_split(layer_bytes: Sequence[int], tail_bytes: int, stages: int) -> tuple[int, ...]:
    """First layer of each later stage, so that the stage with the most bytes of weights has as few as possible.

    Args:
        layer_bytes: of each layer.
        tail_bytes: what the last stage reads besides (head and draft layer).
        stages: at most as many as layers.
    """
    n = len(layer_bytes)
    total = [0]
    for size in layer_bytes:
        total.append(total[-1] + size)
    # best[s][i]: least possible maximum with s stages over the first i layers, and where the last of them begins
    best: list[list[tuple[int, int]]] = [[(total[i], 0) for i in range(n + 1)]]
    for s in range(2, stages + 1):
        row = [(1 << 62, 0)] * (n + 1)
        for i in range(s, n + 1):
            tail = tail_bytes if s == stages and i == n else 0
            row[i] = min(
                (max(best[-1][j][0], total[i] - total[j] + tail), j) for j in range(s - 1, i)
            )
        best.append(row)
    split: list[int] = []
    end = n
    for s in range(stages, 1, -1):
        end = best[s - 1][end][1]
        split.append(end)
    return tuple(reversed(split))


class Switches:
    """The live switches: set an attribute, and it takes effect at the next verdict.

    `overlap`, `pipeline_windows`, `draft`, `draft_max`, `draft_min_p`, `theta`, `short_read`, `rate`, `paused`.
    """

    def __init__(self, native: _core.Engine) -> None:
        object.__setattr__(self, "_native", native)
        object.__setattr__(self, "_switches", native.switches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._switches, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self._switches), name):
            raise AttributeError(f"there is no switch {name!r}")
        try:
            setattr(self._switches, name, value)
        except (_core.Error, TypeError) as error:
            raise BadInput(str(error).splitlines()[0]) from None

    def in_force(self) -> dict[str, Any]:
        """What the running request goes by."""
        return self._native.in_force()

    def notices(self) -> list[str]:
        """A line for each switch that was asked for and can't apply, since the last call."""
        return self._switches.notices()

    def step(self) -> None:
        """While paused: let one window through."""
        self._switches.step()


class Session:
    """One line of tokens. Requests follow one another on it; a prompt that extends it is read from there on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._native = engine.native.session()

    def start(
        self,
        tokens: Sequence[int],
        max_tokens: int = 0,
        sampling: Sampling = Sampling(),
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
            self._native.start(list(tokens), max_tokens, native, list(end_tokens), list(replay))
        except (_core.Error, TypeError) as error:
            raise BadInput(str(error).splitlines()[0]) from None

    def read(self) -> list[int]:
        """Tokens emitted since the last call; never waits."""
        return self._native.read()

    def wait(self, timeout_s: float) -> bool:
        """Until there are tokens to read or the request has ended; False after `timeout_s`."""
        return self._native.wait(timeout_s)

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
        return self._native.fingerprint()

    def record_plain(self, tokens: Sequence[int], **request: Any) -> list[int]:
        """The text of plain decoding, for `replay` drafts; the session begins anew afterwards."""
        switches = self._engine.switches
        draft, rate = switches.draft, switches.rate
        switches.draft, switches.rate = "none", 0.0
        try:
            self.start(tokens, **request)
            text: list[int] = []
            while self.running:
                self.wait(1.0)
            text += self.read()
        finally:
            switches.draft, switches.rate = draft, rate
            self._native = self._engine.native.session()
        return text

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int = 0,
        sampling: Sampling = Sampling(),
        ignore_eos: bool = False,
    ) -> Iterator[int]:
        """Token ids as they come. Closing the iterator cancels the request.

        Raises:
            BadInput: see `start`.
            StrataError: a stage failed; the session has ended.
        """
        tokens = self._engine.tokens_of(prompt) if isinstance(prompt, str) else list(prompt)
        request = {
            "max_tokens": max_tokens,
            "sampling": sampling,
            "end_tokens": [] if ignore_eos else self._engine.end_tokens,
        }
        replay = self.record_plain(tokens, **request) if self._engine.switches.draft.startswith("replay") else []
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
                while self.running:
                    self.wait(1.0)
        if self.finish == "error":
            raise StrataError(self.error)


class Engine:
    """A model placed on stages. Use it as a context manager, or close it.

    Attributes:
        model: the file.
        switches: live switches.
        stages: what lies where: index, device, first_layer, last_layer, bytes.
    """

    emulated = False

    def __init__(self, model: ModelFile, placement: Placement, events: bool = True) -> None:
        require_supported(model)
        self.model = model
        options = _native_options(model, placement)
        options.events = events
        try:
            self.native = _core.Engine(model.native, options)
        except _core.Error as error:
            raise BadInput(str(error)) from None
        except MemoryError:
            raise BadInput("[engine] not enough memory: try a smaller --ctx or --chunk") from None
        self.switches = Switches(self.native)
        self.stages = self.native.stages
        self.n_layers = self.native.n_layers
        self.n_vocab = self.native.n_vocab
        self.context = self.native.context
        self.has_draft_layer = self.native.has_draft_layer

    @classmethod
    def open(
        cls,
        path: Path | str | None = None,
        *,
        split: Sequence[int] | None = None,
        stages: int | None = None,
        devices: Sequence[str] | None = None,
        threads: int | None = None,
        context: int | None = None,
        kv: str = "f16",
        chunk: int = 512,
        pipeline_max: int | None = None,
        isa: str = "",
        events: bool = True,
        **switches: Any,
    ) -> Engine:
        """Open a model file (None: the embedded model) and place it.

        Raises:
            BadInput: a file, placement or switch that can't be used.
        """
        placement = Placement(
            stages=stages,
            split=None if split is None else tuple(split),
            devices=None if devices is None else tuple(DeviceChoice.parse(text) for text in devices),
            threads=threads,
            context=context,
            kv=kv,
            chunk=chunk,
            pipeline_max=pipeline_max,
            isa=isa,
        )
        engine = cls(ModelFile(embedded_model_path() if path is None else path), placement, events)
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

    def session(self) -> Session:
        """A new session; the one before is ended."""
        return Session(self)

    def events(self) -> Events:
        """What was recorded since the last call."""
        return self.native.drain_events()

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
        """Arrays `logits` [n, vocab], `hidden` [n, embd] and, with a draft layer, `nextn_logits` [n-1, vocab]."""
        try:
            return self.native.eval(list(tokens))
        except (_core.Error, TypeError) as error:
            raise BadInput(str(error).splitlines()[0]) from None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.model)

    @property
    def end_tokens(self) -> list[int]:
        return self.tokenizer.end_tokens

    def tokens_of(self, prompt: str, chat: bool = False) -> list[int]:
        """A prompt's ids. An empty one is the BOS token where the model has one.

        Raises:
            BadInput: an empty prompt for a model without BOS; a chat template that fails.
        """
        if chat:
            from strata_tui.chat import ChatTemplate

            return ChatTemplate(self.model, self.tokenizer).encode([{"role": "user", "content": prompt}])
        tokens = self.tokenizer.encode(prompt)
        if not tokens:
            if self.tokenizer.bos is None:
                raise BadInput(f"expected a prompt ({self.model.file_name} has no BOS token to begin with), got none")
            tokens = [self.tokenizer.bos]
        return tokens

    def close(self) -> None:
        """Cancel, join every thread, free the memory; idempotent."""
        self.native.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _native_options(model: ModelFile, placement: Placement) -> _core.EngineOptions:
    """Defaults filled in: two stages, layers by bytes of weights, an equal share of the cores."""
    n_layers = model.n_layers
    if placement.split is not None:
        split = placement.split
        if placement.stages is not None and placement.stages != len(split) + 1:
            raise BadInput(f"--stages: expected {len(split) + 1} as --split has it, got {placement.stages}")
    else:
        stages = placement.stages or (len(placement.devices) if placement.devices and len(placement.devices) > 1 else 0)
        stages = stages or min(2, n_layers)
        if not 1 <= stages <= min(n_layers, 32):
            raise BadInput(
                f"--stages: expected 1 to {min(n_layers, 32)} ({model.file_name} has {n_layers} layers), got {stages}"
            )
        split = balanced_split(model.layer_bytes, model.tail_bytes, stages)
    n_stages = len(split) + 1
    choices = placement.devices or (DeviceChoice(),)
    if len(choices) == 1:
        choices *= n_stages
    share = placement.threads or max(1, len(cpu_info()["cores"]) // n_stages)
    options = _core.EngineOptions()
    options.split = list(split)
    options.devices = [_core.DeviceSpec("cpu", c.threads or share, list(c.cores)) for c in choices]
    trained = model.context_length
    options.context = placement.context or min(trained, MAX_DEFAULT_CONTEXT) or MAX_DEFAULT_CONTEXT
    try:
        options.kv_type = placement.kv
    except _core.Error as error:
        raise BadInput(str(error)) from None
    options.chunk = min(placement.chunk, options.context) if placement.chunk > 0 else placement.chunk
    options.pipeline_max = placement.pipeline_max or 0
    options.isa = placement.isa
    return options
