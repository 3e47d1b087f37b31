#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "model/gguf.h"

namespace strata {

/// Reads a GGUF header from front to back; every read is checked against the bytes left. Layout (all
/// little-endian):
///   "GGUF", version u32, tensor count u64, key count u64
///   each key:     name, value type u32, value
///   each tensor:  name, n_dims u32, dims u64 x n_dims, type u32, offset u64 (from the start of the data)
///   padding to the alignment, data
/// A name is a string. A string: length u64, bytes. An array: element type u32, count u64, elements.
/// Source: the GGUF specification in ggml's docs.
class GgufReader {
  public:
    GgufReader(const GgufFile& file, std::span<const uint8_t> bytes) : file_(file), bytes_(bytes) {}

    /// What is being read, for messages: "key 3", "tensor blk.0.attn_q.weight".
    void enter(std::string place) { place_ = std::move(place); }
    [[noreturn]] void fail(const std::string& what) const { file_.fail(place_ + " " + what); }

    uint64_t position() const { return position_; }
    uint64_t left() const { return bytes_.size() - position_; }

    const uint8_t* take(uint64_t size) {
        if (size > left())
            fail("at offset " + std::to_string(position_) + " needs " + std::to_string(size) +
                 " bytes, file has " + std::to_string(left()) + " left");
        const uint8_t* at = bytes_.data() + position_;
        position_ += size;
        return at;
    }

    template <typename T>
    T number() {
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }

    std::string_view string() {
        const uint64_t size = number<uint64_t>();
        return {reinterpret_cast<const char*>(take(size)), size};
    }

    /// The name of a key or tensor: UTF-8, 1 to 65535 bytes.
    std::string_view identifier();
    GgufValue value(uint32_t type);
    GgufArray array(int depth = 0);

    /// `count` things of at least `least` bytes each, checked against the bytes left (and `most`) before
    /// anything is done `count` times.
    void expect(uint64_t count, uint64_t least, const char* what, uint64_t most = UINT64_MAX) const;

  private:
    bool boolean();

    const GgufFile& file_;
    std::span<const uint8_t> bytes_;
    uint64_t position_ = 0;
    std::string place_ = "header";
};

}  // namespace strata
