#include "kernels/cpu/dequantize.h"

#include "kernels/cpu/blocks.h"

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

void each_block(void (*block)(const uint8_t*, float*), int size, int bytes, const void* data, int64_t n,
                float* out) {
    const auto* p = static_cast<const uint8_t*>(data);
    for (int64_t i = 0; i < n; i += size, p += bytes) block(p, out + i);
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
        case Type::Q4_0:
            each_block(q4_0, 32, 18, p, n, out);
            break;
        case Type::Q4_1:
            each_block(q4_1, 32, 20, p, n, out);
            break;
        case Type::Q5_0:
            each_block(q5_0, 32, 22, p, n, out);
            break;
        case Type::Q5_1:
            each_block(q5_1, 32, 24, p, n, out);
            break;
        case Type::Q8_0:
            each_block(q8_0, 32, 34, p, n, out);
            break;
        case Type::Q4_K:
            each_block(q4_k, 256, 144, p, n, out);
            break;
        case Type::Q5_K:
            each_block(q5_k, 256, 176, p, n, out);
            break;
        case Type::Q6_K:
            each_block(q6_k, 256, 210, p, n, out);
            break;
    }
}

}  // namespace strata::cpu
