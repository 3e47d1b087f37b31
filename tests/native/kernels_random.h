#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernels.h"

/// Random inputs for the kernels' tests.
namespace strata::test {

constexpr Type ALL_TYPES[] = {Type::F32,  Type::F16,    Type::BF16,   Type::Q4_0,  Type::Q4_1,   Type::Q5_0,
                              Type::Q5_1, Type::Q8_0,   Type::Q2_K,   Type::Q3_K,  Type::Q4_K,   Type::Q5_K,
                              Type::Q6_K, Type::IQ4_NL, Type::IQ4_XS, Type::IQ3_S, Type::IQ3_XXS};

inline std::vector<float> random_floats(size_t n, uint32_t seed, float scale = 1) {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> out(n);
    for (float& x : out) x = normal(bits);
    return out;
}

/// Where a block's float16 scales stand.
inline std::vector<int> scale_offsets(Type type) {
    switch (type) {
        case Type::Q4_0:
        case Type::Q5_0:
        case Type::Q8_0:
        case Type::IQ4_NL:
        case Type::IQ4_XS:
        case Type::IQ3_S:
        case Type::IQ3_XXS:
            return {0};
        case Type::Q4_1:
        case Type::Q5_1:
        case Type::Q4_K:
        case Type::Q5_K:
            return {0, 2};
        case Type::Q6_K:
            return {208};
        case Type::Q2_K:
            return {80, 82};
        case Type::Q3_K:
            return {108};
        default:
            return {};
    }
}

/// Rows of random weights, `shift` bytes past an aligned address. Quantised: any bytes, scales of sane size.
struct RandomWeights {
    std::vector<uint8_t> bytes;
    cpu::Weight weight;
    RandomWeights(Type type, int n_in, int n_out, uint32_t seed, size_t shift = 0) {
        const TypeInfo& info = type_info(type);
        const size_t row_bytes = static_cast<size_t>(n_in / info.block_size) * info.block_bytes;
        bytes.resize(shift + row_bytes * n_out);
        uint8_t* data = bytes.data() + shift;
        std::mt19937 bits(seed);
        const auto floats = random_floats(static_cast<size_t>(n_in) * n_out, seed, 0.05f);
        for (size_t i = 0; i < row_bytes * n_out; ++i) data[i] = static_cast<uint8_t>(bits());
        for (size_t i = 0; info.block_size == 1 && i < floats.size(); ++i) {
            uint32_t word;
            std::memcpy(&word, &floats[i], 4);
            const uint16_t half =
                type == Type::F16 ? cpu::blocks::to_f16(floats[i]) : static_cast<uint16_t>(word >> 16);
            if (type == Type::F32)
                std::memcpy(data + 4 * i, &word, 4);
            else
                std::memcpy(data + 2 * i, &half, 2);
        }
        std::uniform_real_distribution<float> size(0.25f, 1.0f);
        for (int at : scale_offsets(type))
            for (size_t block = 0; block < bytes.size() - shift; block += info.block_bytes) {
                const uint16_t half = cpu::blocks::to_f16((bits() & 1 ? 1 : -1) * size(bits) / 512);
                std::memcpy(data + block + at, &half, 2);
            }
        weight = {type, data, n_in, n_out, row_bytes};
    }
};

/// Rows of activations in the format that the weights want.
struct RandomRows {
    size_t stride;
    std::vector<float> floats;  // [rows, n_in]
    std::vector<uint8_t> data;
    RandomRows(const cpu::Kernels& k, Type weights, int n_in, int rows, uint32_t seed)
        : stride(cpu::act_row_bytes(cpu::act_format(weights), n_in)),
          floats(random_floats(static_cast<size_t>(n_in) * rows, seed)),
          data(stride * rows) {
        for (int r = 0; r < rows; ++r)
            k.quantize(cpu::act_format(weights), floats.data() + static_cast<size_t>(r) * n_in, n_in,
                       data.data() + r * stride);
    }
    const uint8_t* row(int r) const { return data.data() + r * stride; }
};

}  // namespace strata::test
