"""strata-tui inspect: what is in a model file."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import click


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024 or unit == "GiB":
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    raise AssertionError


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    from strata_tui.tokenizer import printable

    layers, types = about["layers"], about["types"]
    kinds = ", ".join(
        f"{layers[kind]} {name}"
        for kind, name in (("gdn", "Gated DeltaNet"), ("attention", "attention"))
        if layers[kind]
    )
    vocabulary = "none" if about["vocabulary"] is None else f"{about['vocabulary']:,} tokens"
    rows = [
        ("file", f"{about['file']}, {_size(about['size_bytes'])}, GGUF version {about['gguf_version']}"),
        (
            "model",
            f"{about['name']}" + (f" ({about['licence']})" if isinstance(about["licence"], str) else ""),
        ),
        (
            "architecture",
            about["architecture"] + ("" if about["supported"] else " (can't be run by this version)"),
        ),
        ("parameters", f"{about['parameters']:,} in {about['tensors']} tensors"),
        ("types", ", ".join(f"{name} {t['share']:.1%}" for name, t in types.items())),
        ("layers", f"{layers['total']}: {kinds}"),
        ("draft layer", "NextN / MTP" if about["draft_layer"] else "none"),
        ("width", f"{about['embedding_length']}, {about['heads']} heads, {about['kv_heads']} K/V heads"),
        ("context", f"{about['context_length']:,} tokens"),
        ("tokenizer", f"{about['tokenizer']['model']} / {about['tokenizer']['pre']}, {vocabulary}"),
        ("chat template", "yes" if about["chat_template"] else "none"),
    ]
    return [(name, printable(text, newlines=False)) for name, text in rows]


@click.command("inspect")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option(
    "--stages",
    type=click.IntRange(1, 32),
    default=2,
    show_default=True,
    help="Show a split over so many stages.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: Path | None, stages: int, as_json: bool) -> None:
    """What is in a model file: sizes, types, layers, draft layer, tokenizer, and how it would be split."""
    from strata_tui.gguf_file import ModelFile, embedded_model_path, summary
    from strata_tui.placement import balanced_split

    file = ModelFile(model if model is not None else embedded_model_path())
    about = summary(file)
    stages = min(stages, max(1, file.n_layers))
    split = [0, *balanced_split(file.layer_bytes, file.tail_bytes, stages), file.n_layers]
    about["stages"] = [
        {
            "first_layer": first,
            "last_layer": end - 1,
            "weight_bytes": sum(file.layer_bytes[first:end])
            + (file.tail_bytes if end == file.n_layers else 0),
        }
        for first, end in itertools.pairwise(split)
        if file.n_layers
    ]
    if as_json:
        click.echo(json.dumps(about, default=str))
        return
    for name, text in _lines(about):
        click.echo(f"{name:<14} {text}")
    for i, stage in enumerate(about["stages"]):
        click.echo(
            f"{f'stage {i}':<14} layers {stage['first_layer']}-{stage['last_layer']}, "
            f"{_size(stage['weight_bytes'])} of weights"
        )
