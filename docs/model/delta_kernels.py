"""fla's chunked Gated DeltaNet (package flash-linear-attention, MIT), with one backward step done otherwise.

fla 0.6 refuses its `dqkwg` kernel under Triton 3.4 to 3.7 on Hopper, where it gave wrong results. The same
step as batched products over the chunks takes its place. Against a float64 recurrence the whole operation
was within 0.5 % (values) and 0.5-1.8 % (gradients) in bf16: check_kernels.py.
"""

import fla.ops.gated_delta_rule.chunk as fla_chunk
import torch
from fla.ops.gated_delta_rule import chunk_gated_delta_rule
from torch import Tensor

torch.backends.cuda.matmul.allow_tf32 = True
torch._dynamo.config.cache_size_limit = 64


def chunked_delta_rule(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor) -> Tensor:
    """As network.delta_rule."""
    return chunk_gated_delta_rule(q, k, v, log_decay, beta, use_qk_l2norm_in_kernel=True)[0]


def _dqkwg(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w: Tensor,
    g: Tensor,
    h: Tensor,
    dv: Tensor,
    do: Tensor,
    dh: Tensor,
    scale: float,
    size: int,
) -> tuple[Tensor, ...]:
    """Gradients of q, k, w and of the decay g (cumulated in a chunk, in powers of two).

    h, dh, dv and do are what fla has at hand there.

    Args:
        q: [batch, rows, heads, dim]; k alike; v, w, do, dv with the value heads.
        h: [batch, chunks, value heads, dim, dim], the state at each chunk's begin; dh its gradient.
        size: rows a chunk.
    """
    batch, rows, heads, dim = k.shape
    v_heads = v.shape[2]
    repeat, n_chunks, dtype = v_heads // heads, rows // size, k.dtype

    def chunks(x: Tensor) -> Tensor:  # [batch, chunks, heads, size, dim]
        return x.view(batch, n_chunks, size, x.shape[2], x.shape[3]).transpose(2, 3)

    def rows_of(x: Tensor) -> Tensor:
        return x.transpose(2, 3).reshape(batch, rows, v_heads, -1)

    q_, k_ = chunks(q.repeat_interleave(repeat, 2)), chunks(k.repeat_interleave(repeat, 2))
    v_, do_, dv_ = chunks(v), chunks(do), chunks(dv.to(dtype))
    decay = g.view(batch, n_chunks, size, v_heads).transpose(2, 3).float()
    last = decay[..., -1:]
    h_t, dh_t = h.to(dtype).transpose(-1, -2), dh.to(dtype).transpose(-1, -2)

    # through the state
    dq = (do_ @ h_t).float() * (torch.exp2(decay) * scale)[..., None]
    dk = (v_ @ dh_t).float() * torch.exp2(last - decay)[..., None]
    dw = -(dv_ @ h_t)
    d_last = (h.float() * dh.float()).sum((-1, -2)) * torch.exp2(last[..., 0]) + (dk * k_.float()).sum(
        (-1, -2)
    )
    # within the chunk
    seen = torch.ones(size, size, dtype=torch.bool, device=q.device).tril()
    between = torch.where(seen, decay[..., :, None] - decay[..., None, :], -torch.inf)
    ds = ((do_ @ v_.transpose(-1, -2)).float() * torch.exp2(between) * scale).to(dtype)
    dq = dq + (ds @ k_).float()
    dk = dk + (ds.transpose(-1, -2) @ q_).float()
    dg = (dq * q_.float()).sum(-1) - (dk * k_.float()).sum(-1)
    dg = torch.cat([dg[..., :-1], dg[..., -1:] + d_last[..., None]], -1)

    dq = rows_of(dq).view(batch, rows, heads, repeat, dim).sum(3)
    dk = rows_of(dk).view(batch, rows, heads, repeat, dim).sum(3)
    dg = dg.transpose(2, 3).reshape(batch, rows, v_heads).contiguous()
    return dq.to(dtype), dk.to(dtype), rows_of(dw).contiguous(), dg


_compiled = torch.compile(_dqkwg, dynamic=False)


def _in_place_of_fla(  # the signature is fla's
    q, k, v, do, h, dh, w=None, g=None, g_gamma=None, dv=None, scale=None, state_v_first=False,
    cu_seqlens=None, chunk_size=64, chunk_indices=None,
):  # fmt: skip
    assert not state_v_first and cu_seqlens is None and g_gamma is None
    return _compiled(q, k, v, w, g, h, dv, do, dh, scale, chunk_size)


fla_chunk.chunk_bwd_dqkwg = _in_place_of_fla
