#include "model/parts/swiglu.h"

namespace strata {

SwiGlu::SwiGlu(const BlockTensors& in, int n_ff, const std::string& suffix)
    : n_embd_(in.dims.n_embd), n_ff_(n_ff) {
    gate_ = in.weight("ffn_gate" + suffix + ".weight", n_embd_, n_ff_);
    up_ = in.weight("ffn_up" + suffix + ".weight", n_embd_, n_ff_);
    down_ = in.weight("ffn_down" + suffix + ".weight", n_ff_, n_embd_);
    gate_bias_ = in.bias("ffn_gate" + suffix, n_ff_);
    up_bias_ = in.bias("ffn_up" + suffix, n_ff_);
    down_bias_ = in.bias("ffn_down" + suffix, n_embd_);
}

void SwiGlu::run(const float* y, float* out, int rows, Workspace scratch, Ops& ops) const {
    float* gate = scratch.take(int64_t{rows} * n_ff_);
    float* up = scratch.take(int64_t{rows} * n_ff_);
    ops.project({{&gate_, gate, n_ff_}, {&up_, up, n_ff_}}, y, rows);
    if (!gate_bias_.empty()) ops.add_row(gate, gate_bias_.data(), rows, n_ff_);
    if (!up_bias_.empty()) ops.add_row(up, up_bias_.data(), rows, n_ff_);
    ops.silu_mul(gate, up, gate, int64_t{rows} * n_ff_);
    ops.project({{&down_, out, n_embd_, true}}, gate, rows);
    if (!down_bias_.empty()) ops.add_row(out, down_bias_.data(), rows, n_embd_);
}

}  // namespace strata
