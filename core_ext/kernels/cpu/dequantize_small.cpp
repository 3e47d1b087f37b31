#include "kernels/cpu/blocks.h"
#include "kernels/cpu/codebooks.h"
#include "kernels/cpu/dequantize_blocks.h"

/// Ternary types and four-bit floats.
///
/// type  values bytes  offset: field                       value i of the block
/// TQ1_0  256    54    0: qs[32], 32: qs[16], 48: qs[4],   d * (t_i - 1)
///                       52: d
/// TQ2_0  256    66    0: qs[64], 64: d                    d * (q_i - 1)
/// MXFP4   32    17    0: e, 1: qs[16]                     2^(e - 128) * FP4_DOUBLED[q_i]
/// NVFP4   64    36    0: d[4], 4: qs[32]                  d_j / 2 * FP4_DOUBLED[q_i]; j = i / 16
///
/// TQ1_0: a byte is a fraction of 256 whose first digits to base 3, five of them (of the last four bytes
/// four), are one value each; within the 32, 16 and 4 bytes the first digits come first. TQ2_0: two bits
/// each, by halves of 32 bytes as in Q2_K. MXFP4: nibbles as in blocks of 32. NVFP4: the same by groups of
/// 16; d_j is a float of 8 bits without a sign: 4 of exponent (bias 7), 3 of mantissa; 127 is no number and
/// stands for 0, as in ggml.
namespace strata::cpu {

namespace {

using blocks::read_f16;

/// 2^n for n in -149 .. 127.
inline float power_of_two(int n) {
    const uint32_t bits = n >= -126 ? static_cast<uint32_t>(n + 127) << 23 : uint32_t{1} << (n + 149);
    return blocks::read<float>(&bits);
}

inline float unsigned_e4m3(uint8_t x) {
    if (x == 0x7f) return 0;
    const int exponent = x >> 3 & 15, mantissa = x & 7;
    return exponent ? power_of_two(exponent - 10) * static_cast<float>(8 + mantissa)
                    : power_of_two(-9) * static_cast<float>(mantissa);
}

/// n bytes of `digits` ternary digits each.
inline float* ternary(float d, const uint8_t* qs, int n, int digits, float* out) {
    uint8_t power = 1;
    for (int digit = 0; digit < digits; ++digit, power = static_cast<uint8_t>(3 * power))
        for (int i = 0; i < n; ++i) {
            const auto rest =
                static_cast<uint8_t>(qs[i] * power);  // the digits before are whole numbers: gone
            *out++ = d * static_cast<float>((rest * 3 >> 8) - 1);
        }
    return out;
}

}  // namespace

void tq1_0(const uint8_t* p, float* out) {
    const float d = read_f16(p + 52);
    out = ternary(d, p, 32, 5, out);
    out = ternary(d, p + 32, 16, 5, out);
    ternary(d, p + 48, 4, 4, out);
}

void tq2_0(const uint8_t* p, float* out) {
    const float d = read_f16(p + 64);
    for (int i = 0; i < 256; ++i)
        out[i] = d * static_cast<float>((p[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) - 1);
}

void mxfp4(const uint8_t* p, float* out) {
    const float d = power_of_two(p[0] - 128);
    for (int i = 0; i < 16; ++i) {
        out[i] = d * static_cast<float>(FP4_DOUBLED[p[1 + i] & 15]);
        out[16 + i] = d * static_cast<float>(FP4_DOUBLED[p[1 + i] >> 4]);
    }
}

void nvfp4(const uint8_t* p, float* out) {
    for (int j = 0; j < 4; ++j) {
        const float d = unsigned_e4m3(p[j]) * 0.5f;
        for (int i = 0; i < 8; ++i) {
            out[16 * j + i] = d * static_cast<float>(FP4_DOUBLED[p[4 + 8 * j + i] & 15]);
            out[16 * j + 8 + i] = d * static_cast<float>(FP4_DOUBLED[p[4 + 8 * j + i] >> 4]);
        }
    }
}

}  // namespace strata::cpu
