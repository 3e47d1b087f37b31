#include "model/parts/attention.h"

#include <cmath>

namespace strata {

Attention::Attention(const BlockTensors& in, AttentionForm form)
    : dims_(in.dims),
      form_(form),
      n_q_(dims_.n_heads * dims_.head_dim),
      n_kv_(dims_.n_kv_heads * dims_.head_dim),
      n_projected_(form.gated ? 2 * n_q_ : n_q_) {
    q_ = in.weight("attn_q.weight", dims_.n_embd, n_projected_);
    k_ = in.weight("attn_k.weight", dims_.n_embd, n_kv_);
    v_ = in.weight("attn_v.weight", dims_.n_embd, n_kv_);
    output_ = in.weight("attn_output.weight", n_q_, dims_.n_embd);
    q_bias_ = in.bias("attn_q", n_projected_);
    k_bias_ = in.bias("attn_k", n_kv_);
    v_bias_ = in.bias("attn_v", n_kv_);
    output_bias_ = in.bias("attn_output", dims_.n_embd);
    if (form_.head_norms) {
        q_norm_ = in.vector("attn_q_norm.weight", dims_.head_dim);
        k_norm_ = in.vector("attn_k_norm.weight", dims_.head_dim);
    }
    scale_ = static_cast<float>(in.file.number_or(in.key("attention.scale"), 0));
    if (!(scale_ > 0)) scale_ = 1.0f / std::sqrt(static_cast<float>(dims_.head_dim));
}

int64_t Attention::scratch_floats(int rows) const {
    return taken(int64_t{rows} * n_projected_) + 2 * taken(int64_t{rows} * n_kv_) +
           taken(int64_t{rows} * n_q_);
}

uint64_t Attention::row_bytes() const {
    return weight_bytes(q_) + weight_bytes(k_) + weight_bytes(v_) + weight_bytes(output_);
}

void Attention::run(LayerState& state, const Batch& batch, int cell, const float* y, float* out,
                    Workspace scratch, Ops& ops) const {
    const int rows = batch.rows;
    float* q = scratch.take(int64_t{rows} * n_projected_);
    float* k = scratch.take(int64_t{rows} * n_kv_);
    float* v = scratch.take(int64_t{rows} * n_kv_);
    float* heads = scratch.take(int64_t{rows} * n_q_);
    ops.project({{&q_, q, n_projected_}, {&k_, k, n_kv_}, {&v_, v, n_kv_}}, y, rows);
    if (!q_bias_.empty()) ops.add_row(q, q_bias_.data(), rows, n_projected_);
    if (!k_bias_.empty()) ops.add_row(k, k_bias_.data(), rows, n_kv_);
    if (!v_bias_.empty()) ops.add_row(v, v_bias_.data(), rows, n_kv_);

    AttentionOp op;
    op.q = q;
    op.q_stride = n_projected_ / dims_.n_heads;
    op.gated = form_.gated;
    op.k = k;
    op.v = v;
    op.q_norm = form_.head_norms ? q_norm_.data() : nullptr;
    op.k_norm = form_.head_norms ? k_norm_.data() : nullptr;
    op.norm_eps = dims_.norm_eps;
    op.n_heads = dims_.n_heads;
    op.n_kv_heads = dims_.n_kv_heads;
    op.head_dim = dims_.head_dim;
    op.n_rot = form_.rotates ? dims_.n_rot : 0;
    op.adjacent_pairs = form_.adjacent_pairs;
    op.cos = batch.cos;
    op.sin = batch.sin;
    op.cache = state.kv;
    op.position = cell;
    op.scale = scale_;
    op.out = heads;
    ops.attention(op, rows);
    ops.project({{&output_, out, dims_.n_embd, true}}, heads, rows);
    if (!output_bias_.empty()) ops.add_row(out, output_bias_.data(), rows, dims_.n_embd);
}

}  // namespace strata
