#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace strata {

struct Sampling {
    float temperature = 0;     // 0: greedy
    int top_k = 0;             // 0: off
    float top_p = 1;           // 1: off
    float min_p = 0;           // 0: off
    float repeat_penalty = 1;  // 1: off
    uint64_t seed = 0;
};

/// A token, how probable the settings made it, and the runner-up.
struct Pick {
    int32_t token = 0;
    float probability = 0;
    int32_t second = -1;
};

/// The uniform noise in (0, 1) of one token at one position: a hash, so that every arm draws the same.
double noise(uint64_t seed, int position, int32_t token);

/// Picks by Gumbel-max: the largest logit / temperature + gumbel(seed, position, token) among the tokens that
/// top-k, top-p and min-p leave (in this order, on the logits after penalties and temperature); ties go to
/// the lowest id. So a pick is a function of the logits, the tokens before it and its position: not of what
/// was computed beside it.
class Sampler {
  public:
    static constexpr int PENALTY_WINDOW = 64;

    Sampler(const cpu::Kernels& kernels, int n_vocab) : kernels_(kernels), weights_(n_vocab) {
        candidates_.reserve(n_vocab);
    }

    /// logits [n_vocab] may be changed. `recent`: the last tokens before the one picked, newest last,
    /// PENALTY_WINDOW at most. `position` of the token picked. Probability and second are computed where
    /// asked for.
    Pick pick(const Sampling& sampling, float* logits, std::span<const int32_t> recent, int position,
              bool details);

  private:
    void penalise(const Sampling& sampling, float* logits, std::span<const int32_t> recent) const;
    Pick greedy(const float* logits, bool details);
    void keep_top(const Sampling& sampling, const float* logits, float top);

    const cpu::Kernels& kernels_;
    std::vector<float> weights_;       // [n_vocab]: exp((logit - top) / temperature)
    std::vector<int32_t> candidates_;  // ids left by the filters
};

}  // namespace strata
