#include "model/parts/experts.h"

#include <algorithm>

namespace strata {

Experts::Experts(const BlockTensors& in, bool shared) : n_embd_(in.dims.n_embd), shape_(in.dims.experts) {
    in.file.integer(in.key("expert_count"), 1, INT32_MAX);
    const int n_ff = shape_.n_ff;
    router_ = in.weight("ffn_gate_inp.weight", n_embd_, shape_.n);
    if (const Weight both = in.stack("ffn_gate_up_exps.weight", n_embd_, 2 * n_ff, shape_.n, true)) {
        gate_.first = up_.first = both;
        gate_.first.n_out = up_.first.n_out = n_ff;
        up_.first.data = static_cast<const uint8_t*>(both.data) + n_ff * both.row_bytes;
        gate_.stride_bytes = up_.stride_bytes = weight_bytes(both);
    } else {
        gate_.first = in.stack("ffn_gate_exps.weight", n_embd_, n_ff, shape_.n);
        up_.first = in.stack("ffn_up_exps.weight", n_embd_, n_ff, shape_.n);
        gate_.stride_bytes = weight_bytes(gate_.first);
        up_.stride_bytes = weight_bytes(up_.first);
    }
    down_.first = in.stack("ffn_down_exps.weight", n_ff, n_embd_, shape_.n);
    down_.stride_bytes = weight_bytes(down_.first);
    if (!shared) return;
    in.file.integer(in.key("expert_shared_feed_forward_length"), 1, INT32_MAX);
    shared_gate_ = in.weight("ffn_gate_inp_shexp.weight", n_embd_, 1);
    shared_.emplace(in, shape_.n_ff_shared, "_shexp");
}

int64_t Experts::scratch_floats(int rows) const {
    const int64_t routed = taken(int64_t{rows} * shape_.n);
    if (!shared_) return routed;
    return std::max(routed, taken(rows) + taken(int64_t{rows} * n_embd_) + shared_->scratch_floats(rows));
}

uint64_t Experts::row_bytes() const {
    const uint64_t one = weight_bytes(gate_.first) + weight_bytes(up_.first) + weight_bytes(down_.first);
    return weight_bytes(router_) + shape_.n_used * one +
           (shared_ ? weight_bytes(shared_gate_) + shared_->row_bytes() : 0);
}

void Experts::run(const float* y, float* out, int rows, Workspace scratch, Ops& ops) const {
    Workspace rest = scratch;
    float* logits = rest.take(int64_t{rows} * shape_.n);
    ops.project({{&router_, logits, shape_.n}}, y, rows);
    ExpertsOp op;
    op.shape = shape_;
    op.gate = &gate_;
    op.up = &up_;
    op.down = &down_;
    op.logits = logits;
    op.x = y;
    op.out = out;
    ops.experts(op, rows);
    if (!shared_) return;

    float* gate = scratch.take(rows);
    float* shared = scratch.take(int64_t{rows} * n_embd_);
    ops.project({{&shared_gate_, gate, 1}}, y, rows);
    shared_->run(y, shared, rows, scratch, ops);
    ops.add_gated(out, gate, shared, rows, n_embd_);
}

}  // namespace strata
