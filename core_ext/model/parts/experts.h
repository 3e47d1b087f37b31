#pragma once

#include <optional>

#include "model/parts/swiglu.h"

namespace strata {

/// A mixture of SwiGLU experts (Shazeer et al. 2017, arXiv 1701.06538): a router picks a few for each row;
/// and, where an architecture has one, a shared expert for all rows, with the weight sigmoid(<its gate, y>).
class Experts final : public FeedForward {
  public:
    /// Throws Error where the file has no experts, or `shared` is wanted and it has no shared one.
    Experts(const BlockTensors& in, bool shared);
    void run(const float* y, float* out, int rows, Workspace scratch, Ops& ops) const override;
    int64_t scratch_floats(int rows) const override;
    uint64_t row_bytes() const override;

  private:
    const int n_embd_;
    const ExpertShape shape_;
    Weight router_, shared_gate_;
    ExpertStack gate_, up_, down_;
    std::optional<SwiGlu> shared_;
};

}  // namespace strata
