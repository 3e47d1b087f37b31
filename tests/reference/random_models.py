"""Model files of random weights of any type, of every architecture."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Type

from reference.oracle_models import copy_keys, write
from reference.random_blocks import random_matrix, values_of

Tensors = dict[str, tuple[npt.NDArray[Any], Type]]  # as files hold them: bytes of blocks, or numbers
Weights = dict[str, npt.NDArray[np.float64]]  # by tensor name; matrices [n_out, n_in]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model.

    From taps on: of hybrids, whose layers are Gated DeltaNet and attention in turn; from n_experts on: of
    architectures with experts. scaling: linear, yarn or llama3, by 4 from a context of 64.
    """

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
    n_experts: int = 8
    n_used: int = 2
    n_ff_expert: int = 256
    scaling: str = ""

    @property
    def is_hybrid(self) -> bool:
        """Gated DeltaNet beside gated attention, and a draft layer."""
        return self.arch in ("qwen3next", "qwen35", "qwen35moe")

    @property
    def is_moe(self) -> bool:
        return self.arch in ("mixtral", "qwen2moe", "qwen3moe", "qwen3next", "qwen35moe")

    @property
    def has_shared_expert(self) -> bool:
        return self.arch in ("qwen2moe", "qwen3next", "qwen35moe")

    @property
    def has_biases(self) -> bool:
        return self.arch in ("qwen2", "qwen2moe", "seed_oss")

    @property
    def has_adjacent_pairs(self) -> bool:
        return self.name in ("llama", "internlm2", "ernie4_5", "smollm3")

    @property
    def name(self) -> str:
        """general.architecture: Mixtral is a llama with experts."""
        return "llama" if self.arch == "mixtral" else self.arch

    @property
    def has_head_norms(self) -> bool:
        return self.name.startswith("qwen3")

    @property
    def ffn_norm(self) -> str:
        return "post_attention_norm" if self.is_hybrid or self.arch == "seed_oss" else "ffn_norm"

    @property
    def inner(self) -> int:
        return self.state_size * self.n_v_heads

    @property
    def channels(self) -> int:
        return 2 * self.state_size * self.n_k_heads + self.inner

    def is_delta(self, layer: int) -> bool:
        return self.is_hybrid and layer < self.n_layers and layer % 2 == 0

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
        if self.scaling in ("linear", "yarn"):
            keys |= {
                "rope.scaling.type": self.scaling,
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 64,
            }
        if self.is_moe:
            keys |= {
                "expert_count": self.n_experts,
                "expert_used_count": self.n_used,
                "expert_feed_forward_length": self.n_ff_expert,
            }
        if self.has_shared_expert:
            keys["expert_shared_feed_forward_length"] = self.n_ff_expert
        if self.is_hybrid:
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
        return {f"{self.name}.{key}": value for key, value in keys.items()}


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
        stored, number = random_matrix(kind, n_out, n_in, gain / n_in**0.5, rng)
        if "_exps." in name:
            stored = stored.reshape(shape.n_experts, n_out // shape.n_experts, -1)
        tensors[name] = stored, number
    for name, values in _vectors(shape, rng).items():
        tensors[name] = values.astype(np.float32), Type.F32
    return tensors


def weights_of(tensors: Tensors) -> Weights:
    """What they stand for."""
    return {
        name: _values(stored, kind) if stored.dtype == np.uint8 else stored.astype(np.float64)
        for name, (stored, kind) in tensors.items()
    }


def _values(stored: npt.NDArray[Any], kind: Type) -> npt.NDArray[np.float64]:
    rows = values_of(stored.reshape(-1, stored.shape[-1]), kind)
    return rows.reshape(*stored.shape[:-1], -1)


def write_model(path: Path, shape: Shape, tensors: Tensors, tokenizer: gguf.GGUFReader | None = None) -> None:
    """A file, with the tokenizer of another one if that is given (of as many tokens)."""
    writer = gguf.GGUFWriter(path, shape.name)
    for key, value in shape.keys().items():
        if isinstance(value, str):
            writer.add_string(key, value)
        else:
            (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(key, value)
    if tokenizer is not None:
        copy_keys(tokenizer, writer, begins="tokenizer.")
    for name, (stored, kind) in tensors.items():
        writer.add_tensor(name, stored, raw_dtype=kind)
    write(writer)


def _matrices(s: Shape) -> Mapping[str, tuple[int, int]]:
    """[n_out, n_in] by name; of experts with all their rows one after the other."""
    n_q, n_kv = s.n_heads * s.head_dim, s.n_kv_heads * s.head_dim
    n_gates = n_q if s.is_hybrid else 0  # of the heads' outputs, beside the queries
    sizes = {"token_embd.weight": (s.n_vocab, s.n_embd), "output.weight": (s.n_vocab, s.n_embd)}
    attention = {
        "attn_q": (n_q + n_gates, s.n_embd), "attn_k": (n_kv, s.n_embd), "attn_v": (n_kv, s.n_embd),
        "attn_output": (s.n_embd, n_q),
    }  # fmt: skip
    delta = {
        "attn_qkv": (s.channels, s.n_embd), "attn_gate": (s.inner, s.n_embd),
        "ssm_out": (s.n_embd, s.inner),
    }  # fmt: skip
    if s.arch == "qwen3next":
        delta["ssm_ba"] = (2 * s.n_v_heads, s.n_embd)
    else:
        delta |= {"ssm_beta": (s.n_v_heads, s.n_embd), "ssm_alpha": (s.n_v_heads, s.n_embd)}
    ffn = _swiglu(s.n_embd, s.n_ff, "")
    if s.is_moe:
        ffn = _swiglu(s.n_embd, s.n_ff_expert, "_exps")
        ffn = {name: (s.n_experts * n_out, n_in) for name, (n_out, n_in) in ffn.items()}
    if s.has_shared_expert:
        ffn |= _swiglu(s.n_embd, s.n_ff_expert, "_shexp")
    for layer in range(_n_blocks(s)):
        mixer = delta if s.is_delta(layer) else attention
        sizes |= {f"blk.{layer}.{name}.weight": size for name, size in (mixer | ffn).items()}
    if s.is_hybrid:
        sizes[f"blk.{s.n_layers}.nextn.eh_proj.weight"] = (s.n_embd, 2 * s.n_embd)
    return sizes


def _swiglu(n_embd: int, n_ff: int, suffix: str) -> dict[str, tuple[int, int]]:
    return {
        f"ffn_gate{suffix}": (n_ff, n_embd),
        f"ffn_up{suffix}": (n_ff, n_embd),
        f"ffn_down{suffix}": (n_embd, n_ff),
    }


def _vectors(s: Shape, rng: np.random.Generator) -> Weights:
    """Norms around 1; for Gated DeltaNet decays that remember a few rows or a few dozen."""

    def norm(n: int) -> npt.NDArray[np.float64]:
        return rng.uniform(0.8, 1.2, n)

    vectors = {"output_norm.weight": norm(s.n_embd)}
    for layer in range(_n_blocks(s)):
        blk = f"blk.{layer}."
        vectors[blk + "attn_norm.weight"] = norm(s.n_embd)
        vectors[blk + f"{s.ffn_norm}.weight"] = norm(s.n_embd)
        if s.is_delta(layer):
            vectors[blk + "ssm_conv1d.weight"] = rng.normal(0, s.taps**-0.5, (s.channels, s.taps))
            vectors[blk + "ssm_dt.bias"] = rng.normal(-1, 0.5, s.n_v_heads)
            vectors[blk + "ssm_a"] = -rng.uniform(0.1, 1, s.n_v_heads)
            vectors[blk + "ssm_norm.weight"] = norm(s.state_size)
        elif s.has_head_norms:
            vectors[blk + "attn_q_norm.weight"] = 2 * norm(s.head_dim)
            vectors[blk + "attn_k_norm.weight"] = norm(s.head_dim)
        if s.has_biases:
            sizes = {"q": s.n_heads, "k": s.n_kv_heads, "v": s.n_kv_heads}
            vectors |= {f"{blk}attn_{x}.bias": rng.normal(0, 1, n * s.head_dim) for x, n in sizes.items()}
        if s.is_moe:
            vectors[blk + "ffn_gate_inp.weight"] = rng.normal(0, 3 / s.n_embd**0.5, (s.n_experts, s.n_embd))
        if s.has_shared_expert:
            vectors[blk + "ffn_gate_inp_shexp.weight"] = rng.normal(0, s.n_embd**-0.5, s.n_embd)
    if s.scaling == "llama3":
        vectors["rope_freqs.weight"] = llama3_factors(s)
    if s.is_hybrid:
        for name in ("enorm", "hnorm", "shared_head_norm"):
            vectors[f"blk.{s.n_layers}.nextn.{name}.weight"] = norm(s.n_embd)
    return vectors


def _n_blocks(s: Shape) -> int:
    return s.n_layers + s.is_hybrid


def llama3_factors(s: Shape) -> npt.NDArray[np.float64]:
    """What divides each pair's frequency: 1 where its wave is short, 4 where it is long, smooth between."""
    waves = 2 * np.pi * s.rope_base ** (np.arange(s.n_rot // 2) / (s.n_rot // 2))
    smooth = np.clip((64 / waves - 1) / (4 - 1), 0, 1)  # low_freq_factor 1, high_freq_factor 4
    return 1 / ((1 - smooth) / 4 + smooth)
