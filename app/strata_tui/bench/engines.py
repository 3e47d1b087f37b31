"""Where runs take place: engines that are kept, one a placement, or a process for every run."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from strata_tui.bench.arms import Arm
from strata_tui.bench.one_run import WARM_UP_TOKENS, Request, Run, run_and_record, run_once, standing_switches
from strata_tui.engine import Engine, available_memory
from strata_tui.errors import StrataError
from strata_tui.gguf_file import ModelFile
from strata_tui.options import Placement


class Runner(Protocol):
    """Runs an arm, warm: what an arm needs before it can be measured has happened."""

    def run(self, arm: Arm, request: Request, replay: Sequence[int] = ()) -> Run: ...

    def close(self) -> None: ...


@dataclass
class _Open:
    engine: Engine
    defaults: dict[str, Any]
    warm: set[str] = field(default_factory=set)  # names of arms


class KeptEngines:
    """An engine for each placement, kept while memory allows; live switches are set before each run.

    With `bound` events are recorded, and each run has its lower bound.
    """

    def __init__(
        self, model: ModelFile, note: Callable[[str], None] = lambda line: None, bound: bool = False
    ) -> None:
        self._model = model
        self._bound = bound
        self._note = note
        self._open: dict[Placement, _Open] = {}  # the last used one last
        self._largest = model.native.size_bytes
        self._said = False

    def engine(self, placement: Placement) -> Engine:
        return self._at(placement).engine

    def run(self, arm: Arm, request: Request, replay: Sequence[int] = ()) -> Run:
        here = self._at(arm.placement)
        here.engine.set_switches(
            {
                name: here.defaults[name] if value is None else value
                for name, value in arm.options.switches.items()
            }
        )
        if arm.name not in here.warm:
            limit = min(request.max_tokens or WARM_UP_TOKENS, WARM_UP_TOKENS)
            run_once(here.engine, replace(request, max_tokens=limit))
            here.warm.add(arm.name)
        if self._bound:
            return run_and_record(here.engine, request, replay)[0]
        return run_once(here.engine, request, replay)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].engine.close()

    def _at(self, placement: Placement) -> _Open:
        here = self._open.pop(placement, None)
        if here is None:
            self._make_room()
            engine = Engine(self._model, placement, events=self._bound)
            here = _Open(engine, standing_switches(engine))
            self._largest = max(self._largest, engine_bytes(engine))
        self._open[placement] = here
        return here

    def _make_room(self) -> None:
        """Closes engines, the one used longest ago first, until another one fits."""
        while (
            self._open and (available := available_memory()) is not None and available < self._largest * 1.1
        ):
            if not self._said:
                self._note(
                    f"[bench] not enough memory to keep all engines: another one takes about "
                    f"{self._largest / 1e9:.1f} GB, {available / 1e9:.1f} GB are free; "
                    "engines are closed and loaded anew between runs (loading is not measured)"
                )
                self._said = True
            self._open.pop(next(iter(self._open))).engine.close()


def engine_bytes(engine: Engine) -> int:
    """What an engine has allocated."""
    of_stages = sum(s.weight_bytes + s.kv_bytes + s.state_bytes + s.buffer_bytes for s in engine.stages)
    return int(of_stages + engine.native.draft_bytes)


class FreshProcesses:
    """A process for every run: it opens the engine, warms it up, runs once and ends."""

    def __init__(self, model: ModelFile, bound: bool = False) -> None:
        self._paths = model.path, model.draft.path if model.draft else None
        self._bound = bound

    def run(self, arm: Arm, request: Request, replay: Sequence[int] = ()) -> Run:
        context = multiprocessing.get_context("spawn")  # a fork would share the parent's pages
        here, there = context.Pipe()
        process = context.Process(
            target=_run_in_child,
            args=(there, self._paths, self._bound, arm, request, tuple(replay)),
            daemon=True,
        )
        try:
            with _interrupts_wait():
                process.start()
            there.close()
            outcome = here.recv()
        except EOFError:
            process.join()
            raise StrataError(
                f"[bench] {arm.name}: its process ended without a result (exit code {process.exitcode})"
            ) from None
        finally:
            here.close()
            if process.is_alive():
                process.join(5.0)
                process.kill()
            if process.pid is not None:
                process.join()
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Run)
        return outcome

    def close(self) -> None:
        """Nothing is kept."""


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C is seen at the end of this: a process is not left half started, and begins with it held back."""
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))  # another thread may get it
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


def _end_with_the_parent() -> None:
    """However that ends: nobody would read what is computed on."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _run_in_child(
    parent: Connection,
    paths: tuple[Path, Path | None],
    bound: bool,
    arm: Arm,
    request: Request,
    replay: Sequence[int],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which gets it too, ends this process
    Thread(target=_end_with_the_parent, daemon=True).start()
    outcome: Run | Exception
    try:
        engines = KeptEngines(ModelFile(*paths), bound=bound)
        try:
            outcome = engines.run(arm, request, replay)
        finally:
            engines.close()
    except (StrataError, OSError) as error:
        outcome = error
    with suppress(BrokenPipeError):  # the parent was interrupted and listens no more
        parent.send(outcome)
