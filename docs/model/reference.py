"""Strata Pebble in plain float32 PyTorch: a recurrence, a cache, nothing fast; Hugging Face's names.

The Qwen3.5 hybrid: blocks of Gated DeltaNet (arXiv 2412.06464) and gated attention, and one draft block
(MTP).
"""

from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from config import PEBBLE, Config
from torch import Tensor

MAX_POSITIONS = 8300


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * (1 + weight), over the last dimension."""
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (1.0 + weight)


def l2_norm(x: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + eps)


def rope_table(n: int, config: Config, device: str) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each [n, rope_dims / 2]."""
    exponent = torch.arange(0, config.rope_dims, 2, device=device, dtype=torch.float32) / config.rope_dims
    angle = torch.arange(n, device=device, dtype=torch.float32)[:, None] * config.rope_base ** -exponent[None]
    return angle.cos(), angle.sin()


def rope(x: Tensor, cos: Tensor, sin: Tensor, dims: int) -> Tensor:
    """Rotate pairs (i, i + dims / 2) of the first `dims` dimensions. x [batch, rows, heads, head_dim]"""
    half = dims // 2
    a, b, rest = x[..., :half], x[..., half:dims], x[..., dims:]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


DeltaState = tuple[
    Tensor, Tensor
]  # conv history [batch, conv_width - 1, channels], S [batch, v_heads, k dim, v dim]
KvCache = tuple[Tensor, Tensor]  # [batch, positions, n_kv_heads, head_dim] each


@dataclass
class State:
    """What a sequence leaves behind. Tensors are never changed in place."""

    position: int = 0
    layers: list[DeltaState | KvCache | None] = field(default_factory=list)
    draft: KvCache | None = None

    def fork(self) -> "State":
        return replace(self, layers=list(self.layers))


class Reference:
    """The model.

    Args:
        weights: Hugging Face names -> tensors.
    """

    def __init__(self, weights: dict[str, Tensor], config: Config = PEBBLE, device: str = "cpu") -> None:
        self.w = {name: weight.detach().to(device).float() for name, weight in weights.items()}
        self.config = config
        self.cos, self.sin = rope_table(MAX_POSITIONS, config, device)

    def new_state(self) -> State:
        return State(layers=[None] * self.config.n_layers)

    def trunk(self, tokens: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Read tokens [batch, rows]; the state goes on by them.

        Returns:
            hidden rows after the final norm [batch, rows, d_model], logits [batch, rows, n_vocab].
        """
        c, w = self.config, self.w
        x = w["model.embed_tokens.weight"][tokens]
        for layer in range(c.n_layers):
            prefix = f"model.layers.{layer}."
            y = rms_norm(x, w[prefix + "input_layernorm.weight"], c.eps)
            before = state.layers[layer]
            if c.is_attention(layer):
                y, state.layers[layer] = self._attention(y, prefix + "self_attn.", before, state.position)
            else:
                y, state.layers[layer] = self._delta(y, prefix + "linear_attn.", before)
            x = x + y
            x = x + self._mlp(
                rms_norm(x, w[prefix + "post_attention_layernorm.weight"], c.eps), prefix + "mlp."
            )
        state.position += tokens.shape[1]
        hidden = rms_norm(x, w["model.norm.weight"], c.eps)
        return hidden, hidden @ w["model.embed_tokens.weight"].T

    def draft(
        self, tokens: Tensor, hidden: Tensor, cache: KvCache | None, position: int
    ) -> tuple[Tensor, Tensor, KvCache]:
        """The draft block on pairs (hidden row at p, token at p + 1).

        Args:
            tokens: [batch, rows], at positions position .. position + rows - 1.
            hidden: [batch, rows, d_model], of the positions one before.

        Returns:
            rows after its norm (the next step's `hidden`), logits of the tokens that follow, the cache.
        """
        w, eps, prefix = self.w, self.config.eps, "mtp.layers.0."
        embedded = rms_norm(
            w["model.embed_tokens.weight"][tokens], w["mtp.pre_fc_norm_embedding.weight"], eps
        )
        before = rms_norm(hidden, w["mtp.pre_fc_norm_hidden.weight"], eps)
        x = torch.cat([embedded, before], -1) @ w["mtp.fc.weight"].T
        y = rms_norm(x, w[prefix + "input_layernorm.weight"], eps)
        y, cache = self._attention(y, prefix + "self_attn.", cache, position)
        x = x + y
        x = x + self._mlp(rms_norm(x, w[prefix + "post_attention_layernorm.weight"], eps), prefix + "mlp.")
        x = rms_norm(x, w["mtp.norm.weight"], eps)
        return x, x @ w["model.embed_tokens.weight"].T, cache

    def _delta(self, x: Tensor, prefix: str, state: DeltaState | None) -> tuple[Tensor, DeltaState]:
        """Gated DeltaNet, one token after the other. x [batch, rows, d_model]"""
        c, w = self.config, self.w
        batch, rows, _ = x.shape
        dim, repeat = c.delta_head_dim, c.n_v_heads // c.n_k_heads
        qkv = x @ w[prefix + "in_proj_qkv.weight"].T
        z = (x @ w[prefix + "in_proj_z.weight"].T).view(batch, rows, c.n_v_heads, dim)
        step = F.softplus(x @ w[prefix + "in_proj_a.weight"].T + w[prefix + "dt_bias"])
        decay = (-w[prefix + "A_log"].exp() * step).exp()  # [batch, rows, n_v_heads]
        beta = torch.sigmoid(x @ w[prefix + "in_proj_b.weight"].T)
        if state is None:
            history = x.new_zeros(batch, c.conv_width - 1, qkv.shape[-1])
            s = x.new_zeros(batch, c.n_v_heads, dim, dim)
        else:
            history, s = state

        padded = torch.cat([history, qkv], 1)
        taps = w[prefix + "conv1d.weight"][
            :, 0
        ]  # [channels, conv_width], the last one is the current token's
        mixed = F.silu(sum(padded[:, j : j + rows] * taps[:, j] for j in range(c.conv_width)))
        q, k, v = mixed.split([c.k_width, c.k_width, c.v_width], -1)
        q = l2_norm(q.view(batch, rows, c.n_k_heads, dim)) * dim**-0.5
        k = l2_norm(k.view(batch, rows, c.n_k_heads, dim))
        q, k = q.repeat_interleave(repeat, 2), k.repeat_interleave(repeat, 2)
        v = v.view(batch, rows, c.n_v_heads, dim)

        out = []
        for t in range(rows):
            s = s * decay[:, t, :, None, None]
            d = (v[:, t] - torch.einsum("bhij,bhi->bhj", s, k[:, t])) * beta[:, t, :, None]
            s = s + k[:, t, :, :, None] * d[:, :, None, :]
            out.append(torch.einsum("bhij,bhi->bhj", s, q[:, t]))
        o = torch.stack(out, 1)
        o = o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + c.eps) * w[prefix + "norm.weight"] * F.silu(z)
        o = o.reshape(batch, rows, c.v_width) @ w[prefix + "out_proj.weight"].T
        return o, (padded[:, -(c.conv_width - 1) :], s)

    def _attention(
        self, x: Tensor, prefix: str, cache: KvCache | None, position: int
    ) -> tuple[Tensor, KvCache]:
        """Gated attention over the cache and the rows given. x [batch, rows, d_model]"""
        c, w = self.config, self.w
        batch, rows, _ = x.shape
        dim, repeat = c.head_dim, c.n_heads // c.n_kv_heads
        q_and_gate = (x @ w[prefix + "q_proj.weight"].T).view(batch, rows, c.n_heads, 2 * dim)
        q, gate = q_and_gate[..., :dim], q_and_gate[..., dim:]
        k = (x @ w[prefix + "k_proj.weight"].T).view(batch, rows, c.n_kv_heads, dim)
        v = (x @ w[prefix + "v_proj.weight"].T).view(batch, rows, c.n_kv_heads, dim)
        cos, sin = self.cos[position : position + rows], self.sin[position : position + rows]
        q = rope(rms_norm(q, w[prefix + "q_norm.weight"], c.eps), cos, sin, c.rope_dims)
        k = rope(rms_norm(k, w[prefix + "k_norm.weight"], c.eps), cos, sin, c.rope_dims)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)

        length = k.shape[1]
        keys = k.repeat_interleave(repeat, 2).transpose(1, 2)
        values = v.repeat_interleave(repeat, 2).transpose(1, 2)
        seen = torch.ones(rows, length, dtype=torch.bool, device=x.device).tril(length - rows)
        scores = (q.transpose(1, 2) @ keys.transpose(-1, -2) * dim**-0.5).masked_fill(~seen, -torch.inf)
        o = (scores.softmax(-1) @ values).transpose(1, 2) * torch.sigmoid(gate)
        return o.reshape(batch, rows, c.n_heads * dim) @ w[prefix + "o_proj.weight"].T, (k, v)

    def _mlp(self, x: Tensor, prefix: str) -> Tensor:
        w = self.w
        gated = F.silu(x @ w[prefix + "gate_proj.weight"].T) * (x @ w[prefix + "up_proj.weight"].T)
        return gated @ w[prefix + "down_proj.weight"].T
