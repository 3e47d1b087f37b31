#include "split/sampler.h"

#include <algorithm>
#include <cmath>

namespace strata {

/// splitmix64's finaliser over the three keys: every bit of the result depends on every bit of each.
static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t row_key(uint64_t seed, int position) {
    return mix(mix(seed) ^ static_cast<uint64_t>(position));
}

static double uniform(uint64_t key, int32_t token) {
    return (static_cast<double>(mix(key ^ static_cast<uint64_t>(token)) >> 12) + 0.5) * 0x1p-52;
}

double noise(uint64_t seed, int position, int32_t token) { return uniform(row_key(seed, position), token); }

void Sampler::penalise(const Sampling& sampling, float* logits, std::span<const int32_t> recent) const {
    if (sampling.repeat_penalty == 1) return;
    for (size_t i = 0; i < recent.size(); ++i) {
        const int32_t token = recent[i];
        if (std::find(recent.begin(), recent.begin() + i, token) != recent.begin() + i)
            continue;  // once each
        float& logit = logits[token];
        logit = logit > 0 ? logit / sampling.repeat_penalty : logit * sampling.repeat_penalty;
    }
}

static int32_t runner_up(const cpu::Kernels& kernels, const float* logits, int n, int32_t best) {
    if (n < 2) return -1;
    if (best == 0) return 1 + kernels.argmax(logits + 1, n - 1);
    const int32_t before = kernels.argmax(logits, best);
    if (best == n - 1) return before;
    const int32_t after = best + 1 + kernels.argmax(logits + best + 1, n - best - 1);
    return logits[after] > logits[before] ? after : before;
}

Pick Sampler::greedy(const float* logits, bool details) {
    const int n = static_cast<int>(weights_.size());
    Pick pick;
    pick.token = kernels_.argmax(logits, n);
    if (details) {
        pick.probability = 1.0f / kernels_.exp_sum(logits, n, logits[pick.token], 1.0f, weights_.data());
        pick.second = runner_up(kernels_, logits, n, pick.token);
    }
    return pick;
}

/// Fills candidates_ with the ids that top-k, top-p and min-p leave, given weights_.
void Sampler::keep_top(const Sampling& sampling, const float* logits, float top) {
    const int n = static_cast<int>(weights_.size());
    const auto better = [&](int32_t a, int32_t b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    };
    candidates_.clear();
    if (sampling.top_k > 0 && sampling.top_k < n) {
        for (int32_t i = 0; i < n; ++i) candidates_.push_back(i);
        std::nth_element(candidates_.begin(), candidates_.begin() + sampling.top_k, candidates_.end(),
                         better);
        candidates_.resize(sampling.top_k);
    }
    if (sampling.top_p < 1) {
        // Whole classes of weight, from the heaviest down, until they must hold top_p of the mass; then the
        // exact cut.
        std::vector<int32_t>& kept = candidates_;
        double total = 0;
        const bool all = kept.empty();
        if (all)
            for (int32_t i = 0; i < n; ++i) total += weights_[i];
        else
            for (int32_t i : kept) total += weights_[i];
        if (all) {
            for (float floor = 1.0f / 16;; floor /= 256) {
                kept.clear();
                double mass = 0;
                for (int32_t i = 0; i < n; ++i)
                    if (weights_[i] >= floor) {
                        kept.push_back(i);
                        mass += weights_[i];
                    }
                if (mass >= total * sampling.top_p + total * 1e-9 || floor < 1e-30f) break;
            }
        }
        std::sort(kept.begin(), kept.end(), better);
        double mass = 0;
        size_t count = 0;
        while (count < kept.size() && (count == 0 || mass < total * sampling.top_p))
            mass += weights_[kept[count++]];
        kept.resize(count);
    }
    if (sampling.min_p > 0) {
        if (candidates_.empty())
            for (int32_t i = 0; i < n; ++i) candidates_.push_back(i);
        const float floor = top + sampling.temperature * std::log(sampling.min_p);
        std::erase_if(candidates_, [&](int32_t i) { return logits[i] < floor; });
    }
}

Pick Sampler::pick(const Sampling& sampling, float* logits, std::span<const int32_t> recent, int position,
                   bool details) {
    penalise(sampling, logits, recent);
    if (sampling.temperature <= 0) return greedy(logits, details);

    const int n = static_cast<int>(weights_.size());
    const int32_t top = kernels_.argmax(logits, n);
    const float inverse = 1.0f / sampling.temperature;
    kernels_.exp_sum(logits, n, logits[top], inverse, weights_.data());
    keep_top(sampling, logits, logits[top]);

    // score = (logit - top) / T - log(E), E = -log(u). Since E >= 1 - u, a token can win only if 1 - u is at
    // most its weight over exp(best score): the logarithms are taken for those few alone.
    const uint64_t key = row_key(sampling.seed, position);
    double best = -INFINITY, limit = INFINITY, mass = 0, second = -INFINITY;
    Pick pick;
    const auto consider = [&](int32_t token) {
        const double weight = weights_[token];
        mass += weight;
        const double u = uniform(key, token);
        if (1 - u > weight * limit) return;
        const double score =
            static_cast<double>(logits[token] - logits[top]) * inverse - std::log(-std::log(u));
        if (score > best || (score == best && token < pick.token)) {
            if (best > -INFINITY) second = best, pick.second = pick.token;
            best = score;
            pick.token = token;
        } else if (score > second) {
            second = score;
            pick.second = token;
        }
        if (!details)
            limit = std::exp(-best) * (1 + 1e-6);
        else if (second > -INFINITY)
            limit = std::exp(-second) * (1 + 1e-6);
    };
    if (!std::isfinite(logits[top])) return {top, 0, -1};  // a broken model: nothing to draw from
    if (candidates_.empty())
        for (int32_t i = 0; i < n; ++i) consider(i);
    else
        for (int32_t i : candidates_) consider(i);
    if (details) pick.probability = static_cast<float>(weights_[pick.token] / mass);
    return pick;
}

}  // namespace strata
