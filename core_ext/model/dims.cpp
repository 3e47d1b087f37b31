#include "model/dims.h"

#include <algorithm>

namespace strata {

namespace {

// Far above any model's; what lies beyond is a damaged file.
constexpr int64_t MAX_LAYERS = 4096, MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 14, MAX_CONTEXT = 1 << 30,
                  MAX_FF = MAX_WIDTH * 8, MAX_EXPERTS = 1 << 16, MAX_HEADS_WIDTH = 1 << 24;

/// "block_count" -> "llama.block_count".
struct Key {
    const std::string& arch;
    std::string operator()(const std::string& name) const { return arch + "." + name; }
};

void read_heads(const GgufFile& file, const Key& key, Dims& dims) {
    dims.n_heads = static_cast<int>(file.integer(key("attention.head_count"), 1, MAX_HEADS));
    dims.n_kv_heads = dims.n_heads;
    // One number, or one a layer (0 in layers without attention; the others equal).
    bool seen = false;
    for (int64_t count : file.integers(key("attention.head_count_kv"), MAX_LAYERS)) {
        if (count == 0) continue;
        if (count < 0 || count > dims.n_heads || dims.n_heads % count != 0)
            file.fail("key " + key("attention.head_count_kv") + " is " + std::to_string(count) +
                      ", expected a divisor of the " + std::to_string(dims.n_heads) + " heads");
        if (seen && dims.n_kv_heads != count)
            file.fail("key " + key("attention.head_count_kv") + " holds " + std::to_string(dims.n_kv_heads) +
                      " and " + std::to_string(count) + ", expected the same in every layer");
        dims.n_kv_heads = static_cast<int>(count);
        seen = true;
    }

    if (!file.find(key("attention.key_length")) && dims.n_embd % dims.n_heads)
        file.fail("key " + key("attention.head_count") + " is " + std::to_string(dims.n_heads) +
                  ", expected a divisor of the width " + std::to_string(dims.n_embd) +
                  " or a key attention.key_length");
    const int per_head = std::max(1, dims.n_embd / dims.n_heads);
    const auto size = [&](const char* name, int fallback, int64_t low, int64_t high) {
        return static_cast<int>(file.integer_or(key(name), fallback, low, high));
    };
    dims.head_dim = size("attention.key_length", per_head, 1, MAX_HEADS_WIDTH / dims.n_heads);
    if (const int v_dim = size("attention.value_length", per_head, 1, MAX_WIDTH); v_dim != dims.head_dim)
        file.fail("key " + key("attention.value_length") + " is " + std::to_string(v_dim) +
                  ", expected the key_length " + std::to_string(dims.head_dim));
    dims.n_rot = size("rope.dimension_count", dims.head_dim, 0, dims.head_dim);
    if (dims.n_rot % 2)
        file.fail("key " + key("rope.dimension_count") + " is " + std::to_string(dims.n_rot) +
                  ", expected an even number");
}

void read_experts(const GgufFile& file, const Key& key, Dims& dims) {
    ExpertShape& e = dims.experts;
    const auto size = [&](const char* name, int64_t fallback, int64_t low, int64_t high) {
        return static_cast<int>(file.integer_or(key(name), fallback, low, high));
    };
    e.n = size("expert_count", 0, 0, MAX_EXPERTS);
    if (e.n == 0) {
        dims.n_ff = static_cast<int>(file.integer(key("feed_forward_length"), 1, MAX_FF));
        return;
    }
    dims.n_ff = size("feed_forward_length", 0, 0, MAX_FF);
    e.n_used = static_cast<int>(file.integer(key("expert_used_count"), 1, e.n));
    e.n_ff = size("expert_feed_forward_length", dims.n_ff, 1, MAX_FF);
    e.n_ff_shared = size("expert_shared_feed_forward_length", 0, 0, MAX_FF);
    if (const int64_t gating = file.integer_or(key("expert_gating_func"), 1, 0, 3); gating > 0)
        e.gating = static_cast<Gating>(gating);
    e.scale = static_cast<float>(file.number_or(key("expert_weights_scale"), 1));
    if (e.scale == 0) e.scale = 1;  // as files write it that have none
}

}  // namespace

void read_lengths(const GgufFile& file, const std::string& arch, Dims& dims) {
    const Key key{arch};
    dims.context = static_cast<int>(file.integer(key("context_length"), 1, MAX_CONTEXT));
    const int64_t n_blocks = file.integer(key("block_count"), 1, MAX_LAYERS);
    dims.n_layers =
        static_cast<int>(n_blocks - file.integer_or(key("nextn_predict_layers"), 0, 0, n_blocks - 1));
}

void read_widths(const GgufFile& file, const std::string& arch, Dims& dims) {
    const Key key{arch};
    dims.n_embd = static_cast<int>(file.integer(key("embedding_length"), 1, MAX_WIDTH));
    dims.norm_eps = static_cast<float>(file.number_or(key("attention.layer_norm_rms_epsilon"), -1));
    if (!(dims.norm_eps >= 0 && dims.norm_eps < 1))
        file.fail("key " + key("attention.layer_norm_rms_epsilon") + " should be given, from 0 to below 1");
    read_heads(file, key, dims);
    read_experts(file, key, dims);
}

}  // namespace strata
