"""strata-tui inspect: what is in a model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from strata_tui.cli.numbers import Whole
from strata_tui.cli.run_options import DRAFT_MODEL, kv_option
from strata_tui.files import regular
from strata_tui.terminal_text import layers


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024 or unit == "GiB":
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    raise AssertionError


def _token(token: dict[str, Any] | None) -> str:
    return "none" if token is None else f"{token['text']} ({token['id']})"


def _tokenizer(about: dict[str, Any]) -> list[tuple[str, str]]:
    tokenizer, vocabulary = about["tokenizer"], about["vocabulary"]
    size = "no tokens" if vocabulary is None else f"{vocabulary:,} tokens"
    rows = [("tokenizer", f"{tokenizer['model']} / {tokenizer['pre'] or 'default'}, {size}")]
    if tokenizer["problem"]:
        return [*rows, ("", f"can't be used: {tokenizer['problem']}")]
    ends = ", ".join(map(_token, tokenizer["end_tokens"])) or "none"
    first = ", put before every text" if tokenizer["add_bos"] and tokenizer["bos"] else ""
    return [
        *rows,
        ("", f"{tokenizer['control']:,} control and {tokenizer['user_defined']:,} user-defined tokens"),
        ("", f"begin {_token(tokenizer['bos'])}{first}; end {ends}"),
    ]


def _copies(about: dict[str, Any]) -> list[tuple[str, str]]:
    lines = []
    if copies := about["dequantised"]:
        lines.append(
            f"no kernels for {', '.join(copies['types'])}: {_size(copies['stored_bytes'])} are dequantised "
            f"at load, which takes {_size(copies['memory_bytes'])} of memory"
        )
    if copies := about["reordered"]:
        lines.append(
            f"rows of {', '.join(copies['tensors'])} in another order: copied at load, which takes "
            f"{_size(copies['memory_bytes'])} of memory"
        )
    return [("", line) for line in lines]


def _draft(about: dict[str, Any]) -> str:
    if about["draft_layer"]:
        return "NextN / MTP" + (f", from {about['draft_model']}" if about["draft_model"] else "")
    return "none" + (" (announced, but not in the file)" if about["layers"]["draft"] else "")


def _template(template: dict[str, Any] | None) -> str:
    if template is None:
        return "none"
    more = [
        words
        for key, words in (("thinking_switch", "a switch for thinking"), ("tools", "tools"))
        if template[key]
    ]
    return f"{template['family']}, {template['characters']:,} characters" + "".join(f", {m}" for m in more)


def _width(about: dict[str, Any]) -> str:
    return (
        f"{about['embedding_length']}, {about['heads']} heads, {about['kv_heads']} K/V heads of "
        f"{about['head_dim']}, FFN {about['feed_forward_length']}"
    )


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    from strata_tui.terminal_text import printable

    layers, types, experts, rope = about["layers"], about["types"], about["experts"], about["rope"]
    kinds = ", ".join(
        f"{layers[kind]} {name}"
        for kind, name in (("gdn", "Gated DeltaNet"), ("attention", "attention"))
        if layers[kind]
    )
    shards = f", {about['shards']} shards" if about["shards"] > 1 else ""
    scaling = f", rope scaling {rope['scaling']}" if rope["scaling"] not in (None, "none") else ""
    licence = f" ({about['licence']})" if isinstance(about["licence"], str) else ""
    rows = [
        (
            "file",
            f"{about['file']}{shards}, {_size(about['size_bytes'])}, GGUF version {about['gguf_version']}",
        ),
        ("model", about["name"] + licence),
        (
            "architecture",
            about["architecture"] + ("" if about["supported"] else " (can't be run by this version)"),
        ),
        ("parameters", f"{about['parameters']:,} in {about['tensors']} tensors"),
        ("types", ", ".join(f"{name} {t['share']:.1%}" for name, t in types.items())),
        *_copies(about),
        ("layers", f"{layers['total']}: {kinds}"),
        ("draft layer", _draft(about)),
        ("width", _width(about)),
        *(
            [
                (
                    "experts",
                    f"{experts['total']}, {experts['used']} used" + (" and a shared one" * experts["shared"]),
                )
            ]
            if experts
            else []
        ),
        ("context", f"{about['context_length']:,} tokens{scaling}"),
        *_tokenizer(about),
        ("chat template", _template(about["template"])),
    ]
    return [(name, printable(text, newlines=False)) for name, text in rows]


def _stage(stage: dict[str, int], context: int) -> str:
    parts = [f"{_size(stage['weight_bytes'])} of weights"]
    if stage["kv_bytes"]:
        parts.append(f"{_size(stage['kv_bytes'])} of K/V at {context:,} tokens")
    if stage["state_bytes"]:
        parts.append(f"{_size(stage['state_bytes'])} of states")
    return f"{layers(stage['first_layer'], stage['last_layer'])}, " + ", ".join(parts)


@click.command("inspect")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--stages", metavar="N", type=Whole(1, 32), help="Show a split over so many.  [default: 2]")
@click.option("--split", metavar="K1,K2..|auto", help="First layer of each later stage; auto: by bytes.")
@click.option("--ctx", metavar="N", type=Whole(1, 1 << 30), help="Tokens of context.  [default: as for run]")
@kv_option("Type of the K/V cells.", default="f16")
@DRAFT_MODEL
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    model: Path | None,
    stages: int | None,
    split: str | None,
    ctx: int | None,
    kv: str,
    draft_model: Path | None,
    as_json: bool,
) -> None:
    """What is in a model file: sizes, types, layers, draft layer, tokenizer, and what a split of it holds."""
    from strata_tui import model_summary
    from strata_tui.gguf_file import open_model_file
    from strata_tui.options import Placement, parse_split
    from strata_tui.placement import DEFAULT_STAGES, place

    for path in (model, draft_model):
        if path is not None:
            regular(path, "a model file")
    file = open_model_file(model, draft_model)
    about = model_summary.summary(file)
    first_layers = None if split is None else parse_split(split)
    if stages is None and first_layers is None:
        stages = DEFAULT_STAGES
    if stages is not None and first_layers is None:
        stages = min(stages, max(1, file.n_layers))  # one layer a stage at most is what is shown
    context = ctx or min(file.context_length, model_summary.DEFAULT_CONTEXT)
    layout = place(Placement(stages=stages, split=first_layers), file, 1)[0] if file.n_layers else ()
    about["stages_context"], about["stages_kv"] = context, kv
    about["stages"] = model_summary.stages(file, layout, context, kv)
    if as_json:
        click.echo(json.dumps(about, default=str))
        return
    for name, text in _lines(about):
        click.echo(f"{name:<14} {text}")
    for i, stage in enumerate(about["stages"]):
        click.echo(f"{f'stage {i}':<14} {_stage(stage, context)}")
