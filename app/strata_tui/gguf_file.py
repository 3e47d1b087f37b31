"""A model file as Python sees it: metadata, tensors, kinds of layers. The native reader has checked every byte."""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import ExitStack
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from strata_tui.errors import BadInput

SUPPORTED = ("llama", "qwen35")


class TensorInfo(NamedTuple):
    """A tensor of the file; `shape` in ggml order: shape[0] is the contiguous row length."""

    name: str
    type: str
    type_number: int
    shape: tuple[int, ...]
    offset: int
    size_bytes: int

    @property
    def n_values(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n


class ModelFile:
    """An open GGUF file.

    Args:
        path: the file. It stays mapped as long as this object or an engine on it lives.

    Raises:
        BadInput: it can't be read, or something in it is wrong.
    """

    def __init__(self, path: Path | str) -> None:
        from strata_tui import _core

        try:
            self.native = _core.ModelFile(str(path))
        except _core.Error as error:
            raise BadInput(str(error)) from None
        self.path = Path(path)
        self.file_name = self.native.name

    # -- metadata

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Scalars, strings and short arrays by key."""
        return self.native.metadata()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or of the architecture's key where it begins with a dot."""
        return self.metadata.get(self.architecture + key if key.startswith(".") else key, default)

    def array(self, key: str) -> Any:
        """A whole array: a list of str (bytes where it is not UTF-8), or a numpy array. None if absent."""
        return self.native.array(key) if key in self.keys else None

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(self.native.keys())

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", "unknown"))

    @property
    def name(self) -> str:
        """What the model calls itself, or its file's name."""
        name = self.metadata.get("general.name")
        return name if isinstance(name, str) and name.strip() else self.path.stem

    @property
    def context_length(self) -> int:
        return int(self.get(".context_length", 0))

    @property
    def n_draft_layers(self) -> int:
        return int(self.get(".nextn_predict_layers", 0))

    @property
    def n_layers(self) -> int:
        """Layers of the trunk: NextN blocks are not among them."""
        return max(0, int(self.get(".block_count", 0)) - self.n_draft_layers)

    @property
    def has_draft_layer(self) -> bool:
        return any(".nextn.eh_proj" in tensor.name for tensor in self.tensors)

    @property
    def has_template(self) -> bool:
        return isinstance(self.metadata.get("tokenizer.chat_template"), str)

    # -- tensors

    @cached_property
    def tensors(self) -> list[TensorInfo]:
        return [TensorInfo(*tensor) for tensor in self.native.tensors()]

    @cached_property
    def layer_kinds(self) -> list[str]:
        """"attention" or "gdn" for each trunk layer, by what its tensors are."""
        names = {tensor.name for tensor in self.tensors}
        return ["gdn" if f"blk.{i}.ssm_a" in names else "attention" for i in range(self.n_layers)]

    @cached_property
    def layer_bytes(self) -> list[int]:
        """Bytes of weights of each trunk layer."""
        sizes = [0] * self.n_layers
        for tensor in self.tensors:
            parts = tensor.name.split(".", 2)
            if parts[0] == "blk" and len(parts) == 3 and parts[1].isdigit() and int(parts[1]) < self.n_layers:
                sizes[int(parts[1])] += tensor.size_bytes
        return sizes

    @cached_property
    def tail_bytes(self) -> int:
        """Bytes that the last stage reads beside its layers: the output head and the draft layer."""
        draft = f"blk.{self.n_layers}."
        head = [t.size_bytes for t in self.tensors if t.name == "output.weight"] or [
            t.size_bytes for t in self.tensors if t.name == "token_embd.weight"
        ]
        return sum(head) + sum(t.size_bytes for t in self.tensors if t.name.startswith(draft))

    @cached_property
    def sha256(self) -> str:
        """Of the whole file."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


def require_supported(model: ModelFile) -> None:
    """Raise BadInput for a model that can be inspected, but not run."""
    if model.architecture == "qwen4exp":
        raise BadInput(
            f"[model] {model.file_name}: architecture qwen4exp (hyper-connections, sparse attention, n-gram "
            f"tables) is not supported; expected one of {', '.join(SUPPORTED)}"
        )
    if model.architecture not in SUPPORTED:
        raise BadInput(
            f"[model] {model.file_name}: expected one of the architectures {', '.join(SUPPORTED)}, "
            f"got {model.architecture}"
        )


_kept = ExitStack()  # a model inside a zipped package is unpacked once, for the life of the process


def embedded_model_path() -> Path:
    """The model that ships with the program."""
    resource = resources.files("strata_tui") / "models" / "pebble-Q4_K_M.gguf"
    return _kept.enter_context(resources.as_file(resource))


def summary(model: ModelFile) -> dict[str, Any]:
    """What a person wants to know of a model file; plain values, fit for JSON."""
    by_type: Counter[str] = Counter()
    for tensor in model.tensors:
        by_type[tensor.type] += tensor.size_bytes
    total = sum(by_type.values())
    tokens = "tokenizer.ggml.tokens"
    return {
        "file": model.file_name,
        "size_bytes": model.native.size_bytes,
        "gguf_version": model.native.version,
        "name": model.name,
        "architecture": model.architecture,
        "supported": model.architecture in SUPPORTED,
        "parameters": sum(tensor.n_values for tensor in model.tensors),
        "tensors": len(model.tensors),
        "types": {
            name: {"bytes": size, "share": size / total if total else 0.0} for name, size in by_type.most_common()
        },
        "layers": {
            "total": model.n_layers,
            "attention": model.layer_kinds.count("attention"),
            "gdn": model.layer_kinds.count("gdn"),
        },
        "draft_layer": model.has_draft_layer,
        "context_length": model.context_length,
        "embedding_length": model.get(".embedding_length"),
        "heads": model.get(".attention.head_count"),
        "kv_heads": model.get(".attention.head_count_kv"),
        "vocabulary": model.native.array_length(tokens) if tokens in model.keys else None,
        "tokenizer": {
            "model": model.get("tokenizer.ggml.model"),
            "pre": model.get("tokenizer.ggml.pre"),
        },
        "chat_template": model.has_template,
        "licence": model.get("general.license"),
        "layer_bytes": model.layer_bytes,
        "tail_bytes": model.tail_bytes,
    }
