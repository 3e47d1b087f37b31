"""What a weight goes through between Hugging Face's layout and GGUF's, and back.

RMSNorm weights are stored ready to multiply (1 + w). The value heads of Gated DeltaNet are grouped by key
head in training and tiled in the file (head h uses key head h % n_k_heads), so that everything with a
value-head dimension is permuted. A_log is stored as -exp(A_log).
"""

import torch
from config import PEBBLE
from torch import Tensor

C = PEBBLE
V_PER_K = C.n_v_heads // C.n_k_heads
QK_ROWS = 2 * C.k_width  # rows of q and k, before those of v


def tile(x: Tensor, dim: int, head_dim: int) -> Tensor:
    """Value heads along `dim`: grouped by key head -> tiled."""
    return _swap(x, dim, C.n_k_heads, V_PER_K, head_dim)


def group(x: Tensor, dim: int, head_dim: int) -> Tensor:
    """Value heads along `dim`: tiled -> grouped by key head."""
    return _swap(x, dim, V_PER_K, C.n_k_heads, head_dim)


def _swap(x: Tensor, dim: int, outer: int, inner: int, head_dim: int) -> Tensor:
    heads = x.reshape(*x.shape[:dim], outer, inner, head_dim, *x.shape[dim + 1 :])
    return heads.transpose(dim, dim + 1).reshape(x.shape)


def is_shifted_norm(name: str) -> bool:
    """Norms trained as 1 + w; the one inside Gated DeltaNet multiplies as it is."""
    if name.endswith("linear_attn.norm.weight"):
        return False
    return name.endswith(("norm.weight", "layernorm.weight")) or ".pre_fc_norm" in name


def to_file(name: str, x: Tensor) -> Tensor:
    """A weight as the file holds it, by its name in training; matrices keep their type, the rest float32."""
    if x.ndim != 2:
        x = x.float()
    if is_shifted_norm(name):
        return x + 1
    if name.endswith("conv1d.weight"):
        x = x.squeeze(1)  # [channels, 1, conv_width]
    if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        return torch.cat([x[:QK_ROWS], tile(x[QK_ROWS:], 0, C.delta_head_dim)])
    if name.endswith("in_proj_z.weight"):
        return tile(x, 0, C.delta_head_dim)
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "dt_bias")):
        return tile(x, 0, 1)
    if name.endswith("A_log"):
        return tile(-x.exp(), 0, 1)
    if name.endswith("out_proj.weight"):
        return tile(x, 1, C.delta_head_dim)
    return x


def from_file(name: str, x: Tensor) -> Tensor:
    """The inverse of `to_file`, in float32."""
    if is_shifted_norm(name):
        return x - 1
    if name.endswith("in_proj_qkv.weight"):
        return torch.cat([x[:QK_ROWS], group(x[QK_ROWS:], 0, C.delta_head_dim)])
    if name.endswith("conv1d.weight"):
        return torch.cat([x[:QK_ROWS], group(x[QK_ROWS:], 0, C.delta_head_dim)])[:, None]
    if name.endswith("in_proj_z.weight"):
        return group(x, 0, C.delta_head_dim)
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "dt_bias")):
        return group(x, 0, 1)
    if name.endswith("A_log"):
        return group((-x).log(), 0, 1)
    if name.endswith("linear_attn.out_proj.weight"):
        return group(x, 1, C.delta_head_dim)
    return x
