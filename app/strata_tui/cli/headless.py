"""A request without the console: text streams out, Ctrl-C ends it at a token, events are drained."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from strata_tui.analysis.pipeline_log import PipelineLog
from strata_tui.cli.reading_line import read_weights
from strata_tui.engine import Engine
from strata_tui.errors import BadInput, StrataError
from strata_tui.events import EVENT_DTYPE, Events
from strata_tui.gguf_file import open_model_file
from strata_tui.options import RunOptions
from strata_tui.record.recorder import Recorder, recording_header, standing_switches, token_piece
from strata_tui.tokenizer import printable

DRAIN_S = 0.05  # rings hold far more than is recorded in this time


@dataclass
class Outcome:
    """What a request gave."""

    tokens: list[int]
    text: str
    finish: str
    stats: dict[str, Any]
    events: Events
    ended_by: int  # the signal that did; 0 = none

    @property
    def exit_code(self) -> int:
        """As a shell tells of signals: 130 for Ctrl-C, 143 for being told to end, 129 for a lost terminal."""
        return 128 + self.ended_by if self.ended_by else 0


def open_engine(options: RunOptions) -> Engine:
    """The engine of a run, switches set."""
    model = open_model_file(options.model, options.draft_model)
    read_weights(model)
    engine = Engine(model, options.placement)
    try:
        engine.set_switches(options.switches)
        engine.switches.kernel_times = "verify_profile" in options.reports
    except Exception:
        engine.close()
        raise
    return engine


def about(engine: Engine) -> dict[str, Any]:
    """What `run --json` says of the model and of how it is computed."""
    return {
        "model": engine.model.file_name,
        "model_sha256": engine.model.sha256,
        "draft_model": engine.model.draft.file_name if engine.model.draft else None,
        "arch": engine.model.architecture,
        "emulated": engine.emulated,
        "numerics": engine.stages[0].numerics,
    }


def uses_chat(engine: Engine, options: RunOptions) -> bool:
    """Chat where it was asked for, or where the file has a template and nothing was said."""
    return engine.model.has_template if options.chat is None else options.chat


def prompt_tokens(engine: Engine, options: RunOptions) -> list[int]:
    if options.tokens is not None:
        return list(options.tokens)
    chat = uses_chat(engine, options)
    return engine.tokens_of(options.prompt or "", chat=chat, thinking=options.thinking)


_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupt:
    """Ctrl-C, or being told to end: the first ends the text at a token, the second ends the program."""

    number = 0  # of the first signal; 0 = none came

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel

    def __call__(self, number: int, _: object) -> None:
        if self.number:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        self.number = number
        self._cancel()


@contextmanager
def _interruptible(cancel: Callable[[], None]) -> Iterator[_Interrupt]:
    handler = _Interrupt(cancel)
    before = {number: signal.signal(number, handler) for number in _ENDS}
    try:
        yield handler
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def decode(
    engine: Engine,
    options: RunOptions,
    write: Callable[[str], None],
    log: Callable[[str], None] = lambda line: None,
    recorder: Recorder | None = None,
) -> Outcome:
    """Run one request to its end.

    Args:
        write: is given the text as it comes.
        log: is given the lines of STRATA_PIPELINE_LOG, where that is asked for.
        recorder: is given the request, its events and its text.

    Raises:
        BadInput: a prompt that can't be used.
        StrataError: a stage failed.
    """
    session = engine.session()
    tokens = prompt_tokens(engine, options)
    request: dict[str, Any] = {
        "max_tokens": options.max_tokens,
        "sampling": options.sampling,
        "end_tokens": [] if options.ignore_eos else end_tokens(engine, options),
    }
    decoder = _decoder(engine, options)
    text: list[str] = []
    emitted: list[int] = []
    events: list[Events] = []
    verdicts = PipelineLog(engine.emulated) if "pipeline_log" in options.reports else None

    def say(piece: str) -> None:
        if piece:
            text.append(piece)
            write(piece)

    with _interruptible(lambda: session.cancel()) as interrupt:
        replay = session.record_plain(tokens, **request) if engine.switches.draft.startswith("replay") else []
        engine.events()  # what was recorded before this request
        engine.pace_kept(anew=True)
        if not interrupt.number:
            if recorder is not None:
                shown = options.prompt if options.prompt is not None else _prompt_text(engine, tokens)
                recorder.begin(engine.now_ns(), tokens, shown, options.sampling, options.max_tokens)
            session.start(tokens, replay=replay, **request)
        if interrupt.number:  # perhaps between the two
            session.cancel()
        while True:
            ended = not session.running
            new = session.read()
            emitted += new
            piece = decoder.feed(new) + (decoder.flush() if ended else "")
            say(piece)
            events.append(engine.events())
            if recorder is not None:
                recorder.take(events[-1])
                recorder.wrote(engine.now_ns(), new, piece)
            for line in verdicts.take(events[-1]) if verdicts else ():
                log(line)
            if ended:
                break
            session.wait(DRAIN_S)
    if recorder is not None:
        recorder.end(engine.now_ns(), session.finish, session.error, session.stats())
    for line in verdicts.finish() if verdicts else ():
        log(line)
    if session.finish == "error":
        raise StrataError(session.error)
    return Outcome(
        tokens=emitted,
        text="".join(text),
        finish=session.finish,
        stats=session.stats(),
        events=np.concatenate(events) if events else np.empty(0, EVENT_DTYPE),
        ended_by=interrupt.number,
    )


def _prompt_text(engine: Engine, tokens: list[int]) -> str:
    try:
        return engine.tokenizer.decode(tokens)
    except BadInput:
        return ""


class _Silent:
    """Token ids without a tokenizer: they are the output, there is no text."""

    def feed(self, tokens: object) -> str:
        return ""

    def flush(self) -> str:
        return ""


def end_tokens(engine: Engine, options: RunOptions) -> list[int]:
    """What ends a text of this model; [] for token ids where the file has no usable tokenizer."""
    try:
        return engine.end_tokens
    except BadInput:
        if options.tokens is None:
            raise
        return []  # a file without a usable tokenizer still runs on token ids


def _decoder(engine: Engine, options: RunOptions) -> Any:
    try:
        return engine.tokenizer.decoder()
    except BadInput:
        if options.tokens is None:
            raise
        return _Silent()


def to_stdout(piece: str) -> None:
    """Exact into a pipe; on a terminal nothing of a model's text may move the cursor."""
    if sys.stdout.isatty():
        data = printable(piece).encode(sys.stdout.encoding, "replace")
    else:
        data = piece.encode("utf-8", "replace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def log_lines(options: RunOptions) -> Iterator[Callable[[str], None]]:
    """Where log lines go: --log FILE, or stderr."""
    if options.log is None:
        yield lambda line: print(line, file=sys.stderr)
        return
    from strata_tui.files import named

    with named(options.log), options.log.open("a", encoding="utf-8") as file:
        yield lambda line: print(line, file=file)


@contextmanager
def recording_to(path: Path | None, engine: Engine) -> Iterator[Recorder | None]:
    """Records what is decoded within; None where no file is named. What went wrong stands in its `error`."""
    if path is None:
        yield None
        return
    before = engine.dropped_events
    switches = standing_switches(engine)  # now: a text recorded for `replay` drafts has others for a while
    recorder = Recorder(path, lambda: {**recording_header(engine), **switches}, token_piece(engine))
    try:
        yield recorder
    finally:
        recorder.close(engine.dropped_events - before)
