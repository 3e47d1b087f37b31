#pragma once

#include <string>

#include "model/gguf.h"
#include "model/ops.h"

namespace strata {

/// Sizes of a model, as its keys say them (and defaults where they don't).
struct Dims {
    int n_layers = 0;  // of the trunk
    int n_embd = 0;
    int n_vocab = 0;
    int context = 0;  // trained
    int n_heads = 0, n_kv_heads = 0, head_dim = 0, n_rot = 0;
    int n_ff = 0;  // of a dense layer
    float norm_eps = 0;
    DeltaShape delta;     // all zero without Gated DeltaNet layers
    ExpertShape experts;  // n = 0 without experts
};

/// Reads n_layers and context. Throws Error naming a key that is missing or wrong, as the next one does.
void read_lengths(const GgufFile& file, const std::string& arch, Dims& dims);
/// Reads what the trunk's layers and a draft layer have in common: width, norm, heads, feed-forward, experts.
void read_widths(const GgufFile& file, const std::string& arch, Dims& dims);

}  // namespace strata
