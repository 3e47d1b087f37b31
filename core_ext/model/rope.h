#pragma once

#include <string>
#include <vector>

#include "model/gguf.h"

namespace strata {

/// Rotary embedding: at position p pair i is turned by p * inv_freq[i] and made `magnitude` times as long.
struct Rope {
    std::vector<double> inv_freq;  // [n_rot / 2]
    double magnitude = 1;
};

/// Frequencies base^(-2i / n_rot) as the file wants them: divided by rope_freqs.weight where it is there
/// (llama3's scaling comes as such factors), then stretched by ARCH.rope.scaling.*: none, linear or yarn
/// (Peng et al. 2023, arXiv 2309.00071). Throws Error naming a key or tensor that can't be.
Rope read_rope(const GgufFile& file, const std::string& arch, int n_rot);
/// The same without rope_freqs.weight.
Rope read_rope_keys(const GgufFile& file, const std::string& arch, int n_rot);
/// "freq_base 10000, yarn scaling by 4": what these keys say, for messages.
std::string rope_text(const GgufFile& file, const std::string& arch);

}  // namespace strata
