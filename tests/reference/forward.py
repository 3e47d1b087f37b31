"""Every architecture, NextN layers too, in float64 from the formulas; weights by tensor name.

Rows are positions. Formulas: RMSNorm, SwiGLU, rotary embedding, grouped-query attention; Gated DeltaNet as
in Yang et al. 2024 (arXiv 2412.06464), one token at a time; YaRN as in Peng et al. 2023 (arXiv 2309.00071).
"""

import numpy as np
import numpy.typing as npt

from reference.random_models import Shape, Weights, llama3_factors

Rows = npt.NDArray[np.float64]


def forward(shape: Shape, weights: Weights, tokens: npt.ArrayLike) -> dict[str, Rows]:
    """logits [n, n_vocab], hidden [n, n_embd] (after the output norm); hybrids: nextn_logits [n - 1, ..].

    Row p of nextn_logits is what the draft layer makes of hidden row p and token p + 1.
    """
    ids = np.asarray(tokens)
    x = weights["token_embd.weight"][ids]
    for layer in range(shape.n_layers):
        x = _block(shape, weights, layer, x, first_position=0)
    hidden = _norm(shape, x, weights["output_norm.weight"])
    out = {"hidden": hidden, "logits": _project(hidden, weights["output.weight"])}
    if shape.is_hybrid:
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
    x = x + (_delta(s, w, y) if s.is_delta(layer) else _attention(s, w, y, layer, first_position))
    y = _norm(s, x, w[s.ffn_norm])
    return x + (_experts(s, w, y) if s.is_moe else _swiglu(y, w, ""))


def _swiglu(y: Rows, w: Weights, suffix: str) -> Rows:
    gate, up = _project(y, w["ffn_gate" + suffix]), _project(y, w["ffn_up" + suffix])
    return _project(_silu(gate) * up, w["ffn_down" + suffix])


def _experts(s: Shape, w: Weights, y: Rows) -> Rows:
    """Each row through its experts alone, one after the other."""
    logits = _project(y, w["ffn_gate_inp"])
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    out = np.zeros_like(y)
    for row in range(len(y)):
        chosen = sorted(range(s.n_experts), key=lambda e: (-logits[row, e], e))[: s.n_used]
        total = 1.0 if s.arch == "qwen2moe" else max(sum(shares[row, e] for e in chosen), 2.0**-14)
        for e in chosen:
            one = {f"ffn_{name}": w[f"ffn_{name}_exps"][e] for name in ("gate", "up", "down")}
            out[row] += shares[row, e] / total * _swiglu(y[row : row + 1], one, "")[0]
    if s.has_shared_expert:
        out += _sigmoid(y @ w["ffn_gate_inp_shexp"])[:, None] * _swiglu(y, w, "_shexp")
    return out


def _attention(s: Shape, w: Weights, y: Rows, layer: int, first_position: int) -> Rows:
    n = len(y)
    rows = {x: _project(y, w[f"attn_{x}"]) + w.get(f"attn_{x}.bias", 0.0) for x in "qkv"}
    q = rows["q"].reshape(n, s.n_heads, -1)  # of hybrids per head the query, then the gate of its output
    q, gate = q[..., : s.head_dim], q[..., s.head_dim :]
    k, v = (rows[x].reshape(n, s.n_kv_heads, s.head_dim) for x in "kv")
    if s.has_head_norms:
        q, k = _norm(s, q, w["attn_q_norm"]), _norm(s, k, w["attn_k_norm"])
    position = np.arange(first_position, first_position + n)
    if not (s.arch == "smollm3" and layer % 4 == 3):
        q, k = _rotate(s, q, position), _rotate(s, k, position)
    k, v = (np.repeat(each, s.n_heads // s.n_kv_heads, axis=1) for each in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(s.head_dim)
    scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    share = np.exp(scores - scores.max(axis=2, keepdims=True))
    heads = np.einsum("hij,jhd->ihd", share / share.sum(axis=2, keepdims=True), v)
    if s.is_hybrid:
        heads = heads * _sigmoid(gate)
    return _project(heads.reshape(n, -1), w["attn_output"])


def _rotate(s: Shape, x: Rows, position: npt.NDArray[np.integer]) -> Rows:
    """The first n_rot of [n, heads, head_dim]: llama's pairs are neighbours, others' n_rot / 2 apart."""
    half = s.n_rot // 2
    frequency, length = _frequencies(s)
    angle = position[:, None, None] * frequency
    first = slice(0, s.n_rot, 2) if s.has_adjacent_pairs else slice(0, half)
    second = slice(1, s.n_rot, 2) if s.has_adjacent_pairs else slice(half, s.n_rot)
    out = x.copy()
    out[..., first] = length * (x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle))
    out[..., second] = length * (x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle))
    return out


def _frequencies(s: Shape) -> tuple[Rows, float]:
    """Of each pair, and the factor of its length."""
    pair = np.arange(s.n_rot // 2)
    frequency = s.rope_base ** (-2 * pair / s.n_rot)
    if s.scaling == "linear":
        return frequency / 4, 1.0
    if s.scaling == "llama3":
        return frequency / llama3_factors(s), 1.0
    if s.scaling == "yarn":
        # Pairs that turn 32 times within 64 positions are kept, those that turn once or less are stretched.
        low, high = (s.n_rot * np.log(64 / (t * 2 * np.pi)) / (2 * np.log(s.rope_base)) for t in (32, 1))
        stretched = np.clip((pair - max(0, np.floor(low))) / (np.ceil(high) - max(0, np.floor(low))), 0, 1)
        return frequency * (stretched / 4 + 1 - stretched), 1 + 0.1 * np.log(4)
    return frequency, 1.0


def _delta(s: Shape, w: Weights, y: Rows) -> Rows:
    n, size = len(y), s.state_size
    u = np.concatenate([np.zeros((s.taps - 1, s.channels)), _project(y, w["attn_qkv"])])
    mixed = _silu(sum(u[j : j + n] * w["ssm_conv1d"][:, j] for j in range(s.taps)))
    n_k = size * s.n_k_heads
    q, k, v = (part.reshape(n, -1, size) for part in np.split(mixed, [n_k, 2 * n_k], axis=1))
    q, k = (x / np.sqrt((x**2).sum(axis=2, keepdims=True) + s.norm_eps) for x in (q, k))
    head, r = np.arange(s.n_v_heads), s.n_v_heads // s.n_k_heads
    of_head = head // r if s.arch == "qwen3next" else head % s.n_k_heads  # the k head that a v head reads
    q, k = q[:, of_head] / np.sqrt(size), k[:, of_head]
    if s.arch == "qwen3next":  # by k head: b of its v heads, then a
        ba = _project(y, w["ssm_ba"]).reshape(n, s.n_k_heads, 2, r)
        b, a = ba[:, :, 0].reshape(n, -1), ba[:, :, 1].reshape(n, -1)
    else:
        b, a = _project(y, w["ssm_beta"]), _project(y, w["ssm_alpha"])
    beta = _sigmoid(b)
    decay = np.exp(w["ssm_a"] * np.logaddexp(0, a + w["ssm_dt.bias"]))
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
