"""From the options of a run to an open model, with prompts for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from strata_tui.terminal_text import counted, printable, size
from strata_tui.tui.about import about_engine, about_recording
from strata_tui.tui.frame import ModelLabel, StageLabel
from strata_tui.tui.load import Load, anonymous_bytes
from strata_tui.tui.opened import Opened
from strata_tui.tui.saved_profile import profile_of
from strata_tui.tui.texts import CHAT_PROMPTS, PROMPTS

if TYPE_CHECKING:
    from pathlib import Path

    from strata_tui.engine import Engine
    from strata_tui.gguf_file import ModelFile
    from strata_tui.options import RunOptions, Sampling
    from strata_tui.record.playback import Playback
    from strata_tui.record.recording import Recording


def open_model(options: RunOptions, load: Load) -> Opened:
    """Open what the options name; everything heavy is imported here, behind the first paint.

    What fails soon is done first: nobody waits for gigabytes to be told of a tokenizer.

    Raises:
        BadInput: a file or a placement that can't be used.
        Cancelled: the console has been left.
    """
    load.what = printable(options.model.name, newlines=False) if options.model else "the embedded model"
    load.begin("engine")
    from strata_tui.engine import Engine, cpu_info
    from strata_tui.gguf_file import open_model_file, require_supported
    from strata_tui.placement import place
    from strata_tui.tokenizer import Tokenizer

    step = load.begin("header")
    model = open_model_file(options.model, options.draft_model)
    require_supported(model)
    split, _ = place(options.placement, model, len(cpu_info()["cores"]))
    step.text = (
        f"{printable(model.architecture, newlines=False)}, {model.n_layers} layers, "
        f"{counted(len(model.tensors), 'tensor')}, {size(model.native.size_bytes)}"
    )
    step = load.begin("tokenizer")
    tokenizer = Tokenizer(model)
    step.text = counted(tokenizer.n_vocab, "token")
    _read_weights(model, split, load)
    _expect_copies(model, load)
    engine = Engine(model, options.placement)
    try:
        engine.tokenizer = tokenizer
        engine.set_switches(options.switches)
        engine.switches.kernel_times = "verify_profile" in options.reports
        load.begin("prompt")
        return _opened(engine, options)
    except BaseException:
        engine.close()
        raise


def _read_weights(model: ModelFile, split: Sequence[int], load: Load) -> None:
    """Page the weights in, unless the memory would not hold them: then they come and go while it decodes."""
    from strata_tui.engine import available_memory
    from strata_tui.paging import page_in, weight_ranges

    step = load.begin("weights")
    ranges = weight_ranges(model, split)
    total = sum(part.end - part.begin for part in ranges)
    available = available_memory()
    if available is not None and total > available:
        step.text = f"{size(total)}, of memory {size(available)} are available: read as they are needed"
        return
    step.total = total
    had_to_read = False

    def note(n_bytes: int, was_read: bool, stage: int) -> None:
        nonlocal had_to_read
        load.check()
        had_to_read |= was_read
        step.done += n_bytes
        step.text = f"stage {stage}"

    page_in(ranges, note)
    rate = total / max(1e-9, load.clock() - (step.began_s or 0.0))
    step.text = f"{size(total)}, " + (f"{rate / 1e9:.2f} GB/s" if had_to_read else "in memory already")


def _expect_copies(model: ModelFile, load: Load) -> None:
    """The engine makes them within one call: how far it is shows in what this process holds."""
    step = load.begin("copies")
    copied = [tensor for tensor in model.loaded_tensors if tensor.is_dequantised or tensor.reordered]
    if not copied:
        step.text = "none are needed"
        load.begin("memory")
        return
    begin = anonymous_bytes()
    step.text = f"of {', '.join(sorted({tensor.type for tensor in copied}))}"
    step.total = sum(tensor.loaded_bytes for tensor in copied)
    step.measure = lambda: anonymous_bytes() - begin


def _opened(engine: Engine, options: RunOptions) -> Opened:
    from strata_tui.record.recorder import recording_header, token_piece
    from strata_tui.record.trace import trace_meta

    chat = engine.model.has_template if options.chat is None else options.chat
    first = () if options.prompt is None else (options.prompt,)
    prompts, chat_prompts = (*first, *PROMPTS), (*first, *CHAT_PROMPTS)
    engine.tokens_of((chat_prompts if chat else prompts)[0], chat, options.thinking)  # what fails is said now
    label = ModelLabel(
        name=printable(engine.model.name, newlines=False),
        arch=printable(engine.model.architecture, newlines=False),
        n_layers=engine.n_layers,
        context=engine.context,
        stages=tuple(StageLabel(s.index, s.device, s.first_layer, s.last_layer) for s in engine.stages),
        has_draft_layer=engine.has_draft_layer,
        emulated=engine.emulated,
        pipeline_max=engine.pipeline_max,
        shared_cores=engine.shared_cores,
        hand_offs=engine.hand_offs,
    )
    return Opened(
        engine=engine,
        label=label,
        encode=lambda prompt, chat: engine.tokens_of(prompt, chat, options.thinking),
        decoder=engine.tokenizer.decoder,
        sampling=lambda request: _sampling(options.sampling, request),
        end_tokens=[] if options.ignore_eos else engine.end_tokens,
        max_tokens=options.max_tokens,
        prompts=prompts,
        chat_prompts=chat_prompts if engine.model.has_template else (),
        chat=chat,
        trace_meta=lambda: trace_meta(engine),
        log=None if options.log is None else lambda line: _append(options.log, line),
        reports=options.reports,
        recording_header=lambda: recording_header(engine),
        piece=token_piece(engine),
        profile=lambda name, switches: profile_of(options, engine, name, switches),
        about=lambda: about_engine(engine, options.placement.kv),
    )


def recorded_label(recording: Recording) -> ModelLabel:
    """What a recording says of its model."""
    return ModelLabel(
        name=recording.name or recording.model,
        arch=recording.arch,
        n_layers=recording.n_layers,
        context=recording.context,
        stages=tuple(
            StageLabel(i, s.device, s.first_layer, s.last_layer) for i, s in enumerate(recording.stages)
        ),
        has_draft_layer=recording.has_draft_layer,
        emulated=recording.emulated,
        pipeline_max=recording.pipeline_max,
        shared_cores=recording.shared_cores,
        hand_offs=tuple(stage.hand_off_ms for stage in recording.stages),
    )


def open_tape(tape: Playback) -> Opened:
    """A recording in place of a model."""
    recording = tape.recording
    return Opened(
        engine=tape,
        label=recorded_label(recording),
        encode=lambda prompt, chat: [],
        decoder=_no_decoder,
        sampling=lambda request: None,
        end_tokens=[],
        max_tokens=0,
        prompts=(),
        chat_prompts=(),
        chat=False,
        trace_meta=recording.trace_meta,
        piece=recording.piece,
        about=lambda: about_recording(recording),
        tape=tape,
    )


def _no_decoder() -> NoReturn:
    raise AssertionError("BUG: a recording decodes nothing")


def _append(path: Path | None, line: str) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _sampling(asked: Sampling, request: int) -> Sampling:
    """A new seed for every text, so that a prompt that comes round again goes another way."""
    return replace(asked, seed=(asked.seed + request) % (1 << 64))
