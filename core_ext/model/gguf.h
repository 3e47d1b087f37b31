#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "kernels/cpu/kernels.h"
#include "model/copies.h"
#include "model/tensor.h"

namespace strata {

/// A metadata array, left in the file: elements are decoded when asked for.
struct GgufArray {
    uint32_t element_type = 0;  // GGUF value type number
    uint64_t count = 0;
    const uint8_t* data = nullptr;
    uint64_t size_bytes = 0;
};

/// GGUF value type numbers.
enum class GgufType : uint32_t { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };
/// "uint32", "string" ..; "unknown" beyond the enumerators.
const char* gguf_type_name(uint32_t value_type);

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

/// A GGUF file (versions 2 and 3, little-endian), mapped read-only, or a set of them that holds one model
/// (NAME-00001-of-00003.gguf ..): each shard is mapped where it lies, the first one's keys and name are the
/// model's. Every count, offset, size, type and string is checked before use; what is wrong throws
/// Error("[gguf] NAME: ..."). The views live as long as the object.
class GgufFile {
  public:
    /// Any shard of a set opens the whole set.
    static std::shared_ptr<const GgufFile> open(const std::string& path);
    /// The same over bytes in memory (tests, fuzzing), which must outlive the object.
    static std::shared_ptr<const GgufFile> parse(std::span<const uint8_t> bytes, const std::string& name);
    static std::shared_ptr<const GgufFile> parse_set(
        const std::vector<std::span<const uint8_t>>& shards);  // named shard 1, shard 2 ..

    const std::string& name() const { return name_; }  // the file's name without its folder, for messages
    const std::string& path() const { return path_; }  // of the first shard
    uint32_t version() const { return version_; }
    uint64_t alignment() const { return alignment_; }
    uint64_t size_bytes() const;  // of all shards

    const std::vector<std::string_view>& keys() const { return keys_; }  // in the file's order
    const GgufValue* find(std::string_view key) const;                   // nullptr if absent

    /// Typed reads. A missing required key, a wrong type or a value out of [low, high] throws, naming key,
    /// expected and came.
    std::string_view text(std::string_view key) const;
    int64_t integer(std::string_view key, int64_t low, int64_t high) const;
    int64_t integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;
    double number_or(std::string_view key, double fallback) const;  // finite
    /// The strings of an array as views of the file; any bytes. Throws if the key is absent or holds
    /// something else.
    std::vector<std::string_view> texts(std::string_view key) const;
    /// Integers of an array, or a lone integer as an array of one; empty if absent. Throws beyond max_count.
    std::vector<int64_t> integers(std::string_view key, uint64_t max_count) const;

    const std::vector<Tensor>& tensors() const { return tensors_; }
    const Tensor* tensor(std::string_view name) const;  // nullptr if absent
    /// A weight [n_out, n_in] (a vector has n_out 1) whose shape and type have been checked; throws
    /// otherwise. For `optional`, an absent tensor gives an empty Weight. Where the type has no kernels, it
    /// is a dequantised copy, kept as long as this object; its values are there once copies() are made.
    cpu::Weight weight(std::string_view name, int64_t n_in, int64_t n_out, bool optional = false) const;
    /// The same with its rows in another order: row i is the tensor's rows[i]. Always a copy.
    cpu::Weight reordered(std::string_view name, int64_t n_in, std::vector<int> rows) const;
    /// The first of n weights [n_out, n_in] of one tensor [n_in, n_out, n]; each lies n_out * row_bytes
    /// behind the one before.
    cpu::Weight stack(std::string_view name, int64_t n_in, int64_t n_out, int64_t n,
                      bool optional = false) const;
    /// A vector of n values as float32, dequantised; empty if optional and absent.
    std::vector<float> vector(std::string_view name, int64_t n, bool optional = false) const;
    /// The same for a small matrix, as [n_rows, n_in] (shape [n_in, n_rows] in the file).
    std::vector<float> matrix(std::string_view name, int64_t n_in, int64_t n_rows,
                              bool optional = false) const;
    /// The type in which a tensor's values are multiplied, if that is not its own (copy_info).
    const TypeInfo* copy_of(const Tensor& tensor) const;
    /// What a tensor takes when it is run: its bytes in the file, or its copy's.
    uint64_t loaded_bytes(const Tensor& tensor) const;
    /// Those that weights asked for.
    TensorCopies& copies() const { return copies_; }
    /// "IQ2_XXS, IQ1_M: 12 tensors of 80 MiB dequantised ..": a line for each reason to copy, with what it
    /// costs.
    std::vector<std::string> copies_notices() const { return copies_.notices(name_); }
    /// Throws Error if the file has been shortened or written to since it was opened: what was read from it
    /// may be wrong then. Asked after a reading or a computation, before its result is used.
    void require_unchanged() const {
        if (mapping_.changed()) fail("was changed or shortened while it was open; open it again");
        for (const auto& shard : more_) shard->require_unchanged();
    }
    /// One line for an error: "[gguf] NAME: what".
    [[noreturn]] void fail(const std::string& what) const;

  private:
    GgufFile() = default;
    static std::shared_ptr<GgufFile> open_one(const std::string& path);
    static std::shared_ptr<GgufFile> parse_one(std::span<const uint8_t> bytes, const std::string& name);
    /// The first shard with the tensors of all; a file that is whole is a set of one.
    static std::shared_ptr<const GgufFile> join(std::vector<std::shared_ptr<GgufFile>> shards);
    int64_t n_shards() const;
    void read_all();
    void check_metadata();
    void read_tensor(class GgufReader& in);
    void place_tensors(uint64_t data_start);
    const Tensor* checked(std::string_view name, const std::vector<int64_t>& shape, bool optional) const;
    cpu::Weight rows_of(std::string_view name, int64_t n_in, int64_t n_out, int64_t n, bool optional,
                        std::vector<int> order) const;
    const Tensor* scale_of(const Tensor& tensor) const;
    std::vector<float> scales(const Tensor& tensor, int64_t n) const;

    std::string name_, path_;
    std::span<const uint8_t> bytes_;
    MappedFile mapping_;                           // none after parse()
    std::vector<std::shared_ptr<GgufFile>> more_;  // the shards after this one
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;
    std::vector<std::string_view> keys_;
    std::unordered_map<std::string_view, GgufValue> values_;
    std::vector<Tensor> tensors_;
    std::unordered_map<std::string_view, size_t> tensor_index_;
    mutable TensorCopies copies_;
};

}  // namespace strata
