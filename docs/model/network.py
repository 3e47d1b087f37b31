"""Strata Pebble as it is trained: the mathematics of reference.py, whole sequences at once.

Weights stay float32 and are cast where they are used. On a GPU every block is compiled and Gated DeltaNet
runs on fla's chunked kernels; on a CPU it is the plain recurrence (for a look at the code, not for
training).
"""

import math

import torch
import torch.nn.functional as F
from config import PEBBLE
from torch import Tensor
from torch.nn import Parameter

from reference import l2_norm, rope_table

C = PEBBLE
REPEAT = C.n_heads // C.n_kv_heads
Z_LOSS = 1e-4  # weight of log(sum(exp(logits)))^2, which keeps the logits from drifting
DRAFT_PREFIX = "mtp.layers.0."
FEED_FORWARD = ("post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
ATTENTION = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.q_norm",
    "self_attn.k_norm",
    "self_attn.o_proj",
    *FEED_FORWARD,
)
DELTA_IN = (
    "in_proj_qkv.weight",
    "in_proj_z.weight",
    "in_proj_a.weight",
    "in_proj_b.weight",
    "conv1d.weight",
    "A_log",
    "dt_bias",
)


def initial_weights(device: str) -> dict[str, Parameter]:
    """Matrices normal at 0.8 / sqrt(inputs), those that write to the stream 0.005; norms 0."""
    weights: dict[str, Tensor] = {"model.embed_tokens.weight": torch.randn(C.n_vocab, C.d_model) * 0.02}

    def matrix(name: str, out: int, into: int, std: float | None = None) -> None:
        weights[name] = torch.randn(out, into) * (0.8 * into**-0.5 if std is None else std)

    def attention(prefix: str) -> None:
        matrix(prefix + "self_attn.q_proj.weight", 2 * C.n_heads * C.head_dim, C.d_model)  # q and its gate
        matrix(prefix + "self_attn.k_proj.weight", C.n_kv_heads * C.head_dim, C.d_model)
        matrix(prefix + "self_attn.v_proj.weight", C.n_kv_heads * C.head_dim, C.d_model)
        matrix(prefix + "self_attn.o_proj.weight", C.d_model, C.n_heads * C.head_dim, 0.005)
        for name in ("q_norm", "k_norm"):
            weights[f"{prefix}self_attn.{name}.weight"] = torch.zeros(C.head_dim)

    def delta(prefix: str) -> None:
        prefix += "linear_attn."
        channels = 2 * C.k_width + C.v_width
        matrix(prefix + "in_proj_qkv.weight", channels, C.d_model)
        matrix(prefix + "in_proj_z.weight", C.v_width, C.d_model)
        matrix(prefix + "in_proj_a.weight", C.n_v_heads, C.d_model, 0.02)
        matrix(prefix + "in_proj_b.weight", C.n_v_heads, C.d_model, 0.02)
        matrix(prefix + "out_proj.weight", C.d_model, C.v_width, 0.005)
        taps = torch.randn(channels, 1, C.conv_width) * 0.1
        taps[:, :, -1] += 0.7  # the current token's
        weights[prefix + "conv1d.weight"] = taps
        step = torch.exp(torch.rand(C.n_v_heads) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
        weights[prefix + "dt_bias"] = step + torch.log(-torch.expm1(-step))  # softplus of it is the step
        weights[prefix + "A_log"] = torch.log(torch.empty(C.n_v_heads).uniform_(1, 16))
        weights[prefix + "norm.weight"] = torch.ones(C.delta_head_dim)

    def feed_forward(prefix: str) -> None:
        matrix(prefix + "mlp.gate_proj.weight", C.d_ff, C.d_model)
        matrix(prefix + "mlp.up_proj.weight", C.d_ff, C.d_model)
        matrix(prefix + "mlp.down_proj.weight", C.d_model, C.d_ff, 0.005)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{prefix}{name}.weight"] = torch.zeros(C.d_model)

    for layer in range(C.n_layers):
        prefix = f"model.layers.{layer}."
        (attention if C.is_attention(layer) else delta)(prefix)
        feed_forward(prefix)
    weights["model.norm.weight"] = torch.zeros(C.d_model)
    matrix("mtp.fc.weight", C.d_model, 2 * C.d_model)
    for name in ("mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight"):
        weights[name] = torch.zeros(C.d_model)
    attention(DRAFT_PREFIX)
    feed_forward(DRAFT_PREFIX)
    return {name: Parameter(weight.to(device)) for name, weight in weights.items()}


def linear(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight.to(x.dtype))


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """x / rms(x) * (1 + weight), reduced in float32, in the type of x."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + C.eps) * (1.0 + weight)).to(x.dtype)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = C.rope_dims // 2
    wide = x[..., : 2 * half].float()
    a, b = wide[..., :half], wide[..., half:]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.cat(
        [(a * cos - b * sin).to(x.dtype), (a * sin + b * cos).to(x.dtype), x[..., 2 * half :]], -1
    )


def feed_forward(x: Tensor, norm: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    h = rms_norm(x, norm)
    return x + linear(F.silu(linear(h, gate)) * linear(h, up), down)


def delta_inputs(
    x: Tensor,
    norm: Tensor,
    w_qkv: Tensor,
    w_z: Tensor,
    w_a: Tensor,
    w_b: Tensor,
    taps: Tensor,
    a_log: Tensor,
    dt_bias: Tensor,
) -> tuple[Tensor, ...]:
    """What the recurrence takes: q, k [batch, rows, n_k_heads, dim], v, log decay, beta; and z, the gate."""
    batch, rows, _ = x.shape
    h = rms_norm(x, norm)
    qkv, z = linear(h, w_qkv), linear(h, w_z)
    ab = linear(h, torch.cat([w_a, w_b], 0)).float()
    padded = F.pad(qkv, (0, 0, C.conv_width - 1, 0)).float()
    w = taps[:, 0].float()
    mixed = F.silu(
        padded[:, 0:rows] * w[:, 0]
        + padded[:, 1 : rows + 1] * w[:, 1]
        + padded[:, 2 : rows + 2] * w[:, 2]
        + padded[:, 3 : rows + 3] * w[:, 3]
    ).to(x.dtype)
    q = mixed[..., : C.k_width].reshape(batch, rows, C.n_k_heads, -1).contiguous()
    k = mixed[..., C.k_width : 2 * C.k_width].reshape(batch, rows, C.n_k_heads, -1).contiguous()
    v = mixed[..., 2 * C.k_width :].reshape(batch, rows, C.n_v_heads, -1).contiguous()
    log_decay = -torch.exp(a_log) * F.softplus(ab[..., : C.n_v_heads] + dt_bias)
    return q, k, v, log_decay, torch.sigmoid(ab[..., C.n_v_heads :]).to(x.dtype), z


def delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor) -> Tensor:
    """The recurrence as it is written down: S = exp(g) S; d = beta (v - S^T k); S += k d^T; o = S^T q."""
    batch, rows, _, dim = q.shape
    repeat = v.shape[2] // k.shape[2]
    q = l2_norm(q).repeat_interleave(repeat, 2) * dim**-0.5
    k = l2_norm(k).repeat_interleave(repeat, 2)
    s = q.new_zeros(batch, v.shape[2], dim, dim)
    out = []
    for t in range(rows):
        s = s * log_decay[:, t].exp()[..., None, None]
        d = (v[:, t] - torch.einsum("bhij,bhi->bhj", s, k[:, t])) * beta[:, t, :, None]
        s = s + k[:, t, ..., None] * d[:, :, None]
        out.append(torch.einsum("bhij,bhi->bhj", s, q[:, t]))
    return torch.stack(out, 1)


def delta_outputs(
    x: Tensor,
    o: Tensor,
    z: Tensor,
    o_norm: Tensor,
    w_out: Tensor,
    norm: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
) -> Tensor:
    """The recurrence's output, normed and gated by z, back into the stream; then the feed-forward half."""
    batch, rows, _ = x.shape
    wide = o.float()
    gated_z = F.silu(z.view(batch, rows, C.n_v_heads, C.delta_head_dim).float())
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + C.eps) * o_norm * gated_z
    return feed_forward(x + linear(wide.to(x.dtype).reshape(batch, rows, -1), w_out), norm, gate, up, down)


def project(
    x: Tensor,
    norm: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    q_norm: Tensor,
    k_norm: Tensor,
    cos: Tensor,
    sin: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v and the output gate of an attention layer, [batch, rows, heads, head_dim]."""
    batch, rows, _ = x.shape
    h = rms_norm(x, norm)
    q_and_gate = linear(h, w_q).view(batch, rows, C.n_heads, 2 * C.head_dim)
    q, gate = q_and_gate[..., : C.head_dim], q_and_gate[..., C.head_dim :]
    k = linear(h, w_k).view(batch, rows, C.n_kv_heads, C.head_dim)
    v = linear(h, w_v).view(batch, rows, C.n_kv_heads, C.head_dim)
    return rope(rms_norm(q, q_norm), cos, sin), rope(rms_norm(k, k_norm), cos, sin), v, gate


def attention_block(
    x: Tensor, cos: Tensor, sin: Tensor, norm: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, q_norm: Tensor,
    k_norm: Tensor, w_o: Tensor, ff_norm: Tensor, gate: Tensor, up: Tensor, down: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """A whole gated-attention block, causal; also its keys and values, which draft steps look back at."""
    batch, rows, _ = x.shape
    q, k, v, o_gate = project(x, norm, w_q, w_k, w_v, q_norm, k_norm, cos, sin)
    keys, values = (t.repeat_interleave(REPEAT, 2).transpose(1, 2) for t in (k, v))
    o = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, is_causal=True).transpose(1, 2)
    x = x + linear((o * torch.sigmoid(o_gate)).reshape(batch, rows, -1), w_o)
    return feed_forward(x, ff_norm, gate, up, down), k, v


def draft_input(
    hidden: Tensor, embedding: Tensor, tokens: Tensor, embedding_norm: Tensor, hidden_norm: Tensor, fc: Tensor
) -> Tensor:
    """fc [norm(embedding of the next token); norm(hidden)]"""
    embedded = rms_norm(F.embedding(tokens, embedding).to(hidden.dtype), embedding_norm)
    return linear(torch.cat([embedded, rms_norm(hidden, hidden_norm)], -1), fc)


def trunk_loss(
    x: Tensor, norm: Tensor, embedding: Tensor, target: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cross-entropy plus the z loss; also the cross-entropy alone, the logits and the normed rows."""
    hidden = rms_norm(x, norm)
    logits = linear(hidden, embedding)
    wide = logits.float()
    log_sum = torch.logsumexp(wide, -1)
    ce = (log_sum - wide.gather(-1, target[..., None])[..., 0]).mean()
    return ce + Z_LOSS * log_sum.pow(2).mean(), ce.detach(), logits, hidden


def draft_loss(
    x: Tensor,
    norm: Tensor,
    embedding: Tensor,
    target: Tensor,
    trunk_logits: Tensor,
    alpha: Tensor,
    mask: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(1 - alpha) cross-entropy with the text + alpha cross-entropy with the trunk's own distribution.

    Returns:
        the loss, the share of positions with the trunk's argmax, the draft's rows after its norm.
    """
    hidden = rms_norm(x, norm)
    wide = linear(hidden, embedding).float()
    log_sum = torch.logsumexp(wide, -1)
    with_text = log_sum - wide.gather(-1, target[..., None])[..., 0]
    trunk = trunk_logits.float()
    with_trunk = log_sum - (torch.softmax(trunk, -1) * wide).sum(-1)
    n = mask.sum() * wide.shape[0]
    agreed = ((wide.argmax(-1) == trunk.argmax(-1)).float() * mask).sum() / n
    return (((1 - alpha) * with_text + alpha * with_trunk) * mask).sum() / n, agreed.detach(), hidden


def deep_step(
    hidden: Tensor, embedding: Tensor, tokens: Tensor, embedding_norm: Tensor, hidden_norm: Tensor,
    fc: Tensor, cos: Tensor, sin: Tensor, norm: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
    q_norm: Tensor, k_norm: Tensor, w_o: Tensor, ff_norm: Tensor, gate: Tensor, up: Tensor, down: Tensor,
    past_k: Tensor, past_v: Tensor, chain_k: list[Tensor], chain_v: list[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """One more draft step from every position at once, attending exactly as drafting does.

    A position's chain sees step 1's keys up to its position and its own keys of steps 2 .. now.

    Args:
        past_k: [batch, rows, n_kv_heads, head_dim], of step 1.
        chain_k: one such tensor for each step since.
    """
    batch, rows, _ = hidden.shape
    x = draft_input(hidden, embedding, tokens, embedding_norm, hidden_norm, fc)
    q, k, v, o_gate = project(x, norm, w_q, w_k, w_v, q_norm, k_norm, cos, sin)

    def per_head(t: Tensor) -> Tensor:
        return t.repeat_interleave(REPEAT, -2)

    own_k, own_v = (
        torch.stack([*chain_k, k]),
        torch.stack([*chain_v, v]),
    )  # [steps, batch, rows, n_kv_heads, head_dim]
    scale = C.head_dim**-0.5
    past = torch.einsum("bshd,bthd->bhst", q, per_head(past_k)).float() * scale
    future = torch.ones(rows, rows, dtype=torch.bool, device=hidden.device).triu(1)
    past = past.masked_fill(future, -torch.inf)
    own = (q[None].float() * per_head(own_k).float()).sum(-1) * scale  # [steps, batch, rows, heads]
    share = torch.softmax(torch.cat([past, own.permute(1, 3, 2, 0)], -1), -1)
    o = torch.einsum("bhst,bthd->bshd", share[..., :rows].to(hidden.dtype), per_head(past_v))
    o = o + (share[..., rows:].permute(3, 0, 2, 1)[..., None].to(hidden.dtype) * per_head(own_v)).sum(0)
    x = x + linear((o * torch.sigmoid(o_gate)).reshape(batch, rows, -1), w_o)
    return feed_forward(x, ff_norm, gate, up, down), k, v


class Network:
    """The blocks over one set of weights.

    Args:
        rows: longest sequence.
        compiled: the GPU's blocks (see module).
    """

    def __init__(self, weights: dict[str, Parameter], rows: int, device: str, compiled: bool) -> None:
        self.weights = weights
        self.device = device
        self.dtype = torch.bfloat16 if compiled else torch.float32
        self.cos, self.sin = rope_table(rows + 8, C, device)
        blocks = (
            delta_inputs,
            delta_outputs,
            attention_block,
            trunk_loss,
            draft_loss,
            deep_step,
            draft_input,
        )
        for block in blocks:
            setattr(self, block.__name__, torch.compile(block, dynamic=False) if compiled else block)
        self.delta_rule = delta_rule
        if compiled:
            from delta_kernels import chunked_delta_rule

            self.delta_rule = chunked_delta_rule

    def trunk(self, tokens: Tensor) -> Tensor:
        """Rows before the final norm, [batch, rows, d_model]."""
        w, rows = self.weights, tokens.shape[1]
        x = F.embedding(tokens, w["model.embed_tokens.weight"]).to(self.dtype)
        for layer in range(C.n_layers):
            prefix = f"model.layers.{layer}."
            if C.is_attention(layer):
                x, _, _ = self.attention_block(
                    x, self.cos[:rows], self.sin[:rows], *self._of(prefix, ATTENTION)
                )
                continue
            delta = prefix + "linear_attn."
            norm = w[prefix + "input_layernorm.weight"]
            *recurrence, z = self.delta_inputs(x, norm, *[w[delta + name] for name in DELTA_IN])
            o = self.delta_rule(*recurrence)
            outputs = (
                w[delta + "norm.weight"],
                w[delta + "out_proj.weight"],
                *self._of(prefix, FEED_FORWARD),
            )
            x = self.delta_outputs(x, o, z, *outputs)
        return x

    def loss(
        self,
        tokens: Tensor,
        deep: bool,
        draft_weight: float,
        deep_weight: float,
        alpha: Tensor,
        deep_shape: tuple[int, int],
    ) -> tuple[Tensor, list[Tensor]]:
        """The whole loss of a batch.

        Args:
            tokens: [batch, rows + 2].
            deep: three further draft steps as well.
            alpha: share of the trunk's distribution in the drafts' target.
            deep_shape: sequences and rows of the batch that the further steps are trained on.

        Returns:
            the loss; cross-entropy of the trunk, draft loss, agreement of draft step 1, 2, ...
        """
        w, rows = self.weights, tokens.shape[1] - 2
        embedding, draft_norm = w["model.embed_tokens.weight"], w["mtp.norm.weight"]
        inputs = [
            w["mtp.pre_fc_norm_embedding.weight"],
            w["mtp.pre_fc_norm_hidden.weight"],
            w["mtp.fc.weight"],
        ]
        block = self._of(DRAFT_PREFIX, ATTENTION)

        x = self.trunk(tokens[:, :rows])
        loss, ce, logits, hidden = self.trunk_loss(
            x, w["model.norm.weight"], embedding, tokens[:, 1 : rows + 1]
        )

        ahead = torch.cat([logits[:, 1:], logits[:, :1]], 1).detach()  # what the trunk says one position on
        mask = torch.ones(rows, device=self.device)
        mask[-1] = 0
        x = self.draft_input(hidden, embedding, tokens[:, 1 : rows + 1], *inputs)
        x, k, v = self.attention_block(x, self.cos[1 : rows + 1], self.sin[1 : rows + 1], *block)
        step_loss, agreed, hidden = self.draft_loss(
            x, draft_norm, embedding, tokens[:, 2:], ahead, alpha, mask
        )
        loss = loss + draft_weight * step_loss
        seen = [ce, step_loss.detach(), agreed]
        if not deep:
            return loss, seen

        n, rows = deep_shape
        hidden, k, v = hidden[:n, :rows], k[:n, :rows], v[:n, :rows]
        chain_k: list[Tensor] = []
        chain_v: list[Tensor] = []
        for step in range(2, 5):
            at = slice(step, step + rows)
            rotary = (self.cos[at], self.sin[at])
            chain = (k, v, chain_k, chain_v)
            x, own_k, own_v = self.deep_step(
                hidden, embedding, tokens[:n, at], *inputs, *rotary, *block, *chain
            )
            chain_k, chain_v = [*chain_k, own_k], [*chain_v, own_v]
            target = tokens[:n, step + 1 : step + 1 + rows]
            step_loss, agreed, hidden = self.draft_loss(
                x, draft_norm, embedding, target, logits[:n, at].detach(), alpha, mask.new_ones(rows)
            )
            loss = loss + deep_weight * step_loss
            seen.append(agreed)
        return loss, seen

    def _of(self, prefix: str, names: tuple[str, ...]) -> list[Parameter]:
        return [self.weights[f"{prefix}{name}.weight"] for name in names]
