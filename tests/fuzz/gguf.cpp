// Fuzzes the reader of model files: strata_fuzz TARGET RUNS [SEED]
//   reader   one file: keys, arrays, tensors, and every typed read of them
//   set      two shards
//   model    what an architecture reads of a file

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../native/gguf_bytes.h"
#include "base/error.h"
#include "driver.h"
#include "model/architecture.h"
#include "model/draft_file.h"

using namespace strata;
using namespace strata::test;
using strata::fuzz::Input;

namespace {

volatile uint64_t sink;  // what was read is used

void refusable(const auto& read) {
    try {
        read();
    } catch (const Error&) {
    }
}

/// One key by every way to read one; most of them refuse it.
uint64_t read_every_way(const GgufFile& file, std::string_view key) {
    uint64_t sum = 0;
    refusable([&] { sum += file.text(key).size(); });
    refusable([&] { sum += static_cast<uint64_t>(file.integer(key, INT64_MIN, INT64_MAX)); });
    refusable([&] { sum += file.number_or(key, 0) > 0; });
    refusable([&] { sum += file.texts(key).size(); });
    refusable([&] { sum += file.integers(key, 1 << 16).size(); });
    return sum;
}

/// Everything that can be asked of a file that opened: each key as what it is, one of them in every way (a
/// refusal costs more than all the rest).
void read_all(const GgufFile& file) {
    uint64_t sum = file.size_bytes();
    for (const std::string_view key : file.keys()) {
        const auto* array = std::get_if<GgufArray>(file.find(key));
        if (array && array->element_type == static_cast<uint32_t>(GgufType::STRING)) {
            for (const std::string_view text : file.texts(key))
                for (const char c : text) sum += static_cast<uint8_t>(c);
        } else if (array) {
            refusable([&] { sum += file.integers(key, 1 << 16).size(); });
        }
    }
    if (!file.keys().empty())
        sum += read_every_way(file, file.keys()[file.size_bytes() % file.keys().size()]);
    for (const Tensor& tensor : file.tensors()) {
        for (uint64_t i = 0; i < tensor.size_bytes; ++i) sum += tensor.data[i];
        const int64_t n_in = tensor.shape[0], n_out = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
        refusable([&] { sum += file.weight(tensor.name, n_in, n_out).row_bytes; });
        if (tensor.size_bytes) refusable([&] { sum += file.matrix(tensor.name, n_in, n_out).size(); });
    }
    sink = sink + sum;
}

void read_file(std::span<const uint8_t> bytes) { read_all(*GgufFile::parse(bytes, "fuzz.gguf")); }

/// The last two bytes say where the first shard ends.
void read_set(std::span<const uint8_t> bytes) {
    if (bytes.size() < 2) return;
    const auto both = bytes.first(bytes.size() - 2);
    uint16_t cut;
    std::memcpy(&cut, bytes.data() + both.size(), sizeof cut);
    const size_t at = std::min<size_t>(cut, both.size());
    read_all(*GgufFile::parse_set({both.first(at), both.subspan(at)}));
}

void read_model(std::span<const uint8_t> bytes) {
    const auto file = GgufFile::parse(bytes, "fuzz.gguf");
    refusable([&] { require_draft_of(*file, *file); });
    const auto model = Architecture::load({file, nullptr});
    uint64_t sum = model->draft_bytes();
    for (int layer = 0; layer < model->dims().n_layers; ++layer) sum += model->layer_bytes(layer);
    sink = sink + sum;
}

/// A whole llama of one layer, two wide.
Bytes tiny_llama() {
    Bytes bytes = header(12, 9);
    bytes.key("general.architecture", GgufType::STRING).text("llama");
    const auto count = [&](const char* name, uint32_t n) { bytes.key(name, GgufType::U32).u32(n); };
    count("llama.context_length", 8);
    count("llama.embedding_length", 2);
    count("llama.block_count", 1);
    count("llama.attention.head_count", 1);
    count("llama.attention.head_count_kv", 1);
    count("llama.feed_forward_length", 2);
    count("llama.rope.dimension_count", 2);
    bytes.key("llama.attention.layer_norm_rms_epsilon", GgufType::F32).put(1e-5f);
    uint64_t offset = 0;
    const auto tensor = [&](const char* name, std::vector<uint64_t> shape) {
        bytes.tensor(name, std::move(shape), 0, offset);
        offset += 32;
    };
    tensor("token_embd.weight", {2, 3});
    tensor("output_norm.weight", {2});
    tensor("output.weight", {2, 3});
    tensor("blk.0.attn_norm.weight", {2});
    tensor("blk.0.ffn_norm.weight", {2});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
        tensor(("blk.0." + std::string(name) + ".weight").c_str(), {2, 2});
    return bytes.data(offset);
}

Bytes joined() {
    const auto shards = halves();
    Bytes bytes = shards[0];
    const auto cut = static_cast<uint16_t>(bytes.bytes.size());
    bytes.bytes.insert(bytes.bytes.end(), shards[1].bytes.begin(), shards[1].bytes.end());
    return bytes.put(cut);
}

Bytes types_and_sizes() {
    Bytes bytes = header(5, 2)
                      .key("general.alignment", GgufType::U32)
                      .u32(8)
                      .key("nested", GgufType::ARRAY)
                      .array(GgufType::ARRAY, 1)
                      .array(GgufType::I16, 2)
                      .put<int16_t>(-1)
                      .put<int16_t>(1);
    return bytes.tensor("none", {0, 5}, 12, 0)
        .tensor("scalar", {}, 0, 0)
        .tensor("half", {2, 2, 1}, 1, 8)
        .tensor("k", {256}, 12, 16)
        .tensor("iq", {256}, 21, 160)
        .data(160 + 110, 8);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<fuzz::Target> targets = {
        {"reader",
         read_file,
         {whole().bytes, types_and_sizes().bytes, tiny_llama().bytes, header(0, 0).bytes}},
        {"set", read_set, {joined().bytes}},
        {"model", read_model, {tiny_llama().bytes, whole().bytes}},
    };
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was reached is told also where time runs out
    for (const auto& target : targets)
        if (argc >= 3 && target.name == argv[1]) {
            fuzz::run(target, std::strtoull(argv[2], nullptr, 10),
                      argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
            return 0;
        }
    std::fprintf(stderr, "expected one of reader, set, model and a number of executions\n");
    return 2;
}
