"""The models of the oracles as whole files.

Those of data/oracles that share tensors are kept without what another file holds: NAME.part.gguf has the keys
and the tensors of its own, NAME.shared.json where the others are: tensor -> [model, tensor of the model].
"""

import json
from functools import cache
from pathlib import Path

import gguf
import numpy as np

ORACLES = Path(__file__).parents[1] / "data" / "oracles"
ARCHITECTURES = ("llama", "qwen2", "qwen3", "qwen3moe", "qwen35", "qwen35moe", "qwen3next")


def oracle_model(architecture: str, folder: Path) -> Path:
    """micro-ARCHITECTURE.gguf, whole; made in `folder` where it is kept in part."""
    name = f"micro-{architecture}"
    kept = ORACLES / f"{name}.gguf"
    if kept.exists():
        return kept
    made = folder / f"{name}.gguf"
    if not made.exists():
        _complete(name, made)
    return made


@cache
def _part(name: str) -> gguf.GGUFReader:
    whole = ORACLES / f"{name}.gguf"
    return gguf.GGUFReader(whole if whole.exists() else ORACLES / f"{name}.part.gguf")


def _tensor(name: str, tensor: str) -> np.ndarray:
    own = {t.name: t.data for t in _part(name).tensors}
    if tensor in own:
        return own[tensor]
    model, other = json.loads((ORACLES / f"{name}.shared.json").read_text())[tensor]
    return _tensor(model, other)


def _complete(name: str, path: Path) -> None:
    part, shared = _part(name), json.loads((ORACLES / f"{name}.shared.json").read_text())
    writer = gguf.GGUFWriter(path, part.fields["general.architecture"].contents())
    copy_keys(part, writer)
    for tensor in [*(t.name for t in part.tensors), *shared]:
        writer.add_tensor(tensor, np.array(_tensor(name, tensor)))
    write(writer)


def copy_keys(
    reader: gguf.GGUFReader, writer: gguf.GGUFWriter, architecture: str | None = None, begins: str = ""
) -> None:
    """All keys that begin so; under another architecture's name where one is given."""
    old = reader.fields["general.architecture"].contents()
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or not key.startswith(begins):
            continue
        kind, *inner = field.types
        if architecture:
            key = key.replace(f"{old}.", f"{architecture}.", 1)
        writer.add_key_value(key, field.contents(), kind, inner[0] if inner else None)


def write(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
