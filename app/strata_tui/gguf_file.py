"""A model file as Python sees it: metadata, tensors, kinds of layers."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from strata_tui.errors import BadInput
from strata_tui.tokenizer import printable

MAX_LAYERS = 1024  # of a file; far more than any model has
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")  # of a set's file names


class TensorInfo(NamedTuple):
    """A tensor of the file; `shape` in ggml order: shape[0] is the contiguous row length.

    `offset` is from the start of its own file, which is the set's `shard`-th (from 0). `loaded_bytes` is what
    it takes when it is run: more than `size_bytes` where its type has no kernels and it is dequantised.
    `reordered`: it is copied when it is run, since its rows are wanted in another order.
    """

    name: str
    type: str
    type_number: int
    shape: tuple[int, ...]
    offset: int
    size_bytes: int
    shard: int
    loaded_bytes: int
    reordered: bool

    @property
    def is_dequantised(self) -> bool:
        return self.loaded_bytes != self.size_bytes

    @property
    def n_values(self) -> int:
        n = 1
        for extent in self.shape:
            n *= extent
        return n


class Experts(NamedTuple):
    """Experts of a layer, and how many of them a row goes to."""

    n: int
    n_used: int


def _block(tensor: str) -> int:
    """3 of blk.3.attn_q.weight; -1 of others."""
    parts = tensor.split(".", 2)
    numbered = len(parts) == 3 and parts[0] == "blk" and parts[1].isdecimal() and len(parts[1]) < 6
    return int(parts[1]) if numbered else -1


def architectures() -> tuple[str, ...]:
    """Those that can be run."""
    from strata_tui import _core

    return tuple(_core.architectures())


@contextmanager
def _as_bad_input() -> Iterator[None]:
    """What the native module says of a file is about what was given."""
    from strata_tui import _core

    try:
        yield
    except _core.Error as error:
        raise BadInput(str(error)) from None


class ModelFile:
    """An open GGUF file, or a set of shards that holds one model.

    Args:
        path: the file, or any shard of a set; mapped as long as this object or an engine on it lives.
        draft: the file whose draft layer stands in for this one's own.

    Raises:
        BadInput: it can't be read, something in it is wrong, or the draft layer is another model's.

    Attributes:
        path: the file; of a set the first shard, whichever was opened.
        file_name: the first shard's name, for messages and recordings.
        draft: the file of the draft layer; None where that is this one's own, if it has one.
    """

    def __init__(self, path: Path | str, draft: Path | str | None = None) -> None:
        from strata_tui import _core

        with _as_bad_input():
            self.native = _core.ModelFile(os.fsencode(path))
        self.path = Path(self.native.path)
        self.file_name = self.native.name
        self.draft = None if draft is None else ModelFile(draft)
        if self.draft:
            with _as_bad_input():
                self.native.require_draft(self.draft.native)

    # -- metadata

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Scalars, strings and short arrays by key."""
        with _as_bad_input():
            return self.native.metadata()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or of the architecture's key where it begins with a dot."""
        return self.metadata.get(self._full(key), default)

    def _full(self, key: str) -> str:
        return self.architecture + key if key.startswith(".") else key

    def count(self, key: str, default: int = 0, most: int = 2**31 - 1) -> int:
        """An integer from 0 to `most`; keys as for `get`.

        Raises:
            BadInput: the key holds something else.
        """
        value = self.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value
        came = str(value) if isinstance(value, (int, float)) else type(value).__name__
        raise BadInput(f"[model] {self.file_name}: expected {self._full(key)} to be 0 to {most}, got {came}")

    def text(self, key: str) -> str | None:
        """A string; None if the key is absent or holds something else, bytes that are not UTF-8 among it."""
        value = self.get(key)
        return value if isinstance(value, str) else None

    def array(self, key: str) -> Any:
        """A whole array: a list of str (bytes where it is not UTF-8), or a numpy array. None if absent.

        Raises:
            BadInput: the key holds no array.
        """
        with _as_bad_input():
            return self.native.array(key) if key in self.keys else None

    def array_length(self, key: str) -> int:
        """Elements of an array that is not read for it; 0 if absent.

        Raises:
            BadInput: the key holds no array.
        """
        with _as_bad_input():
            return self.native.array_length(key) if key in self.keys else 0

    @cached_property
    def keys(self) -> frozenset[str]:
        with _as_bad_input():
            return frozenset(self.native.keys())

    @property
    def architecture(self) -> str:
        name = self.metadata.get("general.architecture")
        return name if isinstance(name, str) else "unknown"

    @property
    def name(self) -> str:
        """What the model calls itself, or its file's name."""
        name = self.text("general.name") or ""
        return name if name.strip() else _SHARD.sub("", self.path.stem)

    @property
    def paths(self) -> list[Path]:
        """Every file of the model, in order."""
        n = self.count("split.count", 1)
        stem = _SHARD.sub("", self.path.stem)
        return (
            [self.path.with_name(f"{stem}-{i:05}-of-{n:05}.gguf") for i in range(1, n + 1)]
            if n > 1
            else [self.path]
        )

    @property
    def context_length(self) -> int:
        return self.count(".context_length")

    @property
    def n_draft_layers(self) -> int:
        return self.count(".nextn_predict_layers", most=MAX_LAYERS)

    @property
    def n_layers(self) -> int:
        """Layers of the trunk: NextN blocks are not among them."""
        return max(0, self.count(".block_count", most=MAX_LAYERS) - self.n_draft_layers)

    @property
    def has_draft_layer(self) -> bool:
        return self.draft is not None or any(".nextn.eh_proj" in tensor.name for tensor in self.tensors)

    @property
    def experts(self) -> Experts | None:
        """How many experts a layer has; None in a dense model."""
        n = self.count(".expert_count")
        return Experts(n, min(n, self.count(".expert_used_count"))) if n else None

    @property
    def has_template(self) -> bool:
        return self.text("tokenizer.chat_template") is not None

    # -- tensors

    @cached_property
    def tensors(self) -> list[TensorInfo]:
        return [TensorInfo(*tensor) for tensor in self.native.tensors()]

    @property
    def loaded_tensors(self) -> list[TensorInfo]:
        """Matrices that an engine on it reads: not those of what it doesn't run, such as images or sound.

        The draft layer's are those of `draft` where that stands in for the model's own.
        """
        named = [tensor for tensor in self.tensors if tensor.name in ("token_embd.weight", "output.weight")]
        blocks = [tensor for tensor in self.tensors if 0 <= _block(tensor.name) < self.n_layers]
        holder = self.draft or self
        draft = [tensor for tensor in holder.tensors if _block(tensor.name) == self.n_layers]
        return named + blocks + (draft if self.has_draft_layer else [])

    @cached_property
    def layer_kinds(self) -> list[str]:
        """Attention or gdn for each trunk layer, by what its tensors are."""
        names = {tensor.name for tensor in self.tensors}
        return ["gdn" if f"blk.{i}.ssm_a" in names else "attention" for i in range(self.n_layers)]

    @cached_property
    def layer_bytes(self) -> list[int]:
        """Bytes of weights of each trunk layer, as they are run."""
        return self._by_layer([tensor.loaded_bytes for tensor in self.tensors])

    @cached_property
    def tail_bytes(self) -> int:
        """Bytes of weights of the last stage beside its layers: the output head and the draft layer."""
        return self._head([tensor.loaded_bytes for tensor in self.tensors]) + self._draft_layer(
            lambda model: [tensor.loaded_bytes for tensor in model.tensors]
        )

    @cached_property
    def layer_reads(self) -> list[int]:
        """Bytes of weights that one row reads in each trunk layer: of experts those that it goes to."""
        return self._by_layer(self._reads)

    @cached_property
    def tail_reads(self) -> int:
        """Bytes of weights that one row reads behind the layers."""
        return self._head(self._reads) + self._draft_layer(lambda model: model._reads)

    @cached_property
    def _reads(self) -> list[int]:
        experts = self.experts
        return [
            tensor.loaded_bytes * experts.n_used // experts.n
            if experts and tensor.name.endswith("_exps.weight")
            else tensor.loaded_bytes
            for tensor in self.tensors
        ]

    def _by_layer(self, sizes: list[int]) -> list[int]:
        """Sizes by tensor, summed by trunk layer."""
        total = [0] * self.n_layers
        for tensor, size in zip(self.tensors, sizes, strict=True):
            if 0 <= (layer := _block(tensor.name)) < self.n_layers:
                total[layer] += size
        return total

    def _head(self, sizes: list[int]) -> int:
        by_name = dict(zip((tensor.name for tensor in self.tensors), sizes, strict=True))
        return by_name.get("output.weight", by_name.get("token_embd.weight", 0))

    def _draft_layer(self, sizes_of: Callable[[ModelFile], list[int]]) -> int:
        """The sum over the draft layer's tensors, in whichever file they are."""
        holder, block = self.draft or self, f"blk.{self.n_layers}."
        sizes = zip(holder.tensors, sizes_of(holder), strict=True)
        return sum(size for tensor, size in sizes if tensor.name.startswith(block))

    @property
    def sha256(self) -> str:
        """Of the whole file; of a set, of its files in order, one after the other.

        Read once as long as sizes and times stay.
        """
        states = [(path, path.stat()) for path in self.paths]
        return _sha256(tuple((path, state.st_size, state.st_mtime_ns) for path, state in states))


@lru_cache(maxsize=16)
def _sha256(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def require_supported(model: ModelFile) -> None:
    """Raise BadInput for a model that can be inspected, but not run."""
    known = architectures()
    if model.architecture == "qwen4exp":
        raise BadInput(
            f"[model] {model.file_name}: architecture qwen4exp (hyper-connections, sparse attention, n-gram "
            f"tables) is not supported; expected one of {', '.join(known)}"
        )
    if model.architecture not in known:
        raise BadInput(
            f"[model] {model.file_name}: expected one of the architectures {', '.join(known)}, "
            f"got {printable(model.architecture[:60], newlines=False)}"
        )
    blocks, drafts = model.count(".block_count"), model.n_draft_layers
    if drafts and drafts >= blocks:
        raise BadInput(
            f"[model] {model.file_name}: expected {model.architecture}.nextn_predict_layers to be below the "
            f"{blocks} blocks, got {drafts}"
        )
    if model.n_layers == 0:
        raise BadInput(
            f"[model] {model.file_name}: expected {model.architecture}.block_count to be 1 to {MAX_LAYERS}, "
            f"got {model.count('.block_count')}"
        )


_kept = ExitStack()  # a model inside a zipped package is unpacked once, for the life of the process


def embedded_model_path() -> Path:
    """The model that ships with the program."""
    resource = resources.files("strata_tui") / "models" / "pebble-Q4_K_M.gguf"
    return _kept.enter_context(resources.as_file(resource))


def open_model_file(model: Path | str | None, draft: Path | str | None = None) -> ModelFile:
    """A model file, None: the embedded one; with the draft layer of another file where one is named."""
    return ModelFile(embedded_model_path() if model is None else model, draft)
