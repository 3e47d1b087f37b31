#pragma once

#include "model/parts/part.h"

namespace strata {

/// down (silu(gate y) * up y), biases where the file has them.
class SwiGlu final : public FeedForward {
  public:
    /// The tensors ffn_gate, ffn_up and ffn_down with `suffix` behind, n_ff wide.
    SwiGlu(const BlockTensors& in, int n_ff, const std::string& suffix = "");
    explicit SwiGlu(const BlockTensors& in) : SwiGlu(in, in.dims.n_ff) {}
    void run(const float* y, float* out, int rows, Workspace scratch, Ops& ops) const override;
    int64_t scratch_floats(int rows) const override { return 2 * taken(int64_t{rows} * n_ff_); }
    uint64_t row_bytes() const override {
        return weight_bytes(gate_) + weight_bytes(up_) + weight_bytes(down_);
    }

  private:
    const int n_embd_, n_ff_;
    Weight gate_, up_, down_;
    std::vector<float> gate_bias_, up_bias_, down_bias_;
};

}  // namespace strata
