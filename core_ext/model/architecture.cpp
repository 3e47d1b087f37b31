#include "model/architecture.h"

#include "base/error.h"
#include "base/text.h"
#include "model/draft_file.h"

namespace strata {

namespace {

struct Known {
    const char* name;
    std::unique_ptr<Architecture> (*load)(ModelFiles);
};

constexpr Known KNOWN[] = {
    {"llama", load_llama},         {"internlm2", load_llama}, {"ernie4_5", load_llama},
    {"smollm3", load_smollm3},     {"qwen2", load_qwen2},     {"qwen2moe", load_qwen2},
    {"seed_oss", load_qwen2},      {"qwen3", load_qwen3},     {"qwen3moe", load_qwen3},
    {"qwen3next", load_qwen3next}, {"qwen35", load_qwen35},   {"qwen35moe", load_qwen35},
};

// Far above any model's; what lies beyond is a damaged file.
constexpr int64_t MAX_LAYERS = 4096, MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 14, MAX_CONTEXT = 1 << 30,
                  MAX_FF = MAX_WIDTH * 8, MAX_EXPERTS = 1 << 16, MAX_VOCAB = 1 << 24,
                  MAX_HEADS_WIDTH = 1 << 24;

}  // namespace

float* Workspace::overflow() {
    bug("[workspace] an architecture asked for more scratch than scratch_floats says");
}

DeltaRecord DeltaShape::record_at(float* base, int rows) const {
    DeltaRecord record;
    record.u = base;
    record.k = record.u + int64_t{rows} * channels();
    record.v = record.k + int64_t{rows} * n_k_heads * k_dim;
    record.decay = record.v + int64_t{rows} * n_v_heads * v_dim;
    record.beta = record.decay + int64_t{rows} * n_v_heads;
    return record;
}

std::vector<std::string> Architecture::known() {
    std::vector<std::string> names;
    for (const Known& known : KNOWN) names.push_back(known.name);
    return names;
}

std::unique_ptr<Architecture> Architecture::load(ModelFiles files) {
    const GgufFile& file = *files.model;
    const std::string name(file.text("general.architecture"));
    for (const Known& known : KNOWN)
        if (name == known.name) {
            if (files.draft) require_draft_of(file, *files.draft);
            file.require_memory_for_copies();
            return known.load(std::move(files));
        }
    std::string names;
    for (const Known& known : KNOWN) names += (names.empty() ? "" : ", ") + std::string(known.name);
    const char* why =
        name == "qwen4exp" ? " (hyper-connections, sparse attention, n-gram tables) is not supported" : "";
    throw Error("[model] " + shown(file.name()) + ": architecture " + shown(name) + why +
                ", expected one of " + names);
}

Architecture::Architecture(ModelFiles files)
    : file_(std::move(files.model)),
      draft_file_(std::move(files.draft)),
      name_(file_->text("general.architecture")) {
    read_sizes();
    read_heads();
    read_experts();
    rope_ = read_rope(*file_, name_, dims_.n_rot);
    read_tensors();
}

void Architecture::read_sizes() {
    const GgufFile& file = *file_;
    dims_.context = static_cast<int>(file.integer(key("context_length"), 1, MAX_CONTEXT));
    dims_.n_embd = static_cast<int>(file.integer(key("embedding_length"), 1, MAX_WIDTH));
    const int64_t n_blocks = file.integer(key("block_count"), 1, MAX_LAYERS);
    dims_.n_layers =
        static_cast<int>(n_blocks - file.integer_or(key("nextn_predict_layers"), 0, 0, n_blocks - 1));
    dims_.norm_eps = static_cast<float>(file.number_or(key("attention.layer_norm_rms_epsilon"), -1));
    if (!(dims_.norm_eps >= 0 && dims_.norm_eps < 1))
        file.fail("key " + key("attention.layer_norm_rms_epsilon") + " should be given, from 0 to below 1");
}

void Architecture::read_heads() {
    const GgufFile& file = *file_;
    dims_.n_heads = static_cast<int>(file.integer(key("attention.head_count"), 1, MAX_HEADS));
    dims_.n_kv_heads = dims_.n_heads;
    // One number, or one a layer (0 in layers without attention; the others equal).
    bool seen = false;
    for (int64_t count : file.integers(key("attention.head_count_kv"), MAX_LAYERS)) {
        if (count == 0) continue;
        if (count < 0 || count > dims_.n_heads || dims_.n_heads % count != 0)
            file.fail("key " + key("attention.head_count_kv") + " is " + std::to_string(count) +
                      ", expected a divisor of the " + std::to_string(dims_.n_heads) + " heads");
        if (seen && dims_.n_kv_heads != count)
            file.fail("key " + key("attention.head_count_kv") + " holds " + std::to_string(dims_.n_kv_heads) +
                      " and " + std::to_string(count) + ", expected the same in every layer");
        dims_.n_kv_heads = static_cast<int>(count);
        seen = true;
    }

    if (!file.find(key("attention.key_length")) && dims_.n_embd % dims_.n_heads)
        file.fail("key " + key("attention.head_count") + " is " + std::to_string(dims_.n_heads) +
                  ", expected a divisor of the width " + std::to_string(dims_.n_embd) +
                  " or a key attention.key_length");
    const int per_head = std::max(1, dims_.n_embd / dims_.n_heads);
    const auto size = [&](const char* name, int fallback, int64_t low, int64_t high) {
        return static_cast<int>(file.integer_or(key(name), fallback, low, high));
    };
    dims_.head_dim = size("attention.key_length", per_head, 1, MAX_HEADS_WIDTH / dims_.n_heads);
    if (const int v_dim = size("attention.value_length", per_head, 1, MAX_WIDTH); v_dim != dims_.head_dim)
        file.fail("key " + key("attention.value_length") + " is " + std::to_string(v_dim) +
                  ", expected the key_length " + std::to_string(dims_.head_dim));
    dims_.n_rot = size("rope.dimension_count", dims_.head_dim, 0, dims_.head_dim);
    if (dims_.n_rot % 2)
        file.fail("key " + key("rope.dimension_count") + " is " + std::to_string(dims_.n_rot) +
                  ", expected an even number");
}

void Architecture::read_experts() {
    const GgufFile& file = *file_;
    ExpertShape& e = dims_.experts;
    const auto size = [&](const char* name, int64_t fallback, int64_t low, int64_t high) {
        return static_cast<int>(file.integer_or(key(name), fallback, low, high));
    };
    e.n = size("expert_count", 0, 0, MAX_EXPERTS);
    if (e.n == 0) {
        dims_.n_ff = static_cast<int>(file.integer(key("feed_forward_length"), 1, MAX_FF));
        return;
    }
    dims_.n_ff = size("feed_forward_length", 0, 0, MAX_FF);
    e.n_used = static_cast<int>(file.integer(key("expert_used_count"), 1, e.n));
    e.n_ff = size("expert_feed_forward_length", dims_.n_ff, 1, MAX_FF);
    e.n_ff_shared = size("expert_shared_feed_forward_length", 0, 0, MAX_FF);
    if (const int64_t gating = file.integer_or(key("expert_gating_func"), 1, 0, 3); gating > 0)
        e.gating = static_cast<Gating>(gating);
    e.scale = static_cast<float>(file.number_or(key("expert_weights_scale"), 1));
    if (e.scale == 0) e.scale = 1;  // as files write it that have none
}

void Architecture::read_tensors() {
    const GgufFile& file = *file_;
    const Tensor* table = file.tensor("token_embd.weight");
    if (!table) file.fail("tensor token_embd.weight is missing");
    if (table->shape.size() != 2 || table->shape[1] < 1 || table->shape[1] > MAX_VOCAB)
        file.fail("tensor token_embd.weight should have the shape [" + std::to_string(dims_.n_embd) +
                  ", tokens], 1 to " + std::to_string(MAX_VOCAB) + " tokens");
    dims_.n_vocab = static_cast<int>(table->shape[1]);
    embedding_ = file.weight("token_embd.weight", dims_.n_embd, dims_.n_vocab);
    head_ = file.weight("output.weight", dims_.n_embd, dims_.n_vocab, true);
    if (!head_) head_ = embedding_;
    output_norm_ = file.vector("output_norm.weight", dims_.n_embd);
}

}  // namespace strata
