"""What a person wants to know of a model file; plain values, fit for JSON."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from strata_tui.chat import template_family
from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile, TensorInfo, architectures
from strata_tui.tokenizer import Tokenizer
from strata_tui.vocabulary import CONTROL, USER_DEFINED

KV_BYTES = {"f16": 2, "f32": 4}  # of one value
DEFAULT_CONTEXT = 8192  # the most that is allocated where nothing else is asked for


def summary(model: ModelFile) -> dict[str, Any]:
    """Of the whole file.

    Raises:
        BadInput: a key that should hold a count holds something else.
    """
    by_type: Counter[str] = Counter()
    for tensor in model.tensors:
        by_type[tensor.type] += tensor.size_bytes
    total = sum(by_type.values())
    tokens = model.array("tokenizer.ggml.tokens")
    return {
        "file": model.file_name,
        "shards": len(model.paths),
        "size_bytes": model.native.size_bytes,
        "gguf_version": model.native.version,
        "name": model.name,
        "architecture": model.architecture,
        "supported": model.architecture in architectures(),
        "parameters": sum(tensor.n_values for tensor in model.tensors),
        "tensors": len(model.tensors),
        "types": {
            name: {"bytes": size, "share": size / total if total else 0.0}
            for name, size in by_type.most_common()
        },
        "dequantised": _copies([tensor for tensor in model.loaded_tensors if tensor.is_dequantised]),
        "reordered": _copies(
            [t for t in model.loaded_tensors if t.reordered and not t.is_dequantised],
        ),
        "layers": {
            "total": model.n_layers,
            "attention": model.layer_kinds.count("attention"),
            "gdn": model.layer_kinds.count("gdn"),
            "draft": model.n_draft_layers,
        },
        "draft_layer": model.has_draft_layer,
        "draft_model": model.draft.file_name if model.draft else None,
        "context_length": model.context_length,
        "embedding_length": _plain(model.get(".embedding_length")),
        "feed_forward_length": _plain(model.get(".feed_forward_length")),
        "heads": _plain(model.get(".attention.head_count")),
        "kv_heads": _plain(model.get(".attention.head_count_kv")),
        "head_dim": head_dim(model),
        "experts": _experts(model),
        "rope": {
            "freq_base": model.get(".rope.freq_base"),
            "scaling": model.text(".rope.scaling.type"),
            "factor": model.get(".rope.scaling.factor"),
        },
        "vocabulary": None if tokens is None else len(tokens),
        "tokenizer": _tokenizer(model),
        "chat_template": model.has_template,
        "template": _template(model.text("tokenizer.chat_template")),
        "licence": model.text("general.license"),
        "layer_bytes": model.layer_bytes,
        "tail_bytes": model.tail_bytes,
    }


def stages(model: ModelFile, split: Sequence[int], context: int, kv: str) -> list[dict[str, int]]:
    """What each stage of a split holds: weights, K/V cells and states of one text of `context` tokens.

    Buffers come on top: they depend on the chunk and on the windows in flight. The last stage also holds the
    draft layer's cells.

    Args:
        split: first layer of each later stage.
    """
    cells = [_cell_bytes(model, i, kv) * context for i in range(model.n_layers)]
    states = [_state_bytes(model) if kind == "gdn" else 0 for kind in model.layer_kinds]
    edges = [0, *split, model.n_layers]
    found = [
        {
            "first_layer": first,
            "last_layer": end - 1,
            "weight_bytes": sum(model.layer_bytes[first:end]),
            "kv_bytes": sum(cells[first:end]),
            "state_bytes": sum(states[first:end]),
        }
        for first, end in itertools.pairwise(edges)
        if model.n_layers
    ]
    if found:
        found[-1]["weight_bytes"] += model.tail_bytes
        if model.has_draft_layer:
            found[-1]["kv_bytes"] += _cell_bytes(model, model.n_layers, kv, draft=True) * context
    return found


def _copies(copied: Sequence[TensorInfo]) -> dict[str, Any] | None:
    """Tensors that are run as copies, and what these take of memory."""
    return (
        {
            "types": sorted({tensor.type for tensor in copied}),
            "tensors": sorted({tensor.name.removesuffix(".weight").split(".")[-1] for tensor in copied}),
            "stored_bytes": sum(tensor.size_bytes for tensor in copied),
            "memory_bytes": sum(tensor.loaded_bytes for tensor in copied),
        }
        if copied
        else None
    )


def head_dim(model: ModelFile) -> int | None:
    """Of keys and values: as the file says, else the width shared out."""
    heads, width = _plain(model.get(".attention.head_count")), _plain(model.get(".embedding_length"))
    shared = width // heads if isinstance(heads, int) and isinstance(width, int) and heads > 0 else 0
    return model.count(".attention.key_length", shared) or None


def _cell_bytes(model: ModelFile, layer: int, kv: str, draft: bool = False) -> int:
    """Bytes of K and V of one token in an attention layer."""
    if not draft and model.layer_kinds[layer] != "attention":
        return 0
    heads = model.get(".attention.head_count_kv", model.get(".attention.head_count"))
    if isinstance(heads, list):
        heads = heads[layer] if layer < len(heads) else _plain(heads)
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 0:
        return 0
    return 2 * heads * (head_dim(model) or 0) * KV_BYTES[kv]


def _state_bytes(model: ModelFile) -> int:
    """Bytes of a Gated DeltaNet layer's state: what it remembers, and the convolution's last inputs."""
    taps, size = model.count(".ssm.conv_kernel"), model.count(".ssm.state_size")
    k_heads, v_heads = model.count(".ssm.group_count"), model.count(".ssm.time_step_rank")
    channels = size * (2 * k_heads + v_heads)
    return 4 * (v_heads * size * size + max(0, taps - 1) * channels)


def _plain(value: Any) -> int | str | None:
    """A scalar of the file, or the largest element of a list per layer; None for what is neither."""
    if isinstance(value, list):
        return max((n for n in value if isinstance(n, int)), default=None)
    return value if isinstance(value, (int, str)) else None


def _experts(model: ModelFile) -> dict[str, Any] | None:
    total = model.count(".expert_count")
    return (
        {
            "total": total,
            "used": model.count(".expert_used_count"),
            "shared": model.count(".expert_shared_feed_forward_length") > 0,
            "width": model.count(".expert_feed_forward_length"),
        }
        if total
        else None
    )


def _tokenizer(model: ModelFile) -> dict[str, Any]:
    """Model, pre-tokenizer and special tokens; `problem` says why it can't be used."""
    about: dict[str, Any] = {
        "model": model.text("tokenizer.ggml.model"),
        "pre": model.text("tokenizer.ggml.pre"),
        "merges": model.array_length("tokenizer.ggml.merges"),
        "problem": None,
    }
    try:
        tokenizer = Tokenizer(model)
    except BadInput as refused:
        return about | {"problem": str(refused)}

    def named(token: int | None) -> dict[str, Any] | None:
        return None if token is None else {"id": token, "text": tokenizer.piece(token)}

    counts = Counter(tokenizer.types)
    return about | {
        "bos": named(tokenizer.bos),
        "eos": named(tokenizer.eos),
        "add_bos": tokenizer.add_bos,
        "end_tokens": [named(token) for token in tokenizer.end_tokens],
        "control": counts[CONTROL],
        "user_defined": counts[USER_DEFINED],
    }


def _template(source: str | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {
        "family": template_family(source),
        "characters": len(source),
        "thinking_switch": "enable_thinking" in source,
        "tools": "tools" in source,
    }
