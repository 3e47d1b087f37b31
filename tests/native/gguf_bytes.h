#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "model/gguf.h"

namespace strata::test {

/// A GGUF file put together by hand, so that anything in it can be wrong.
struct Bytes {
    std::vector<uint8_t> bytes;

    template <typename T>
    Bytes& put(T value) {
        bytes.resize(bytes.size() + sizeof(T));
        std::memcpy(bytes.data() + bytes.size() - sizeof(T), &value, sizeof(T));
        return *this;
    }
    Bytes& u32(uint32_t value) { return put(value); }
    Bytes& u64(uint64_t value) { return put(value); }
    Bytes& raw(std::string_view text) {
        bytes.insert(bytes.end(), text.begin(), text.end());
        return *this;
    }
    Bytes& text(std::string_view text) { return u64(text.size()).raw(text); }
    Bytes& key(std::string_view name, GgufType type) { return text(name).u32(static_cast<uint32_t>(type)); }
    Bytes& array(GgufType element, uint64_t count) { return u32(static_cast<uint32_t>(element)).u64(count); }
    Bytes& tensor(std::string_view name, std::vector<uint64_t> shape, uint32_t type, uint64_t offset) {
        text(name).u32(static_cast<uint32_t>(shape.size()));
        for (const uint64_t n : shape) u64(n);
        return u32(type).u64(offset);
    }
    Bytes& data(size_t size, size_t alignment = 32) {
        while (bytes.size() % alignment) bytes.push_back(0);
        for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(i));
        return *this;
    }
};

inline Bytes header(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    return Bytes().raw("GGUF").u32(version).u64(n_tensors).u64(n_keys);
}

/// Two keys, an array of each kind, two tensors.
inline Bytes whole() {
    return header(2, 5)
        .key("general.architecture", GgufType::STRING)
        .text("llama")
        .key("llama.block_count", GgufType::U32)
        .u32(7)
        .key("tokens", GgufType::ARRAY)
        .array(GgufType::STRING, 3)
        .text("a")
        .text("")
        .text("\xff\xfe")
        .key("flags", GgufType::ARRAY)
        .array(GgufType::BOOL, 2)
        .put<uint8_t>(1)
        .put<uint8_t>(0)
        .key("eps", GgufType::F32)
        .put(0.5f)
        .tensor("w", {4, 3}, 0, 0)
        .tensor("q", {32}, 8, 64)
        .data(64 + 34);
}

/// The same model as a set of two: the keys and "w" in the first, "q" in the second.
inline std::vector<Bytes> halves(uint16_t count = 2, uint16_t second = 1, uint32_t n_tensors = 2) {
    const auto split = [&](Bytes bytes, uint16_t no) {
        return bytes.key("split.count", GgufType::U16)
            .put(count)
            .key("split.no", GgufType::U16)
            .put(no)
            .key("split.tensors.count", GgufType::I32)
            .u32(n_tensors);
    };
    return {split(header(1, 4).key("general.architecture", GgufType::STRING).text("llama"), 0)
                .tensor("w", {4, 3}, 0, 0)
                .data(48),
            split(header(1, 3), second).tensor("q", {32}, 8, 0).data(34)};
}

}  // namespace strata::test
