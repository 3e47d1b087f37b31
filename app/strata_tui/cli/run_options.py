"""Options that run, eval and open share, and their way into RunOptions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.numbers import Whole
from strata_tui.errors import BadInput
from strata_tui.files import read_up_to, regular
from strata_tui.options import (
    GREEDY,
    MAX_STAGES,
    DeviceChoice,
    Placement,
    Profile,
    RunOptions,
    Sampling,
    parse_split,
)
from strata_tui.switches import (
    BY_NAME,
    FLAGS_WITHOUT_COUNTERPART,
    SWITCHES,
    reports,
    resolve,
    without_counterpart,
)

PROMPT_MIB = 64
"""Of a prompt file: more than any context holds."""

PLEASANT = Sampling(temperature=0.7, top_p=0.95, seed=7)
"""The embedded model loops under greedy decoding; this reads well."""

MODEL = click.argument("model", required=False, type=click.Path(path_type=Path))
MAX_TOKENS = click.option(
    "-n",
    "max_tokens",
    metavar="N",
    type=Whole(0, (1 << 31) - 1),
    default=256,
    show_default=True,
    help="Tokens of a text at most; 0: up to the context.",
)


def _known_cells(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value in (None, "f32", "f16"):
        return value
    later = " (int8 is not in this version)" if value == "int8" else ""
    raise click.BadParameter(f"{value!r} is not one of 'f32', 'f16'{later}.", ctx, param)


def kv_option(help: str, default: str | None = None) -> Callable[[Any], Any]:
    """--kv, the type of K/V cells."""
    return click.option("--kv", metavar="f32|f16", callback=_known_cells, default=default, help=help)


_IDS = re.compile(r"\s*[0-9]{1,10}((\s*,\s*|\s+)[0-9]{1,10})*\s*,?\s*")
_SWITCH_METAVARS = {"draft": "mtp|lookup|none|replay:Q", "draft_min_p": "P", "theta": "X"}


def _switch(name: str) -> Callable[[Any], Any]:
    """A switch's option; the switch itself reads its text: flags and variables accept the same."""
    switch = BY_NAME[name]
    if switch.default is False:
        return click.option(f"{switch.flag}/--no-{switch.flag[2:]}", default=None, help=_meaning(name))
    return click.option(switch.flag, metavar=_SWITCH_METAVARS.get(name, "N"), help=_meaning(name))


def _meaning(name: str) -> str:
    switch = BY_NAME[name]
    text = switch.meaning[0].upper() + switch.meaning[1:]
    if switch.environment:
        text += f"; {switch.environment}" + " (with STRATA_PIPELINE_DEBUG=1)" * switch.only_debug
    return text + ("." if switch.default in (None, False, 0) else f".  [default: {switch.default}]")


def _without_counterpart(flag: str) -> Callable[[Any], Any]:
    return click.option(flag, hidden=True)


DRAFT_MODEL = click.option(
    "--draft-model",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file whose NextN / MTP layer drafts, in place of the model's own.",
)

_OPTIONS: list[Callable[[Any], Any]] = [
    DRAFT_MODEL,
    click.option(
        "--profile", metavar="NAME|FILE", help="A run profile (strata-tui profiles) or a .toml file."
    ),
    click.option("--stages", metavar="N", type=Whole(1, 32), help="Number of stages.  [default: 2]"),
    click.option("--split", metavar="K1,K2..|auto", help="First layer of each later stage; auto: by bytes."),
    click.option("--device", metavar="D,D..", help="Of each stage: cpu, cpu:THREADS@CORES, paced:PROFILE .."),
    click.option("--threads", metavar="N", type=Whole(1, 1024), help="Per stage.  [default: cores / stages]"),
    click.option(
        "--ctx",
        "context",
        metavar="N",
        type=Whole(1, 1 << 30),
        help="Tokens of context.  [default: the model's, 8192 at most]",
    ),
    kv_option("Type of K/V cells.  [default: f16]"),
    click.option("--chunk", metavar="N", type=Whole(1, 8192), help="Prompt rows at a time.  [default: 512]"),
    click.option("--isa", metavar="NAME", help="CPU kernels: avx512, avx2, portable; STRATA_CPU_ISA."),
    *(_switch(switch.name) for switch in SWITCHES if switch.has_flag),
    click.option(
        "--pipeline-max",
        metavar="N",
        type=Whole(0, 32),
        help="Windows in flight allocated at load.  [default: --pipeline-windows; console: the stages]",
    ),
    click.option("--suffix-draft", is_flag=True, help="Another name of --draft lookup."),
    click.option("--temp", "temperature", metavar="T", type=float, help="Temperature; 0 is greedy."),
    click.option("--top-k", metavar="K", type=int, help="Only the K likeliest tokens; 0: off."),
    click.option(
        "--top-p", metavar="P", type=float, help="Only the likeliest tokens that hold P of the mass; 1: off."
    ),
    click.option(
        "--min-p",
        metavar="P",
        type=float,
        help="Only tokens at least P times as likely as the likeliest; 0: off.",
    ),
    click.option(
        "--repeat-penalty", metavar="X", type=float, help="Divides the logits of the last 64 tokens; 1: off."
    ),
    click.option("--seed", metavar="N", type=int, help="Seed of the sampling."),
    click.option(
        "--chat/--raw", default=None, help="Use the file's chat template, or don't; default: if any."
    ),
    click.option(
        "--thinking/--no-thinking",
        default=None,
        help="In a chat: let the model think first, or don't, where its template has a switch for that.",
    ),
    click.option("--ignore-eos", is_flag=True, help="End tokens don't end the text."),
    click.option(
        "--log", type=click.Path(path_type=Path, dir_okay=False), help="Write log lines here, not to stderr."
    ),
    *(_without_counterpart(flag) for flag in FLAGS_WITHOUT_COUNTERPART),
]


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a command with the run options; they arrive in `**options`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def gather(
    options: Mapping[str, Any],
    model: Path | None,
    sampling: Sampling = GREEDY,
    for_console: bool = False,
    **request: Any,
) -> RunOptions:
    """RunOptions from parsed options: flag over environment over profile over default.

    Args:
        sampling: what holds where nothing else is said.
        for_console: allocate for as many windows in flight as there are stages, so that they can be flipped.
        request: further fields of RunOptions.

    Raises:
        BadInput: a value that can't be used.
    """
    if model is not None:
        _is_no_recording(model)
    if options["draft_model"] is not None:
        regular(options["draft_model"], "a model file")
    profile = _profile(options["profile"])
    switches, notes = resolve(_switch_flags(options), profile.switches)
    if profile.per_node:
        profile = _per_node(profile, notes)
    for flag, why in FLAGS_WITHOUT_COUNTERPART.items():
        if options[flag[2:].replace("-", "_")] is not None:
            notes.append(without_counterpart(flag, why))
    wanted_reports, of_reports = reports()
    pipeline_max = options["pipeline_max"]
    if pipeline_max is None:
        pipeline_max = MAX_STAGES if for_console else switches["pipeline_windows"]
    asked = {name: options[name] for name in Sampling.__dataclass_fields__ if options[name] is not None}
    return RunOptions(
        model=model,
        draft_model=options["draft_model"],
        placement=replace(_placement(options, profile), pipeline_max=pipeline_max),
        switches=switches,
        sampling=replace(sampling, **{**profile.sampling, **asked}),
        chat=options["chat"],
        thinking=options["thinking"],
        ignore_eos=options["ignore_eos"],
        log=options["log"],
        reports=wanted_reports,
        notes=(*notes, *of_reports),
        **request,
    )


def _is_no_recording(model: Path) -> None:
    from strata_tui.record.frames import MAGIC  # here: no other file needs it

    try:
        with regular(model, "a model file").open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError:
        return  # who opens it says why
    if start == MAGIC:
        raise BadInput(f"{model}: expected a model file, got a recording: strata-tui replay {model} plays it")


def _profile(name_or_file: str | None) -> Profile:
    if name_or_file is None:
        return Profile(name="")
    # Here: most runs have none, and the first paint does not wait.
    from strata_tui.profile import load_profile

    return load_profile(name_or_file)


def _per_node(profile: Profile, notes: list[str]) -> Profile:
    from strata_tui.engine import cpu_info  # here: no other profile asks the machine
    from strata_tui.placement import stage_per_node

    info = cpu_info()
    devices = stage_per_node(info["numa"], info["cores"])
    if devices is None:
        notes.append(
            f"[profile] {profile.name}: expected cores on two NUMA nodes or more, got one node: "
            f"{profile.stages or 1} stages share it"
        )
        return profile
    return replace(profile, stages=len(devices), split=None, devices=devices)


def _switch_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    for switch in SWITCHES:
        if not switch.has_flag:
            continue
        value = options[switch.name]
        flags[switch.name] = switch.read(value, switch.flag) if isinstance(value, str) else value
    if options["suffix_draft"]:
        if flags["draft"] not in (None, "lookup"):
            raise BadInput(f"--suffix-draft: expected no other --draft beside it, got {flags['draft']}")
        flags["draft"] = "lookup"
    return flags


def _placement(options: Mapping[str, Any], profile: Profile) -> Placement:
    environment = os.environ
    layout = _agreeing(
        {"stages": options["stages"], **_read_layout(options, "split", "device", "--")},
        _read_layout(environment, "STRATA_LAYER_SPLIT", "STRATA_SPLIT_DEVICE"),
        {"stages": profile.stages, "split": profile.split, "devices": profile.devices},
    )
    isa, isa_from = options["isa"], "--isa"
    if isa is None:
        isa, isa_from = environment.get("STRATA_CPU_ISA", ""), "STRATA_CPU_ISA"
    if isa not in ("avx512", "avx2", "portable") and (isa or isa_from == "--isa"):
        raise BadInput(f"{isa_from}: expected avx512, avx2 or portable, got {isa!r}")
    return Placement(
        stages=layout.get("stages"),
        split=layout.get("split") or None,  # () = auto
        devices=layout.get("devices"),
        threads=options["threads"] or profile.threads,
        context=options["context"] or profile.context,
        kv=options["kv"] or profile.kv or "f16",
        chunk=options["chunk"] or profile.chunk or 512,
        isa=isa,
    )


def _read_layout(texts: Mapping[str, Any], split: str, devices: str, prefix: str = "") -> dict[str, Any]:
    layout: dict[str, Any] = {}
    if _is_given(texts.get(split), prefix):
        layout["split"] = parse_split(texts[split], prefix + split) or ()
    if _is_given(texts.get(devices), prefix):
        names = texts[devices].split(",")
        layout["devices"] = tuple(DeviceChoice.parse(name, prefix + devices) for name in names)
    return layout


def _is_given(text: str | None, prefix: str) -> bool:
    """An empty variable is not set; an empty option is a value that can't be used."""
    return bool(text) or (text is not None and prefix == "--")


def _agreeing(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """Each of stages, split and devices from the first source that says it.

    What asks for another number of stages than a source before it gives way: `--stages 3` beats a profile's
    split. Within one source nothing gives way: that is for the engine to refuse.
    """
    kept: dict[str, Any] = {}
    count = 0  # of stages; 0 = not said yet
    for source in sources:
        before = count
        for key, value in source.items():
            n = value if key == "stages" else len(value or ()) + (key == "split")
            says_count = (n is not None and n > 1) or key == "stages"
            if value is None or key in kept or (before and says_count and n != before):
                continue
            kept[key] = value
            count = count or (n if says_count else 0)
    return kept


def read_text(flag: str, file: str) -> str:
    """What a prompt file says; - is standard input.

    Raises:
        BadInput: it is longer than PROMPT_MIB, a pipe or a device.
    """
    if file == "-":
        data = read_up_to(PROMPT_MIB, sys.stdin.buffer, f"{flag} -")
    else:
        with regular(Path(file), "a regular file, or - for standard input").open("rb") as opened:
            data = read_up_to(PROMPT_MIB, opened, f"{flag} {file}")
    return data.decode("utf-8", "replace")


def parse_ids(text: str) -> tuple[int, ...]:
    """Token ids: comma or space separated, or @FILE with such a list; @- reads standard input."""
    if text.startswith("@"):
        text = read_text("--tokens", text[1:])
    if not text.strip():
        raise BadInput("--tokens: expected at least one token, got none")
    ids = _IDS.fullmatch(text) and tuple(int(part) for part in text.replace(",", " ").split())
    if not ids or any(token >= 1 << 31 for token in ids):
        raise BadInput(f"--tokens: expected ids like 12,7,301 or @FILE, got {text[:60]!r}")
    return ids
