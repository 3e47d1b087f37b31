#include "model/architecture.h"

#include <cmath>

#include "base/error.h"

namespace strata {

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

std::unique_ptr<Architecture> Architecture::load(std::shared_ptr<const GgufFile> file) {
    const std::string name(file->text("general.architecture"));
    if (name == "llama") return load_llama(std::move(file));
    if (name == "qwen35") return load_qwen35(std::move(file));
    if (name == "qwen4exp")
        throw Error("[model] " + file->name() +
                    ": architecture qwen4exp (hyper-connections, sparse attention, n-gram tables) "
                    "is not supported; llama and qwen35 are");
    throw Error("[model] " + file->name() + ": architecture " + name +
                " is not supported; llama and qwen35 are");
}

void Architecture::load_common(const std::string& prefix) {
    const GgufFile& file = *file_;
    constexpr int64_t MAX_LAYERS = 4096, MAX_WIDTH = 1 << 20, MAX_HEADS = 1 << 14, MAX_CONTEXT = 1 << 30;
    const auto key = [&](const char* name) { return prefix + "." + name; };
    const auto integer = [&](const char* name, int64_t high) {
        return static_cast<int>(file.integer(key(name), 1, high));
    };

    dims_.context = integer("context_length", MAX_CONTEXT);
    dims_.n_embd = integer("embedding_length", MAX_WIDTH);
    const int n_blocks = integer("block_count", MAX_LAYERS);
    const int n_draft = static_cast<int>(file.integer_or(key("nextn_predict_layers"), 0, 0, n_blocks - 1));
    dims_.n_layers = n_blocks - n_draft;
    dims_.n_heads = integer("attention.head_count", MAX_HEADS);
    // One number, or one a layer (equal in every attention layer of the architectures supported here).
    const auto kv_heads = file.integers(key("attention.head_count_kv"), MAX_LAYERS);
    dims_.n_kv_heads = dims_.n_heads;
    for (int64_t count : kv_heads)
        if (count != 0) {
            if (count < 0 || count > dims_.n_heads || dims_.n_heads % count != 0)
                throw Error("[model] " + file.name() + ": " + key("attention.head_count_kv") +
                            " should divide the " + std::to_string(dims_.n_heads) + " heads, got " +
                            std::to_string(count));
            if (dims_.n_kv_heads != dims_.n_heads && dims_.n_kv_heads != count)
                throw Error("[model] " + file.name() + ": " + key("attention.head_count_kv") +
                            " differs between layers, which is not supported");
            dims_.n_kv_heads = static_cast<int>(count);
        }
    const int default_head = dims_.n_embd / dims_.n_heads;
    dims_.head_dim =
        static_cast<int>(file.integer_or(key("attention.key_length"), default_head, 1, MAX_WIDTH));
    const int v_dim =
        static_cast<int>(file.integer_or(key("attention.value_length"), default_head, 1, MAX_WIDTH));
    if (v_dim != dims_.head_dim)
        throw Error("[model] " + file.name() + ": " + key("attention.value_length") +
                    " should equal key_length " + std::to_string(dims_.head_dim) + ", got " +
                    std::to_string(v_dim));
    dims_.n_rot =
        static_cast<int>(file.integer_or(key("rope.dimension_count"), dims_.head_dim, 0, dims_.head_dim));
    if (dims_.n_rot % 2)
        throw Error("[model] " + file.name() + ": " + key("rope.dimension_count") + " should be even, got " +
                    std::to_string(dims_.n_rot));
    dims_.n_ff = integer("feed_forward_length", MAX_WIDTH * 8);
    dims_.norm_eps = static_cast<float>(file.number_or(key("attention.layer_norm_rms_epsilon"), -1));
    if (!(dims_.norm_eps >= 0 && dims_.norm_eps < 1))
        throw Error("[model] " + file.name() + ": " + key("attention.layer_norm_rms_epsilon") +
                    " should be given, from 0 to below 1");
    const double base = file.number_or(key("rope.freq_base"), 10000);
    if (!(base > 0))
        throw Error("[model] " + file.name() + ": " + key("rope.freq_base") + " should be above 0");
    dims_.rope_base = static_cast<float>(base);
    if (const GgufValue* scaling = file.find(key("rope.scaling.type"))) {
        const auto* type = std::get_if<std::string_view>(scaling);
        if (!type || *type != "none")
            throw Error("[model] " + file.name() + ": rope scaling \"" + std::string(type ? *type : "?") +
                        "\" is not supported yet; only none is");
    }

    inv_freq_.resize(dims_.n_rot / 2);
    for (int i = 0; i < dims_.n_rot / 2; ++i) inv_freq_[i] = std::pow(base, -2.0 * i / dims_.n_rot);

    const Tensor* table = file.tensor("token_embd.weight");
    if (!table) throw Error("[model] " + file.name() + ": tensor token_embd.weight is missing");
    if (table->shape.size() != 2 || table->shape[1] < 1 || table->shape[1] > (1 << 24))
        throw Error("[model] " + file.name() +
                    ": token_embd.weight should have shape [n_embd, n_vocab], 1 to 2^24 tokens");
    dims_.n_vocab = static_cast<int>(table->shape[1]);
    embedding_ = file.weight("token_embd.weight", dims_.n_embd, dims_.n_vocab);
    head_ = file.weight("output.weight", dims_.n_embd, dims_.n_vocab, true);
    if (!head_) head_ = embedding_;
    output_norm_ = file.vector("output_norm.weight", dims_.n_embd);
}

}  // namespace strata
