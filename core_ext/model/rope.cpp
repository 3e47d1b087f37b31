#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"

namespace strata {
namespace {

constexpr double DEFAULT_BASE = 10000;

/// A key from `low` on, or its default.
double number(const GgufFile& file, const std::string& key, double fallback, double low) {
    const double value = file.number_or(key, fallback);
    if (!(value >= low))
        file.fail("key " + shown(key) + " is " + std::to_string(value) + ", expected " + std::to_string(low) +
                  " or more");
    return value;
}

/// YaRN: pairs that turn more than beta_fast times within the trained context keep their frequency, those
/// below beta_slow turns are stretched, between them a ramp; and longer vectors for flatter attention.
void stretch_by_parts(const GgufFile& file, const std::string& scaling, double factor, double trained,
                      double base, int n_rot, Rope& rope) {
    const double fast = number(file, scaling + "yarn_beta_fast", 32, 1e-3);
    const double slow = number(file, scaling + "yarn_beta_slow", 1, 1e-3);
    const double share = number(file, scaling + "yarn_ext_factor", 1, 0);
    if (file.number_or(scaling + "yarn_log_multiplier", 0) != 0)
        file.fail("key " + scaling + "yarn_log_multiplier is not supported, expected none or 0");
    const auto pair_of = [&](double turns) {
        return n_rot * std::log(trained / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    const double first = std::max(0.0, std::floor(pair_of(fast)));
    const double last = std::min(n_rot - 1.0, std::ceil(pair_of(slow)));
    for (int i = 0; i < n_rot / 2; ++i) {
        const double ramp = std::clamp((i - first) / std::max(0.001, last - first), 0.0, 1.0);
        const double kept = share * (1 - ramp);
        rope.inv_freq[i] *= kept + (1 - kept) / factor;
    }
    if (share > 0) rope.magnitude = 1 + 0.1 * std::log(std::max(1.0, factor));
}

/// What the keys say; frequencies are divided by `factors` [n_rot / 2] first, unless there are none.
Rope rope_of(const GgufFile& file, const std::string& arch, int n_rot, const std::vector<float>& factors) {
    const std::string scaling = arch + ".rope.scaling.";
    const double base = number(file, arch + ".rope.freq_base", DEFAULT_BASE, 1.001);
    Rope rope;
    for (int i = 0; i < n_rot / 2; ++i) rope.inv_freq.push_back(std::pow(base, -2.0 * i / n_rot));

    for (size_t i = 0; i < factors.size(); ++i) {
        if (!(factors[i] > 0))
            file.fail("tensor rope_freqs.weight holds " + std::to_string(factors[i]) + " at " +
                      std::to_string(i) + ", expected values above 0");
        rope.inv_freq[i] /= factors[i];
    }

    // Files older than the key say the factor alone.
    const bool typed = file.find(scaling + "type") != nullptr;
    const std::string type(typed ? file.text(scaling + "type") : "linear");
    if (type == "none") return rope;
    const double factor = number(file, scaling + "factor", 1, 1e-3);
    if (type == "linear") {
        for (double& frequency : rope.inv_freq) frequency /= factor;
    } else if (type == "yarn") {
        const double context = static_cast<double>(file.integer(arch + ".context_length", 1, 1 << 30));
        const double trained = number(file, scaling + "original_context_length", context, 1);
        stretch_by_parts(file, scaling, factor, trained, base, n_rot, rope);
    } else {
        file.fail("key " + scaling + "type is \"" + shown(type) + "\", expected none, linear or yarn");
    }
    rope.magnitude *= number(file, scaling + "attn_factor", 1, 1e-3);
    return rope;
}

}  // namespace

Rope read_rope(const GgufFile& file, const std::string& arch, int n_rot) {
    return rope_of(file, arch, n_rot, file.vector("rope_freqs.weight", n_rot / 2, true));
}

Rope read_rope_keys(const GgufFile& file, const std::string& arch, int n_rot) {
    return rope_of(file, arch, n_rot, {});
}

std::string rope_text(const GgufFile& file, const std::string& arch) {
    const std::string rope = arch + ".rope.", type = rope + "scaling.type";
    const std::string scaling(file.find(type) ? file.text(type) : "linear");
    std::string text = "freq_base " + number_text(file.number_or(rope + "freq_base", DEFAULT_BASE));
    const double factor = file.number_or(rope + "scaling.factor", 1);
    if (scaling == "none" || (scaling == "linear" && factor == 1)) return text + ", no scaling";
    return text + ", " + shown(scaling) + " scaling by " + number_text(factor);
}

}  // namespace strata
