"""llama and qwen35 with its NextN layer in float64, from their formulas; weights by tensor name.

Rows are positions. Formulas: RMSNorm, SwiGLU, rotary embedding, grouped-query attention; Gated DeltaNet as
in Yang et al. 2024 (arXiv 2412.06464), one token at a time.
"""

import numpy as np
import numpy.typing as npt

from reference.random_models import Shape, Weights

Rows = npt.NDArray[np.float64]


def forward(shape: Shape, weights: Weights, tokens: npt.ArrayLike) -> dict[str, Rows]:
    """logits [n, n_vocab], hidden [n, n_embd] (after the output norm); qwen35: nextn_logits [n - 1, n_vocab].

    Row p of nextn_logits is what the draft layer makes of hidden row p and token p + 1.
    """
    ids = np.asarray(tokens)
    x = weights["token_embd.weight"][ids]
    for layer in range(shape.n_layers):
        x = _block(shape, weights, layer, x, first_position=0)
    hidden = _norm(shape, x, weights["output_norm.weight"])
    out = {"hidden": hidden, "logits": _project(hidden, weights["output.weight"])}
    if shape.arch == "qwen35":
        out["nextn_logits"] = _draft(shape, weights, hidden[:-1], ids[1:])
    return out


def _draft(s: Shape, weights: Weights, hidden: Rows, ids: npt.NDArray[np.integer]) -> Rows:
    blk = f"blk.{s.n_layers}.nextn."
    embedded = _norm(s, weights["token_embd.weight"][ids], weights[blk + "enorm.weight"])
    pair = np.concatenate([embedded, _norm(s, hidden, weights[blk + "hnorm.weight"])], axis=1)
    y = _block(s, weights, s.n_layers, _project(pair, weights[blk + "eh_proj.weight"]), first_position=1)
    return _project(_norm(s, y, weights[blk + "shared_head_norm.weight"]), weights["output.weight"])


def _block(s: Shape, weights: Weights, layer: int, x: Rows, first_position: int) -> Rows:
    prefix = f"blk.{layer}."
    w = {
        name.removeprefix(prefix).removesuffix(".weight"): v
        for name, v in weights.items()
        if name.startswith(prefix)
    }
    y = _norm(s, x, w["attn_norm"])
    x = x + (_delta(s, w, y) if s.is_delta(layer) else _attention(s, w, y, first_position))
    y = _norm(s, x, w["post_attention_norm" if s.arch == "qwen35" else "ffn_norm"])
    gate, up = _project(y, w["ffn_gate"]), _project(y, w["ffn_up"])
    return x + _project(_silu(gate) * up, w["ffn_down"])


def _attention(s: Shape, w: Weights, y: Rows, first_position: int) -> Rows:
    n, gated = len(y), s.arch == "qwen35"
    q = _project(y, w["attn_q"]).reshape(n, s.n_heads, -1)  # per head the query, then the gate of its output
    q, gate = q[..., : s.head_dim], q[..., s.head_dim :]
    k = _project(y, w["attn_k"]).reshape(n, s.n_kv_heads, s.head_dim)
    v = _project(y, w["attn_v"]).reshape(n, s.n_kv_heads, s.head_dim)
    if gated:
        q, k = _norm(s, q, w["attn_q_norm"]), _norm(s, k, w["attn_k_norm"])
    position = np.arange(first_position, first_position + n)
    q, k = _rotate(s, q, position), _rotate(s, k, position)
    k, v = (np.repeat(each, s.n_heads // s.n_kv_heads, axis=1) for each in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(s.head_dim)
    scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    share = np.exp(scores - scores.max(axis=2, keepdims=True))
    heads = np.einsum("hij,jhd->ihd", share / share.sum(axis=2, keepdims=True), v)
    if gated:
        heads = heads * _sigmoid(gate)
    return _project(heads.reshape(n, -1), w["attn_output"])


def _rotate(s: Shape, x: Rows, position: npt.NDArray[np.integer]) -> Rows:
    """The first n_rot of [n, heads, head_dim]: llama's pairs are neighbours, qwen35's half of n_rot apart."""
    half = s.n_rot // 2
    angle = position[:, None, None] * s.rope_base ** (-np.arange(half) / half)
    first = slice(0, s.n_rot, 2) if s.arch == "llama" else slice(0, half)
    second = slice(1, s.n_rot, 2) if s.arch == "llama" else slice(half, s.n_rot)
    out = x.copy()
    out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
    out[..., second] = x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle)
    return out


def _delta(s: Shape, w: Weights, y: Rows) -> Rows:
    n, size = len(y), s.state_size
    u = np.concatenate([np.zeros((s.taps - 1, s.channels)), _project(y, w["attn_qkv"])])
    mixed = _silu(sum(u[j : j + n] * w["ssm_conv1d"][:, j] for j in range(s.taps)))
    n_k = size * s.n_k_heads
    q, k, v = (part.reshape(n, -1, size) for part in np.split(mixed, [n_k, 2 * n_k], axis=1))
    q, k = (x / np.sqrt((x**2).sum(axis=2, keepdims=True) + s.norm_eps) for x in (q, k))
    of_head = np.arange(s.n_v_heads) % s.n_k_heads  # the k head that a v head reads
    q, k = q[:, of_head] / np.sqrt(size), k[:, of_head]
    beta = _sigmoid(_project(y, w["ssm_beta"]))
    decay = np.exp(w["ssm_a"] * np.logaddexp(0, _project(y, w["ssm_alpha"]) + w["ssm_dt.bias"]))
    state, out = np.zeros((s.n_v_heads, size, size)), np.empty_like(v)  # state [head, k, v]
    for t in range(n):
        state *= decay[t, :, None, None]
        d = beta[t, :, None] * (v[t] - np.einsum("hkv,hk->hv", state, k[t]))
        state += k[t, :, :, None] * d[:, None, :]
        out[t] = np.einsum("hkv,hk->hv", state, q[t])
    z = _project(y, w["attn_gate"]).reshape(v.shape)
    return _project((_norm(s, out, w["ssm_norm"]) * _silu(z)).reshape(n, -1), w["ssm_out"])


def _project(x: Rows, w: Rows) -> Rows:
    """x [n, n_in] by w [n_out, n_in]. Not by BLAS: its threads spin for longer than these products take."""
    return np.einsum("ri,oi->ro", x, w)


def _norm(s: Shape, x: Rows, weight: Rows) -> Rows:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + s.norm_eps) * weight


def _sigmoid(x: Rows) -> Rows:
    return 1 / (1 + np.exp(-x))


def _silu(x: Rows) -> Rows:
    return x * _sigmoid(x)
