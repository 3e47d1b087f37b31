#include "split/sampler.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "check.h"
#include "decode/lookup.h"

using namespace strata;

static std::vector<float> random_logits(int n, unsigned seed, float scale = 4) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> logits(n);
    for (float& x : logits) x = normal(random);
    return logits;
}

/// The definition, in double and without shortcuts.
static int reference_pick(const Sampling& s, std::vector<float> logits, const std::vector<int32_t>& recent,
                          int position) {
    std::vector<int32_t> unique = recent;
    std::sort(unique.begin(), unique.end());
    unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
    if (s.repeat_penalty != 1)
        for (int32_t t : unique)
            logits[t] = logits[t] > 0 ? logits[t] / s.repeat_penalty : logits[t] * s.repeat_penalty;
    std::vector<int32_t> order(logits.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    if (s.temperature == 0) return order[0];
    if (s.top_k > 0) order.resize(std::min<size_t>(order.size(), s.top_k));
    double total = 0, mass = 0;
    const auto weight = [&](int i) {
        return std::exp((double(logits[i]) - logits[order[0]]) / s.temperature);
    };
    for (int i : order) total += weight(i);
    std::vector<int32_t> kept;
    for (int i : order) {
        if (!kept.empty() && mass >= total * s.top_p) break;
        if (s.min_p > 0 && weight(i) < s.min_p) break;
        kept.push_back(i);
        mass += weight(i);
    }
    int best = -1;
    double best_score = 0;
    for (int i : kept) {
        const double score =
            double(logits[i]) / s.temperature - std::log(-std::log(noise(s.seed, position, i)));
        if (best < 0 || score > best_score) best = i, best_score = score;
    }
    return best;
}

TEST(sampler_equals_its_definition) {
    for (int n : {1, 2, 17, 500}) {
        Sampler sampler(cpu::kernels(), n);
        for (unsigned seed = 0; seed < 60; ++seed)
            for (const Sampling& s :
                 {Sampling{}, Sampling{0.8f, 0, 1, 0, 1, seed}, Sampling{0.7f, 0, 0.95f, 0, 1, seed},
                  Sampling{1.3f, 40, 0.9f, 0.02f, 1.1f, seed}, Sampling{0.5f, 3, 1, 0, 1.3f, seed},
                  Sampling{5.0f, 0, 0.5f, 0, 1, seed}, Sampling{0.01f, 0, 0.99f, 0.5f, 1, seed}}) {
                const auto logits = random_logits(n, seed);
                std::vector<int32_t> recent{0, n - 1, 0, n / 2};
                auto copy = logits;
                const int expected = reference_pick(s, logits, recent, 100 + seed);
                CHECK_EQ(sampler.pick(s, copy.data(), recent, 100 + seed, false).token, expected);
                copy = logits;
                const Pick detailed = sampler.pick(s, copy.data(), recent, 100 + seed, true);
                CHECK_EQ(detailed.token, expected);  // asking for more changes nothing
                CHECK(detailed.probability > 0 && detailed.probability <= 1.0001f);
                CHECK(n == 1 || detailed.second != detailed.token);
            }
    }
}

TEST(sampler_draws_by_the_distribution) {
    std::vector<float> logits{0.0f, std::log(2.0f), std::log(5.0f), std::log(2.0f)};
    Sampler sampler(cpu::kernels(), 4);
    int counts[4] = {};
    constexpr int N = 40000;
    for (int position = 0; position < N; ++position) {
        auto copy = logits;
        ++counts[sampler.pick({1, 0, 1, 0, 1, 7}, copy.data(), {}, position, false).token];
    }
    const double expected[4] = {0.1, 0.2, 0.5, 0.2};
    for (int i = 0; i < 4; ++i) CHECK_NEAR(counts[i] / double(N), expected[i], 0.01);
}

TEST(sampler_survives_broken_logits) {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        std::vector<float> logits(8, bad);
        Sampler sampler(cpu::kernels(), 8);
        const int token = sampler.pick({0.7f, 4, 0.9f, 0.1f, 1.1f, 1}, logits.data(), {}, 3, true).token;
        CHECK(token >= 0 && token < 8);
    }
}

/// The first n tokens of what the line's end is continued by.
static std::vector<int32_t> continued(Lookup& lookup, const std::vector<int32_t>& line, int n) {
    const Lookup::Match match = lookup.find(line);
    std::vector<int32_t> out;
    for (int i = 0; match.period > 0 && i < n; ++i) out.push_back(line[match.end + 1 + i % match.period]);
    return out;
}

TEST(lookup_continues_the_longest_recent_match) {
    Lookup lookup(100);
    std::vector<int32_t> line{1, 2, 3, 4, 9, 2, 3, 7, 8, 1, 2, 3};
    CHECK((continued(lookup, line, 3) == std::vector<int32_t>{4, 9, 2}));  // "1 2 3" beats the nearer "2 3"
    line.insert(line.end(), {50, 51});
    CHECK(continued(lookup, line, 3).empty());
    line.insert(line.end(), {50, 51, 50, 51});
    CHECK((continued(lookup, line, 3) == std::vector<int32_t>{50, 51, 50}));  // a loop goes on as a loop
}

TEST(lookup_starts_anew_after_forget) {
    Lookup lookup(100);
    std::vector<int32_t> first{1, 2, 3, 1, 2}, second{7, 8, 1, 2};
    CHECK_EQ(continued(lookup, first, 2).size(), size_t{2});
    lookup.forget();
    CHECK(continued(lookup, second, 2).empty());
    CHECK(continued(lookup, {5}, 2).empty());
}
