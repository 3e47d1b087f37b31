#pragma once

#include "model/parts/part.h"

namespace strata {

/// Sizes from ARCH.ssm.*. `interleaved`: v head h reads k head h % n_k_heads, else h / (n_v_heads /
/// n_k_heads).
DeltaShape read_delta_shape(const GgufFile& file, const std::string& arch, bool interleaved);

/// The kind of each trunk layer: attention.recurrent_layers where the file has it, else attention in every
/// full_attention_interval-th layer.
std::vector<LayerKind> read_layer_kinds(const GgufFile& file, const std::string& arch, int n_layers);

/// The matrices of a Gated DeltaNet layer that read the normed row, as the layer wants them.
struct DeltaInputs {
    Weight qkv;          // [channels, n_embd]: rows of q, k, v
    Weight z;            // [n_v_heads * v_dim, n_embd]
    Weight beta, alpha;  // [n_v_heads, n_embd]
};

/// Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464): a short convolution, then one gated delta step a
/// token and head (ops.h: DeltaOp).
class DeltaNet final : public Mixer {
  public:
    DeltaNet(const BlockTensors& in, DeltaInputs inputs);
    LayerKind kind() const override { return LayerKind::delta; }
    void run(LayerState& state, const Batch& batch, int cell, const float* y, float* out, Workspace scratch,
             Ops& ops) const override;
    int64_t scratch_floats(int rows) const override;
    uint64_t row_bytes() const override;

  private:
    const Dims& dims_;
    const int inner_;  // n_v_heads * v_dim
    DeltaInputs inputs_;
    Weight out_;
    std::vector<float> conv_, dt_bias_, ssm_a_, norm_;  // conv_ [taps, channels]
};

}  // namespace strata
