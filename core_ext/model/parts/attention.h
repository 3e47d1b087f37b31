#pragma once

#include "model/parts/part.h"

namespace strata {

/// What tells one architecture's attention from another's.
struct AttentionForm {
    bool adjacent_pairs = false;  // rotates pairs (2i, 2i + 1); else (i, i + n_rot / 2)
    bool rotates = true;          // else the layer knows no positions
    bool head_norms = false;      // RMSNorm of each query and key head before it is rotated
    bool gated = false;  // rows of attn_q: each head's query, then the gate (a sigmoid) of its output
};

/// Grouped-query attention with rotary positions: head h reads kv head h / (n_heads / n_kv_heads). Biases
/// where the file has them.
class Attention final : public Mixer {
  public:
    Attention(const BlockTensors& in, AttentionForm form);
    LayerKind kind() const override { return LayerKind::attention; }
    void run(LayerState& state, const Batch& batch, int cell, const float* y, float* out, Workspace scratch,
             Ops& ops) const override;
    int64_t scratch_floats(int rows) const override;
    uint64_t row_bytes() const override;

  private:
    const Dims& dims_;
    const AttentionForm form_;
    const int n_q_, n_kv_, n_projected_;  // floats of a row: queries, keys, queries with their gates
    Weight q_, k_, v_, output_;
    std::vector<float> q_bias_, k_bias_, v_bias_, output_bias_, q_norm_, k_norm_;
    float scale_;
};

}  // namespace strata
