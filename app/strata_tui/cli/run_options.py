"""Options that run and open share, and their way into RunOptions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Placement, RunOptions, Sampling
from strata_tui.switches import BY_NAME, resolve

# The embedded model loops under greedy decoding; this reads well.
PLEASANT = Sampling(temperature=0.7, top_p=0.95, seed=7)


def _count(low: int, high: int) -> click.IntRange:
    return click.IntRange(low, high)


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option("--profile", metavar="NAME|FILE", help="A run profile: laptop, or a .toml file."),
    click.option("--stages", type=_count(1, 32), help="Number of stages.  [default: 2]"),
    click.option("--split", metavar="K1,K2..|auto", help="First layer of each later stage; auto: balanced by bytes."),
    click.option("--device", metavar="D,D..", help="Device of each stage: cpu, cpu:THREADS, cpu:THREADS@CORES."),
    click.option("--threads", type=_count(1, 1024), help="Threads per stage.  [default: cores / stages]"),
    click.option("--ctx", "context", type=_count(1, 1 << 30), help="Tokens of context.  [default: the model's, 8192 at most]"),
    click.option("--kv", type=click.Choice(["f32", "f16"]), help="Type of K/V cells.  [default: f16]"),
    click.option("--chunk", type=_count(1, 8192), help="Rows of a prompt read at a time.  [default: 512]"),
    click.option("--isa", type=click.Choice(["avx512", "avx2", "portable"]), help="CPU kernels; also STRATA_CPU_ISA."),
    click.option("--overlap/--no-overlap", default=None, help="Launch the next stage ahead (STRATA_SPLIT_OVERLAP)."),
    click.option("--pipeline-windows", type=_count(0, 32), help="Windows in flight; not in this version: runs as 0."),
    click.option("--pipeline-max", type=_count(0, 32), help="Windows in flight allocated at load."),
    click.option("--short-read", type=_count(0, 1 << 20), help="Prompt rests read through windows.  [default: 64]"),
    click.option("--draft", metavar="mtp|lookup|none|replay:Q", help="Where drafts come from."),
    click.option("--suffix-draft", is_flag=True, help="Another name of --draft lookup."),
    click.option("--draft-max", type=_count(0, 7), help="Drafts a window at most.  [default: 4]"),
    click.option("--draft-min-p", type=click.FloatRange(0, 1), help="Drafting stops below this probability."),
    click.option("--theta", type=click.FloatRange(min=0), help="The gate of guesses; used by pipelined windows."),
    click.option("--rate", type=click.FloatRange(0, 1e6), help="Tokens per second at most; 0: no cap."),
    click.option("--temp", "temperature", type=float, help="Temperature; 0 is greedy."),
    click.option("--top-k", type=int, help="Only the K likeliest tokens; 0: off."),
    click.option("--top-p", type=float, help="Only the likeliest tokens that hold P of the mass; 1: off."),
    click.option("--min-p", type=float, help="Only tokens at least P times as likely as the likeliest; 0: off."),
    click.option("--repeat-penalty", type=float, help="Divides the logits of the last 64 tokens; 1: off."),
    click.option("--seed", type=int, help="Seed of the sampling."),
    click.option("--chat/--raw", default=None, help="Use the file's chat template; default: where it has one."),
    click.option("--ignore-eos", is_flag=True, help="End tokens don't end the text."),
    click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="Write log lines here, not to stderr."),
]


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a command with the run options; they arrive in `**options`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _split(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "auto":
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--split: expected auto or layers like 12,24,36, got {text!r}") from None


def gather(options: dict[str, Any], model: Path | None, **more: Any) -> RunOptions:
    """RunOptions from parsed options: flag over environment over profile over default.

    Raises:
        BadInput: a value that can't be used.
    """
    from strata_tui.profile import Profile, load_profile

    profile = load_profile(options["profile"]) if options["profile"] else Profile(name="")
    if options["suffix_draft"]:
        if options["draft"] not in (None, "lookup"):
            raise BadInput(f"--suffix-draft: expected no other --draft beside it, got {options['draft']}")
        options["draft"] = "lookup"
    flags = {name: options.get(name) for name in BY_NAME}
    if flags["draft"] is not None:
        flags["draft"] = BY_NAME["draft"].read(flags["draft"], "--draft")
    switches, notes = resolve(flags, profile.switches)
    environment_split = os.environ.get("STRATA_LAYER_SPLIT")
    split_text = options["split"] if options["split"] is not None else environment_split
    device_text = options["device"] if options["device"] is not None else os.environ.get("STRATA_SPLIT_DEVICE")
    split = _split(split_text) if split_text is not None else profile.split
    if options["stages"] is not None and options["split"] is None:
        split = None  # a flag beats a split from the environment or a profile
    placement = Placement(
        stages=options["stages"] if options["stages"] is not None else (profile.stages if split is None else None),
        split=split,
        devices=profile.devices
        if device_text is None
        else tuple(DeviceChoice.parse(device) for device in device_text.split(",")),
        threads=options["threads"] or profile.threads,
        context=options["context"] or profile.context,
        kv=options["kv"] or profile.kv or "f16",
        chunk=options["chunk"] or profile.chunk or 512,
        pipeline_max=options["pipeline_max"],
        isa=options["isa"] or os.environ.get("STRATA_CPU_ISA", ""),
    )
    # The embedded model in the console reads well by itself; everything else is greedy until told otherwise.
    base = PLEASANT if more.pop("pleasant", False) else Sampling()
    asked = {key: options[key] for key in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed")}
    sampling = replace(base, **{**profile.sampling, **{k: v for k, v in asked.items() if v is not None}})
    return RunOptions(
        model=model,
        placement=placement,
        switches=switches,
        sampling=sampling,
        chat=options["chat"],
        ignore_eos=options["ignore_eos"],
        log=options["log"],
        notes=tuple(notes),
        **more,
    )


def parse_ids(text: str) -> tuple[int, ...]:
    """Token ids: comma or space separated, or @FILE with such a list."""
    if text.startswith("@"):
        text = Path(text[1:]).read_text(encoding="utf-8", errors="replace")
    try:
        ids = tuple(int(part) for part in text.replace(",", " ").split())
        if any(not 0 <= token < 1 << 31 for token in ids):
            raise ValueError
    except ValueError:
        raise BadInput(f"--tokens: expected ids like 12,7,301 or @FILE, got {text[:60]!r}") from None
    return ids
