#include "kernels/cpu/dequantize.h"

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/dequantize_blocks.h"

namespace strata::cpu {

namespace {

using blocks::read;
using blocks::read_f16;

/// q(i) of blocks of 32 with nibbles at qs and, where qh is given, a fifth bit.
inline int nibble(const uint8_t* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }
inline int fifth_bit(const uint8_t* qh, int i) { return static_cast<int>(read<uint32_t>(qh) >> i & 1) << 4; }

void q4_0(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(p + 2, i) - 8);
}

void q4_1(const uint8_t* p, float* out) {
    const float d = read_f16(p), m = read_f16(p + 2);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(p + 4, i)) + m;
}

void q5_0(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int i = 0; i < 32; ++i)
        out[i] = d * static_cast<float>((nibble(p + 6, i) | fifth_bit(p + 2, i)) - 16);
}

void q5_1(const uint8_t* p, float* out) {
    const float d = read_f16(p), m = read_f16(p + 2);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(p + 8, i) | fifth_bit(p + 4, i)) + m;
}

void q8_0(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(p[2 + i]));
}

/// Q4_K (qh null) and Q5_K.
void q45_k(const uint8_t* p, const uint8_t* qh, const uint8_t* qs, float* out) {
    const float d = read_f16(p), dmin = read_f16(p + 2);
    uint32_t scales[2], mins[2];
    blocks::unpack_scales(p + 4, scales, mins);
    for (int j = 0; j < 8; ++j) {
        const float scale = d * static_cast<float>(scales[j / 4] >> j % 4 * 8 & 63);
        const float min = dmin * static_cast<float>(mins[j / 4] >> j % 4 * 8 & 63);
        for (int i = 0; i < 32; ++i) {
            int q = qs[j / 2 * 32 + i] >> j % 2 * 4 & 15;
            if (qh) q |= (qh[i] >> j & 1) << 4;
            out[32 * j + i] = scale * static_cast<float>(q) - min;
        }
    }
}

void q4_k(const uint8_t* p, float* out) { q45_k(p, nullptr, p + 16, out); }
void q5_k(const uint8_t* p, float* out) { q45_k(p, p + 16, p + 48, out); }

void q6_k(const uint8_t* p, float* out) {
    const float d = read_f16(p + 208);
    for (int i = 0; i < 256; ++i) {
        const int half = i / 128, j = i / 32 % 4;
        const int low = p[64 * half + j % 2 * 32 + i % 32] >> j / 2 * 4 & 15;
        const int high = p[128 + 32 * half + i % 32] >> 2 * j & 3;
        const float scale = d * static_cast<float>(static_cast<int8_t>(p[192 + i / 16]));
        out[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
}

void q2_k(const uint8_t* p, float* out) {
    const float d = read_f16(p + 80), dmin = read_f16(p + 82);
    for (int i = 0; i < 256; ++i) {
        const int q = p[16 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3, scale = p[i / 16];
        const float min = dmin * static_cast<float>(scale >> 4);
        out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) - min;
    }
}

void q3_k(const uint8_t* p, float* out) {
    const float d = read_f16(p + 108);
    uint64_t scales[2];
    blocks::unpack_six_bit_scales(p + 96, scales);
    for (int i = 0; i < 256; ++i) {
        const int low = p[32 + i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3, high = p[i % 32] >> i / 32 & 1;
        const auto scale = static_cast<int8_t>(scales[i / 128] >> i / 16 % 8 * 8);
        out[i] = d * static_cast<float>(scale) * static_cast<float>((low | high << 2) - 4);
    }
}

using BlockValues = void (*)(const uint8_t* block, float* out);

/// Of a quantised type.
BlockValues values_of(Type type) {
    switch (type) {
        case Type::F32:
        case Type::F16:
        case Type::BF16:
            break;
        case Type::Q4_0:
            return q4_0;
        case Type::Q4_1:
            return q4_1;
        case Type::Q5_0:
            return q5_0;
        case Type::Q5_1:
            return q5_1;
        case Type::Q8_0:
            return q8_0;
        case Type::Q2_K:
            return q2_k;
        case Type::Q3_K:
            return q3_k;
        case Type::Q4_K:
            return q4_k;
        case Type::Q5_K:
            return q5_k;
        case Type::Q6_K:
            return q6_k;
        case Type::IQ4_NL:
            return iq4_nl;
        case Type::IQ4_XS:
            return iq4_xs;
        case Type::IQ3_S:
            return iq3_s;
        case Type::IQ3_XXS:
            return iq3_xxs;
        case Type::IQ2_XXS:
            return iq2_xxs;
        case Type::IQ2_XS:
            return iq2_xs;
        case Type::IQ2_S:
            return iq2_s;
        case Type::IQ1_S:
            return iq1_s;
        case Type::IQ1_M:
            return iq1_m;
        case Type::TQ1_0:
            return tq1_0;
        case Type::TQ2_0:
            return tq2_0;
        case Type::MXFP4:
            return mxfp4;
        case Type::NVFP4:
            return nvfp4;
    }
    return nullptr;
}

}  // namespace

void dequantize(Type type, const void* data, int64_t n, float* out) {
    const auto* p = static_cast<const uint8_t*>(data);
    switch (type) {
        case Type::F32:
            std::memcpy(out, data, static_cast<size_t>(n) * sizeof(float));
            break;
        case Type::F16:
            for (int64_t i = 0; i < n; ++i) out[i] = read_f16(p + 2 * i);
            break;
        case Type::BF16:
            for (int64_t i = 0; i < n; ++i) out[i] = blocks::from_bf16(read<uint16_t>(p + 2 * i));
            break;
        default: {
            const TypeInfo& info = *storage_info(static_cast<uint32_t>(type));
            const BlockValues values = values_of(type);
            for (int64_t i = 0; i < n; i += info.block_size, p += info.block_bytes) values(p, out + i);
        }
    }
}

}  // namespace strata::cpu
