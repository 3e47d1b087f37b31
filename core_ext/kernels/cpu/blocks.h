#pragma once

#include <cstdint>
#include <cstring>

/// ggml's quantised blocks, as GGUF files hold them: little-endian, packed, at any address. d and m are
/// float16.
///
/// type    values bytes  offset: field                               value i of the block
/// Q4_0      32    18    0: d, 2: qs[16]                             d * (q_i - 8)
/// Q4_1      32    20    0: d, 2: m, 4: qs[16]                       d * q_i + m
/// Q5_0      32    22    0: d, 2: qh (32 bits), 6: qs[16]            d * (q_i - 16)
/// Q5_1      32    24    0: d, 2: m, 4: qh, 8: qs[16]                d * q_i + m
/// Q8_0      32    34    0: d, 2: int8 q[32]                         d * q_i
/// IQ4_NL    32    18    0: d, 2: qs[16]                             d * level[q_i]
/// Q2_K     256    84    0: scales[16], 16: qs[64], 80: d, 82: dmin  d * sc_j * q_i - dmin * m_j; j = i / 16
/// Q3_K     256   110    0: hmask[32], 32: qs[64], 96: scales[12],   d * sc_j * (q_i - 4); j = i / 16
///                       108: d
/// Q4_K     256   144    0: d, 2: dmin, 4: scales[12], 16: qs[128]   d * sc_j * q_i - dmin * m_j; j = i / 32
/// Q5_K     256   176    0: d, 2: dmin, 4: scales[12], 16: qh[32],   the same
///                       48: qs[128]
/// Q6_K     256   210    0: ql[128], 128: qh[64],                    d * sc_j * (q_i - 32); j = i / 16
///                       192: int8 scales[16], 208: d
/// IQ4_XS   256   136    0: d, 2: scales_h (16 bits),                d * (sc_j - 32) * level[q_i]; j = i / 32
///                       4: scales_l[4], 8: qs[128]
/// IQ3_S    256   110    0: d, 2: qs[64], 66: qh[8], 74: signs[32],  d * (2 sc_j + 1) * v_i; j = i / 32
///                       106: scales[4]
/// IQ3_XXS  256    98    0: d, 2: qs[64], 66: 8 x 32 bits            d / 4 * (2 sc_j + 1) * v_i; j = i / 32
///
/// Blocks of 32: value i < 16 is the low nibble of qs[i], value 16 + i the high one; bit i of qh is value i's
/// fifth bit.
/// Q4_K, Q5_K: values 64 g + i are the low nibbles of qs[32 g + i] (i < 32), values 64 g + 32 + i the high
/// ones; bit j of qh[i] is the fifth bit of value 32 j + i. Their 6-bit scales and mins: unpack_scales.
/// Q6_K, each half h of 128: values 32 j + i (i < 32) have their low 4 bits in ql[64 h + i] (j = 0, low
/// nibble; j = 2, high) or ql[64 h + 32 + i] (j = 1, low; j = 3, high) and their high 2 bits in bits 2 j and
/// 2 j + 1 of qh[32 h + i].
/// Q2_K, Q3_K: value 128 h + 32 j + i (h < 2, j < 4, i < 32) has its low two bits in bits 2 j and 2 j + 1 of
/// qs[32 h + i]; Q3_K: its third bit is bit 4 h + j of hmask[i]. Q2_K: the low nibble of scales[j] is sc_j,
/// the high one m_j. Q3_K's scales: unpack_six_bit_scales. IQ4: nibbles as in blocks of 32, by groups of 32
/// in IQ4_XS. There scale j has its low four bits in a nibble of scales_l[j / 2] (j even: the low one), its
/// high two in bits 2 j and 2 j + 1 of scales_h. IQ3: values by quads, quad k (of 64) from an entry of a
/// codebook (codebooks.h) with signs of its own. IQ3_S: the entry is qs[k] with bit k % 8 of qh[k / 8] above
/// it; value i is negative where bit i % 8 of signs[i / 8] is set; sc_j is a nibble of scales[j / 2] (j even:
/// the low one). IQ3_XXS: the entry is qs[k]; bits 28 .. 31 of word j are sc_j, bits 7 m .. 7 m + 6 the signs
/// of the first seven of the values 32 j + 8 m .. + 7: signs_of_seven has the eighth.
///
/// The types without kernels are described where they are dequantised.
namespace strata::cpu::blocks {

template <typename T>
static inline T read(const void* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// 12 bytes -> 8 scales (bytes of sc[0..1]) and 8 mins (bytes of m[0..1]), six bits each. Of bytes a[4] b[4]
/// c[4]: scale j < 4 = low six bits of a_j, min j = low six bits of b_j; scale 4 + j = low nibble of c_j with
/// the top two bits of a_j above it, min 4 + j = high nibble of c_j with the top two bits of b_j above it.
static inline void unpack_scales(const uint8_t* packed, uint32_t sc[2], uint32_t m[2]) {
    const uint32_t a = read<uint32_t>(packed), b = read<uint32_t>(packed + 4), c = read<uint32_t>(packed + 8);
    sc[0] = a & 0x3f3f3f3f;
    m[0] = b & 0x3f3f3f3f;
    sc[1] = (c & 0x0f0f0f0f) | ((a >> 2) & 0x30303030);
    m[1] = ((c >> 4) & 0x0f0f0f0f) | ((b >> 2) & 0x30303030);
}

/// Eight bytes' values less 32, within -32 .. 31, as int8.
static inline uint64_t less_32(uint64_t eight) {
    const uint64_t tops = 0x8080808080808080;  // so that no byte borrows from its neighbour
    return ((eight | tops) - 0x2020202020202020) ^ tops;
}

/// 12 bytes -> 16 scales of six bits, less 32: scale j has its low four bits in a nibble of byte j % 8 (j <
/// 8: the low one), its high two in bits 2 (j / 4) and above of byte 8 + j % 4. Scale j is byte j % 8 of
/// out[j / 8], as int8.
static inline void unpack_six_bit_scales(const uint8_t* packed, uint64_t out[2]) {
    const uint64_t low = read<uint64_t>(packed), high = read<uint32_t>(packed + 8);
    const uint64_t first = (high & 0x03030303) | (high << 30 & 0x0303030300000000);
    const uint64_t second = (high >> 4 & 0x03030303) | (high << 26 & 0x0303030300000000);
    out[0] = less_32((low & 0x0f0f0f0f0f0f0f0f) | first << 4);
    out[1] = less_32((low >> 4 & 0x0f0f0f0f0f0f0f0f) | second << 4);
}

/// The nibbles of four bytes, a byte each, the low one first.
static inline uint64_t eight_nibbles(uint32_t bytes) {
    uint64_t x = bytes;
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}
/// Eight times two bits, a byte each, the lowest first.
static inline uint64_t eight_pairs(uint16_t bits) {
    uint64_t x = bits;
    x = (x | x << 24) & 0x000000ff000000ff;
    x = (x | x << 12) & 0x000f000f000f000f;
    return (x | x << 6) & 0x0303030303030303;
}

/// Signs of seven values and of the eighth, which makes the number of negative ones even.
static inline uint32_t signs_of_seven(uint32_t seven) {
    uint32_t odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    return seven | ((odd ^ odd >> 1) & 1) << 7;
}

/// float16 -> float32, exact.
static inline float from_f16(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, rest = h & 0x7fff;
    uint32_t bits;
    if (rest >= 0x7c00) {  // infinity; NaN, made quiet as F16C does
        bits = sign | 0x7f800000 | (rest & 0x3ff ? 0x400000 | (rest & 0x3ff) << 13 : 0);
    } else if (rest >= 0x400) {
        bits = sign | ((rest << 13) + (112u << 23));
    } else {  // zero and subnormals: a whole number of 2^-24
        const float value = static_cast<float>(rest) * 0x1p-24f;
        bits = sign | read<uint32_t>(&value);
    }
    return read<float>(&bits);
}

/// float32 -> float16, to nearest, ties to even; NaN stays NaN (quiet), as F16C does.
static inline uint16_t to_f16(float x) {
    const uint32_t bits = read<uint32_t>(&x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and above round to infinity
    if (rest < 0x38800000) {  // below 2^-14: the addition rounds to a whole number of 2^-24
        float magnitude = read<float>(&rest);
        magnitude += 0.5f;
        return static_cast<uint16_t>(sign | (read<uint32_t>(&magnitude) - 0x3f000000));
    }
    const uint32_t odd = rest >> 13 & 1;
    return static_cast<uint16_t>(sign | ((rest - (112u << 23) + 0xfff + odd) >> 13));
}

static inline float from_bf16(uint16_t h) {
    const uint32_t bits = static_cast<uint32_t>(h) << 16;
    return read<float>(&bits);
}

static inline float read_f16(const void* at) { return from_f16(read<uint16_t>(at)); }

}  // namespace strata::cpu::blocks
