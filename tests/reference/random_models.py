"""Model files of random weights of any type, of the architectures llama and qwen35."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type

from reference.random_blocks import random_matrix, values_of

Tensors = dict[str, tuple[npt.NDArray[Any], Type]]  # as files hold them: bytes of blocks, or numbers
Weights = dict[str, npt.NDArray[np.float64]]  # by tensor name; matrices [n_out, n_in]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; the last four are qwen35's: its layers are Gated DeltaNet and attention in turn."""

    arch: str = "llama"
    n_embd: int = 256
    n_layers: int = 3  # of the trunk
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    n_rot: int = 64
    n_ff: int = 512
    n_vocab: int = 512
    context: int = 256
    norm_eps: float = 1e-5
    rope_base: float = 10000.0
    taps: int = 4
    state_size: int = 64
    n_k_heads: int = 2
    n_v_heads: int = 4

    @property
    def inner(self) -> int:
        return self.state_size * self.n_v_heads

    @property
    def channels(self) -> int:
        return 2 * self.state_size * self.n_k_heads + self.inner

    def is_delta(self, layer: int) -> bool:
        return self.arch == "qwen35" and layer < self.n_layers and layer % 2 == 0

    def keys(self) -> dict[str, Any]:
        keys = {
            "context_length": self.context,
            "embedding_length": self.n_embd,
            "block_count": self.n_layers,
            "feed_forward_length": self.n_ff,
            "attention.head_count": self.n_heads,
            "attention.head_count_kv": self.n_kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "attention.layer_norm_rms_epsilon": self.norm_eps,
            "rope.dimension_count": self.n_rot,
            "rope.freq_base": self.rope_base,
        }
        if self.arch == "qwen35":
            keys |= {
                "block_count": self.n_layers + 1,
                "nextn_predict_layers": 1,
                "full_attention_interval": 2,
                "ssm.conv_kernel": self.taps,
                "ssm.state_size": self.state_size,
                "ssm.group_count": self.n_k_heads,
                "ssm.time_step_rank": self.n_v_heads,
                "ssm.inner_size": self.inner,
            }
        return {f"{self.arch}.{key}": value for key, value in keys.items()}


def random_tensors(shape: Shape, kind: str, seed: int = 1, logit_deviation: float = 3.0) -> Tensors:
    """Matrices of type `kind` and F32 vectors.

    Matrices keep the deviation of what they multiply (1/sqrt(n_in)), but for three: the embedding has
    deviation 1, the head gives logits of `logit_deviation`, and queries are twice as long, so that attention
    picks.
    """
    rng = np.random.default_rng(seed)
    gains = {"token_embd": shape.n_embd**0.5, "output": logit_deviation, "attn_q": 2.0}
    tensors: Tensors = {}
    for name, (n_out, n_in) in _matrices(shape).items():
        gain = gains.get(name.split(".")[-2], 1.0)
        tensors[name] = random_matrix(kind, n_out, n_in, gain / n_in**0.5, rng)
    for name, values in _vectors(shape, rng).items():
        tensors[name] = values.astype(np.float32), Type.F32
    return tensors


def weights_of(tensors: Tensors) -> Weights:
    """What they stand for."""
    return {
        name: values_of(stored, kind) if stored.dtype == np.uint8 else stored.astype(np.float64)
        for name, (stored, kind) in tensors.items()
    }


def write_model(path: Path, shape: Shape, tensors: Tensors) -> None:
    """A file without a tokenizer."""
    writer = gguf.GGUFWriter(path, shape.arch)
    for key, value in shape.keys().items():
        (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(key, value)
    for name, (stored, kind) in tensors.items():
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _matrices(s: Shape) -> Mapping[str, tuple[int, int]]:
    """[n_out, n_in] by name."""
    n_q, n_kv = s.n_heads * s.head_dim, s.n_kv_heads * s.head_dim
    n_gates = n_q if s.arch == "qwen35" else 0  # of the heads' outputs, beside the queries
    sizes = {"token_embd.weight": (s.n_vocab, s.n_embd), "output.weight": (s.n_vocab, s.n_embd)}
    attention = {
        "attn_q": (n_q + n_gates, s.n_embd), "attn_k": (n_kv, s.n_embd), "attn_v": (n_kv, s.n_embd),
        "attn_output": (s.n_embd, n_q),
    }  # fmt: skip
    delta = {
        "attn_qkv": (s.channels, s.n_embd), "attn_gate": (s.inner, s.n_embd),
        "ssm_beta": (s.n_v_heads, s.n_embd), "ssm_alpha": (s.n_v_heads, s.n_embd),
        "ssm_out": (s.n_embd, s.inner),
    }  # fmt: skip
    ffn = {
        "ffn_gate": (s.n_ff, s.n_embd), "ffn_up": (s.n_ff, s.n_embd), "ffn_down": (s.n_embd, s.n_ff)
    }  # fmt: skip
    for layer in range(_n_blocks(s)):
        mixer = delta if s.is_delta(layer) else attention
        sizes |= {f"blk.{layer}.{name}.weight": size for name, size in (mixer | ffn).items()}
    if s.arch == "qwen35":
        sizes[f"blk.{s.n_layers}.nextn.eh_proj.weight"] = (s.n_embd, 2 * s.n_embd)
    return sizes


def _vectors(s: Shape, rng: np.random.Generator) -> Weights:
    """Norms around 1; for Gated DeltaNet decays that remember a few rows or a few dozen."""

    def norm(n: int) -> npt.NDArray[np.float64]:
        return rng.uniform(0.8, 1.2, n)

    vectors = {"output_norm.weight": norm(s.n_embd)}
    for layer in range(_n_blocks(s)):
        blk = f"blk.{layer}."
        vectors[blk + "attn_norm.weight"] = norm(s.n_embd)
        vectors[blk + f"{'post_attention' if s.arch == 'qwen35' else 'ffn'}_norm.weight"] = norm(s.n_embd)
        if s.is_delta(layer):
            vectors[blk + "ssm_conv1d.weight"] = rng.normal(0, s.taps**-0.5, (s.channels, s.taps))
            vectors[blk + "ssm_dt.bias"] = rng.normal(-1, 0.5, s.n_v_heads)
            vectors[blk + "ssm_a"] = -rng.uniform(0.1, 1, s.n_v_heads)
            vectors[blk + "ssm_norm.weight"] = norm(s.state_size)
        elif s.arch == "qwen35":
            vectors[blk + "attn_q_norm.weight"] = 2 * norm(s.head_dim)
            vectors[blk + "attn_k_norm.weight"] = norm(s.head_dim)
    if s.arch == "qwen35":
        for name in ("enorm", "hnorm", "shared_head_norm"):
            vectors[f"blk.{s.n_layers}.nextn.{name}.weight"] = norm(s.n_embd)
    return vectors


def _n_blocks(s: Shape) -> int:
    return s.n_layers + (s.arch == "qwen35")
