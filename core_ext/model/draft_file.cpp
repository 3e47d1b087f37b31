#include "model/draft_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "model/dims.h"
#include "model/rope.h"

namespace strata {

namespace {

/// Keys of the architecture in which the two files may differ: what a file without the trunk says of its
/// length.
constexpr std::string_view MAY_DIFFER[] = {"block_count", "nextn_predict_layers", "context_length",
                                           "attention.recurrent_layers"};

std::string value_text(const GgufValue& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) return "\"" + shown(*text) + "\"";
    if (const auto* array = std::get_if<GgufArray>(&value))
        return "an array of " + std::to_string(array->count) + " x " + gguf_type_name(array->element_type);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* n = std::get_if<uint64_t>(&value)) return std::to_string(*n);
    if (const auto* n = std::get_if<int64_t>(&value)) return std::to_string(*n);
    return number_text(std::get<double>(value));
}

bool same_bytes(const GgufArray& a, const GgufArray& b) {
    return a.element_type == b.element_type && a.count == b.count && a.size_bytes == b.size_bytes &&
           std::memcmp(a.data, b.data, a.size_bytes) == 0;
}

/// Equal whatever the width of the number that a file wrote.
bool same_value(const GgufValue& a, const GgufValue& b) {
    const auto *array_a = std::get_if<GgufArray>(&a), *array_b = std::get_if<GgufArray>(&b);
    if (array_a && array_b) return same_bytes(*array_a, *array_b);
    if (array_a || array_b) return false;
    if (const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b); x && y) return *x == *y;
    return value_text(a) == value_text(b);
}

void require_same_keys(const std::string& architecture, const GgufFile& model, const GgufFile& draft) {
    const std::string prefix = architecture + ".";
    for (const std::string_view key : draft.keys()) {
        const GgufValue* expected = key.starts_with(prefix) ? model.find(key) : nullptr;
        if (!expected || std::ranges::count(MAY_DIFFER, key.substr(prefix.size())) > 0) continue;
        const GgufValue* value = draft.find(key);
        if (value && !same_value(*value, *expected))
            draft.fail("key " + shown(key) + " is " + value_text(*value) + ", expected " +
                       value_text(*expected) + " as in " + shown(model.name()));
    }
}

/// A size or another number that the draft layer is computed with, whether its key says it or a default.
struct Resolved {
    const char* key;
    double value;
};

std::vector<Resolved> resolved(const Dims& d) {
    const ExpertShape& e = d.experts;
    return {{"embedding_length", double(d.n_embd)},
            {"attention.layer_norm_rms_epsilon", d.norm_eps},
            {"attention.head_count", double(d.n_heads)},
            {"attention.head_count_kv", double(d.n_kv_heads)},
            {"attention.key_length", double(d.head_dim)},
            {"rope.dimension_count", double(d.n_rot)},
            {"feed_forward_length", double(d.n_ff)},
            {"expert_count", double(e.n)},
            {"expert_used_count", double(e.n_used)},
            {"expert_feed_forward_length", double(e.n_ff)},
            {"expert_shared_feed_forward_length", double(e.n_ff_shared)},
            {"expert_gating_func", double(e.gating)},
            {"expert_weights_scale", e.scale}};
}

/// What a key that only one of the files has says, against what its absence stands for in the other.
void require_same_sizes(const std::string& architecture, const GgufFile& model, const GgufFile& draft) {
    Dims of_model, of_draft;
    read_widths(model, architecture, of_model);
    read_widths(draft, architecture, of_draft);
    const auto expected = resolved(of_model), has = resolved(of_draft);
    for (size_t i = 0; i < has.size(); ++i) {
        if (has[i].value == expected[i].value) continue;
        const std::string key = architecture + "." + has[i].key;
        draft.fail("key " + key + (draft.find(key) ? " is " : " is missing and stands for ") +
                   number_text(has[i].value) + ", expected " + number_text(expected[i].value) + " as in " +
                   shown(model.name()));
    }
    const Rope turns = read_rope_keys(draft, architecture, of_draft.n_rot),
               others = read_rope_keys(model, architecture, of_model.n_rot);
    if (turns.inv_freq != others.inv_freq || turns.magnitude != others.magnitude)
        draft.fail("turns with " + rope_text(draft, architecture) + ", expected " +
                   rope_text(model, architecture) + " as in " + shown(model.name()));
}

/// The block that holds a draft layer, or -1.
int64_t draft_block(const GgufFile& file) {
    constexpr std::string_view BEGINS = "blk.", ENDS = ".nextn.eh_proj.weight";
    for (const Tensor& tensor : file.tensors()) {
        const std::string_view name = tensor.name;
        if (!name.starts_with(BEGINS) || !name.ends_with(ENDS)) continue;
        const std::string_view digits = name.substr(BEGINS.size(), name.size() - BEGINS.size() - ENDS.size());
        const bool numbered = !digits.empty() && digits.size() < 10 &&
                              std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
        if (numbered) return std::stoll(std::string(digits));
    }
    return -1;
}

void require_draft_block(int64_t n_layers, const GgufFile& model, const GgufFile& draft) {
    const std::string expected = "blk." + std::to_string(n_layers) + ".nextn.eh_proj.weight, behind the " +
                                 std::to_string(n_layers) + " layers of " + shown(model.name());
    if (draft.tensor("blk." + std::to_string(n_layers) + ".nextn.eh_proj.weight")) return;
    const int64_t block = draft_block(draft);
    draft.fail(block < 0
                   ? "holds no draft layer, expected " + expected
                   : "has its draft layer in block " + std::to_string(block) + ", expected " + expected);
}

void require_same_tokens(const GgufFile& model, const GgufFile& draft) {
    constexpr const char* KEY = "tokenizer.ggml.tokens";
    const GgufValue *own = draft.find(KEY), *models = model.find(KEY);
    if (own && models && !same_value(*own, *models)) {
        const auto has = draft.texts(KEY), expected = model.texts(KEY);
        if (has.size() != expected.size())
            draft.fail("has " + std::to_string(has.size()) + " tokens, expected " +
                       std::to_string(expected.size()) + " as in " + shown(model.name()));
        const auto at = std::ranges::mismatch(has, expected).in1 - has.begin();
        if (at == std::ssize(has)) draft.fail("has tokens that changed while they were compared");
        draft.fail("has the token " + std::to_string(at) + " \"" + shown(has[at]) + "\", expected \"" +
                   shown(expected[at]) + "\" as in " + shown(model.name()));
    }
    const Tensor *table = draft.tensor("token_embd.weight"),
                 *models_table = model.tensor("token_embd.weight");
    if (table && models_table && table->shape != models_table->shape)
        draft.fail("tensor token_embd.weight has " + std::to_string(table->shape.back()) + " rows of " +
                   std::to_string(table->shape[0]) + ", expected " +
                   std::to_string(models_table->shape.back()) + " of " +
                   std::to_string(models_table->shape[0]) + " as in " + shown(model.name()));
}

void require_same_model(const GgufFile& model, const GgufFile& draft) {
    const std::string architecture(model.text("general.architecture"));
    if (const std::string_view own = draft.text("general.architecture"); own != architecture)
        draft.fail("has the architecture " + shown(own) + ", expected " + shown(architecture) + " as in " +
                   shown(model.name()));
    require_same_keys(architecture, model, draft);
    require_same_sizes(architecture, model, draft);
    const int64_t n_blocks = model.integer(architecture + ".block_count", 1, INT32_MAX);
    require_draft_block(
        n_blocks - model.integer_or(architecture + ".nextn_predict_layers", 0, 0, n_blocks - 1), model,
        draft);
    require_same_tokens(model, draft);
}

}  // namespace

void require_draft_of(const GgufFile& model, const GgufFile& draft) {
    const auto require_unchanged = [&] {
        model.require_unchanged();
        draft.require_unchanged();
    };
    require_unchanged();
    try {
        require_same_model(model, draft);
    } catch (const Error&) {
        require_unchanged();  // the better reason
        throw;
    }
    require_unchanged();
}

}  // namespace strata
