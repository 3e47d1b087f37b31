#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/activations.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/codebooks.h"

/// The vectors of the CPU kernels in plain C++, without fused multiply-add: a backend of its own. The twin of
/// avx2.h and avx512.h: same names, same order. Loops over fixed arrays, which compilers turn into whatever
/// the target has.
namespace strata::cpu {
namespace {

constexpr const char* ISA_NAME = "portable";
constexpr const char* ISA_NUMERICS = "portable";
constexpr int ROWS_32 = 4, ROWS_256 = 4, ROWS_FLOAT = 4;

// 16 floats: lane i is partial sum i

struct V16 {
    float v[16];
};
template <typename F>
inline V16 lanes16(F&& lane) {
    V16 out;
    for (int i = 0; i < 16; ++i) out.v[i] = lane(i);
    return out;
}
inline V16 fill16(float x) {
    return lanes16([&](int) { return x; });
}
inline V16 load16(const float* p) {
    return lanes16([&](int i) { return p[i]; });
}
inline void store16(float* p, V16 a) {
    for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}

/// The first `left` floats, zeros behind them; nothing past them is touched.
inline V16 load16(const float* p, int64_t left) {
    if (left >= 16) return load16(p);
    return lanes16([&](int i) { return i < left ? p[i] : 0.0f; });
}
inline void store16(float* p, int64_t left, V16 a) {
    for (int i = 0; i < 16 && i < left; ++i) p[i] = a.v[i];
}
/// Weights: at any address.
inline V16 load16_f32(const uint8_t* p) {
    return lanes16([&](int i) { return blocks::read<float>(p + 4 * i); });
}
inline V16 load16_f16(const uint8_t* p) {
    return lanes16([&](int i) { return blocks::read_f16(p + 2 * i); });
}
inline V16 load16_bf16(const uint8_t* p) {
    return lanes16([&](int i) { return blocks::from_bf16(blocks::read<uint16_t>(p + 2 * i)); });
}
inline void store16_f16(uint16_t* p, V16 a) {
    for (int i = 0; i < 16; ++i) p[i] = blocks::to_f16(a.v[i]);
}

inline V16 operator+(V16 a, V16 b) {
    return lanes16([&](int i) { return a.v[i] + b.v[i]; });
}
inline V16 operator-(V16 a, V16 b) {
    return lanes16([&](int i) { return a.v[i] - b.v[i]; });
}
inline V16 operator*(V16 a, V16 b) {
    return lanes16([&](int i) { return a.v[i] * b.v[i]; });
}
inline V16 operator/(V16 a, V16 b) {
    return lanes16([&](int i) { return a.v[i] / b.v[i]; });
}
/// a * b + c, rounded twice.
inline V16 fma(V16 a, V16 b, V16 c) {
    return lanes16([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
inline float fma(float a, float b, float c) { return a * b + c; }
/// The larger one; `keep` where x is NaN.
inline V16 max_or(V16 x, V16 keep) {
    return lanes16([&](int i) { return x.v[i] > keep.v[i] ? x.v[i] : keep.v[i]; });
}
/// a < b ? yes : no, lane by lane; no where one is NaN.
inline V16 where_less(V16 a, V16 b, V16 yes, V16 no) {
    return lanes16([&](int i) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
}
inline bool any_equal(V16 a, V16 b) {
    bool any = false;
    for (int i = 0; i < 16; ++i) any |= a.v[i] == b.v[i];
    return any;
}
/// 2^n for the whole number n in -126 .. 127 that stands in the low bits of n + 1.5 * 2^23.
inline V16 power_of_two(V16 shifted) {
    return lanes16([&](int i) {
        const uint32_t bits = (blocks::read<uint32_t>(&shifted.v[i]) + 127) << 23;
        return blocks::read<float>(&bits);
    });
}

// 8 floats and the one tree of every sum

struct V8 {
    float v[8];
};
template <typename F>
inline V8 lanes8(F&& lane) {
    V8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = lane(i);
    return out;
}
inline V8 fill8(float x) {
    return lanes8([&](int) { return x; });
}
/// The float16 at p, everywhere.
inline V8 fill8_f16(const uint8_t* p) { return fill8(blocks::read_f16(p)); }
inline V8 times8(V8 a, V8 b) {
    return lanes8([&](int i) { return a.v[i] * b.v[i]; });
}
inline V8 fma(V8 a, V8 b, V8 c) {
    return lanes8([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
/// ((0+1) + (2+3)) + ((4+5) + (6+7)).
inline float sum(V8 a) {
    return ((a.v[0] + a.v[1]) + (a.v[2] + a.v[3])) + ((a.v[4] + a.v[5]) + (a.v[6] + a.v[7]));
}
/// Lanes i and i + 8 first.
inline V8 fold(V16 a) {
    return lanes8([&](int i) { return a.v[i] + a.v[i + 8]; });
}
/// Eight sums by the same tree: out[i] = sum(a[i]).
inline void sum_each(const V8 a[8], float* out) {
    for (int i = 0; i < 8; ++i) out[i] = sum(a[i]);
}

// Activations to int8

struct I16 {
    int32_t v[16];
};
template <typename F>
inline I16 whole16(F&& lane) {
    I16 out;
    for (int i = 0; i < 16; ++i) out.v[i] = lane(i);
    return out;
}
/// The bits of |x| as whole numbers: they order as the values do, NaN above all.
inline I16 magnitude_bits(V16 x) {
    return whole16([&](int i) { return blocks::read<int32_t>(&x.v[i]) & 0x7fffffff; });
}
inline I16 max(I16 a, I16 b) {
    return whole16([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline int32_t max_lane(I16 a) {
    int32_t most = a.v[0];
    for (int i = 1; i < 16; ++i) most = a.v[i] > most ? a.v[i] : most;
    return most;
}
/// To nearest, ties to even, kept within -127 .. 127 (NaN gives -127).
inline I16 round_to_int8(V16 x) {
    return whole16([&](int i) {
        const float above = x.v[i] > -127.0f ? x.v[i] : -127.0f, inside = above < 127.0f ? above : 127.0f;
        return static_cast<int32_t>((inside + 0x1.8p23f) - 0x1.8p23f);
    });
}
inline void store_bytes(int8_t* p, I16 a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
inline int32_t sum(I16 a) {
    int32_t s = 0;
    for (int i = 0; i < 16; ++i) s += a.v[i];
    return s;
}

// Weights in blocks of 32, LANES blocks side by side: quad j (values 4j .. 4j+3) of block b in lane b of
// register j

constexpr int LANES = 16;
using Lanes = V16;
inline Lanes fill_lanes(float x) { return fill16(x); }
inline Lanes load_lanes(const float* p) { return load16(p); }
inline Lanes times(Lanes a, Lanes b) { return a * b; }
/// The first n lanes; zero in the others.
inline Lanes first_lanes(Lanes a, int n) {
    return lanes16([&](int i) { return i < n ? a.v[i] : 0.0f; });
}
inline V8 fold(const Lanes parts[1]) { return fold(parts[0]); }
using Whole = I16;
inline Lanes to_lanes(Whole a) {
    return lanes16([&](int i) { return static_cast<float>(a.v[i]); });
}

struct Quads {
    uint8_t v[8][64];
};
/// 32 bytes of each block, from `offset` on.
template <typename At>
inline Quads bytes32(const At& at, int offset) {
    Quads out;
    for (int j = 0; j < 8; ++j)
        for (int b = 0; b < 16; ++b) std::memcpy(out.v[j] + 4 * b, at(b) + offset + 4 * j, 4);
    return out;
}
/// 16 bytes of each block, from `offset` on: low nibbles, then high nibbles.
template <typename At>
inline Quads nibbles(const At& at, int offset) {
    Quads out;
    for (int j = 0; j < 4; ++j) {
        for (int b = 0; b < 16; ++b) std::memcpy(out.v[j] + 4 * b, at(b) + offset + 4 * j, 4);
        for (int i = 0; i < 64; ++i) out.v[4 + j][i] = out.v[j][i] >> 4;
        for (int i = 0; i < 64; ++i) out.v[j][i] &= 15;
    }
    return out;
}
/// + 16 where the bit is set; 32 bits of each block, at `offset`.
template <typename At>
inline Quads with_fifth_bits(Quads w, const At& at, int offset) {
    for (int b = 0; b < 16; ++b) {
        const uint32_t bits = blocks::read<uint32_t>(at(b) + offset);
        for (int i = 0; i < 32; ++i) w.v[i / 4][4 * b + i % 4] |= static_cast<uint8_t>((bits >> i & 1) << 4);
    }
    return w;
}

/// The levels of IQ4_NL, by number.
inline Quads levels(Quads w) {
    for (auto& quads : w.v)
        for (uint8_t& number : quads) number = static_cast<uint8_t>(IQ4_LEVELS[number]);
    return w;
}

/// Unsigned weights. (How many 16-bit sums may be added is the twins' concern.)
template <int ADDED>
struct Small {
    Quads w;
};
/// Each block's sum of w * x.
template <typename W>
inline Whole dot_as(const Quads& w, const int8_t* x) {
    Whole total = {};
    for (int j = 0; j < 8; ++j)
        for (int b = 0; b < 16; ++b)
            for (int i = 4 * b; i < 4 * b + 4; ++i) total.v[b] += static_cast<W>(w.v[j][i]) * x[64 * j + i];
    return total;
}
template <int ADDED>
inline Whole dot(const Small<ADDED>& a, const int8_t* x) {
    return dot_as<uint8_t>(a.w, x);
}
/// a - (sums << SHIFT): an offset of 2^SHIFT on every weight.
template <int SHIFT>
inline Whole less_shifted(Whole a, const int32_t* sums) {
    return whole16([&](int i) { return a.v[i] - sums[i] * (1 << SHIFT); });
}
/// Signed weights, -128 included.
struct Signed {
    Quads w;
};
inline Signed as_signed(const Quads& w) { return {w}; }
inline Whole dot(const Signed& a, const int8_t* x, const int32_t*) { return dot_as<int8_t>(a.w, x); }

/// The float16 at `offset` in each block.
template <typename At>
inline Lanes heads(const At& at, int offset) {
    return lanes16([&](int i) { return blocks::read_f16(at(i) + offset); });
}

// Weights in blocks of 256, UNIT bytes at a time: groups 0, 2, 4, 6 in the first half of the units, then 1,
// 3, 5, 7

constexpr int UNIT = 32, UNITS = 256 / UNIT;
/// 32 weights, or the 16 scales of their pairs.
union Unit {
    uint8_t w[32];
    int16_t scale[16];
};
/// Whole-number sums of a block, in 8 lanes.
struct Sums {
    int32_t v[8];
};
inline Sums no_sums() { return {}; }
inline V8 to_float(Sums a) {
    return lanes8([&](int i) { return static_cast<float>(a.v[i]); });
}
/// start + scale * w * x. A scale is two equal int16.
template <typename W>
inline Sums scaled_dot_as(Sums start, const Unit* w, const Unit* scale, const int8_t* x) {
    for (int u = 0; u < UNITS; ++u)
        for (int i = 0; i < 8; ++i) {
            int32_t four = 0;
            for (int j = 4 * i; j < 4 * i + 4; ++j) four += static_cast<W>(w[u].w[j]) * x[32 * u + j];
            start.v[i] += scale[u / 4].scale[2 * i] * four;
        }
    return start;
}
template <int ADDED>
inline Sums scaled_dot(Sums start, const Unit* w, const Unit* scale, const int8_t* x) {
    return scaled_dot_as<uint8_t>(start, w, scale, x);
}
/// The same with signed weights.
template <int ADDED>
inline Sums scaled_dot_signed(const Unit* w, const Unit* scale, const int8_t* x) {
    return scaled_dot_as<int8_t>(no_sums(), w, scale, x);
}
/// 16 factors times 16 sums of activations, neighbours added: 8 lanes.
struct Factors {
    int16_t v[16];
};
inline int32_t two(const Factors& a, const int16_t* s, int i) {
    return a.v[2 * i] * s[2 * i] + a.v[2 * i + 1] * s[2 * i + 1];
}
inline V8 dot_sums(const Factors& a, const int16_t* sums) {
    return lanes8([&](int i) { return static_cast<float>(two(a, sums, i)); });
}
/// The start of a block's sums where every weight has an offset of 2^SHIFT: it times the scales and the
/// activations' sums is taken off.
template <int SHIFT>
inline Sums offset_sums(const Factors& a, const int16_t* sums) {
    Sums out;
    for (int i = 0; i < 8; ++i) out.v[i] = -(1 << SHIFT) * two(a, sums, i);
    return out;
}
/// One min or scale for 32 values, so for two sums of 16.
inline Factors min_factors(const uint32_t eight[2]) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = static_cast<int16_t>(eight[i / 8] >> i / 2 % 4 * 8 & 63);
    return out;
}
inline Factors scale_factors(const void* scales) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = static_cast<const int8_t*>(scales)[i];
    return out;
}
/// Sixteen int8, from the lowest byte on.
inline Factors scale_factors(uint64_t first, uint64_t second) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = static_cast<int8_t>((i < 8 ? first : second) >> i % 8 * 8);
    return out;
}
/// Eight int8, each for two sums of 16.
inline Factors scale_factors(uint64_t eight) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = static_cast<int8_t>(eight >> i / 2 * 8);
    return out;
}
/// 2 n + 1 of the top nibble n of each of eight words, each for two sums of 16.
inline Factors odd_factors(const uint8_t* words) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = static_cast<int16_t>(2 * (words[i / 2 * 4 + 3] >> 4) + 1);
    return out;
}
/// Sixteen nibbles, low or high, of 16 bytes.
inline Factors low_factors(const uint8_t* p) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = p[i] & 15;
    return out;
}
inline Factors high_factors(const uint8_t* p) {
    Factors out;
    for (int i = 0; i < 16; ++i) out.v[i] = p[i] >> 4;
    return out;
}
/// Scales in the place of the values that they belong to; the even groups', then the odd ones'.
inline void spread_scales(const Factors& sixteen, Unit* scale) {
    for (int odd = 0; odd < 2; ++odd)
        for (int i = 0; i < 16; ++i) scale[odd].scale[i] = sixteen.v[2 * (2 * (i / 2 % 4) + odd) + i / 8];
}
inline void spread_scales(const uint32_t sc[2], Unit* scale) { spread_scales(min_factors(sc), scale); }
/// The byte of value i.
inline uint8_t& weight(Unit* w, int i) {
    const int at = place_256(i / 4) + i % 4;
    return w[at / 32].w[at % 32];
}
/// The 256 low four bits of Q4_K and Q5_K.
inline void unpack_nibbles(const uint8_t* qs, Unit* w) {
    for (int i = 0; i < 256; ++i) weight(w, i) = qs[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}
/// Q5_K's fifth bits, added to them.
inline void add_fifth_bits(const uint8_t* qh, Unit* w) {
    for (int i = 0; i < 256; ++i) weight(w, i) |= static_cast<uint8_t>((qh[i % 32] >> i / 32 & 1) << 4);
}
/// Q6_K's weights, 0 .. 63.
inline void unpack_six_bits(const uint8_t* ql, const uint8_t* qh, Unit* w) {
    for (int i = 0; i < 256; ++i) {
        const int h = i / 128, j = i / 32 % 4;
        const int low = ql[64 * h + j % 2 * 32 + i % 32] >> j / 2 * 4 & 15,
                  high = qh[32 * h + i % 32] >> 2 * j & 3;
        weight(w, i) = static_cast<uint8_t>(low | high << 4);
    }
}
/// Q2_K's weights, 0 .. 3.
inline void unpack_two_bits(const uint8_t* qs, Unit* w) {
    for (int i = 0; i < 256; ++i) weight(w, i) = qs[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}
/// Q3_K's weights, 0 .. 7.
inline void unpack_three_bits(const uint8_t* qs, const uint8_t* hmask, Unit* w) {
    unpack_two_bits(qs, w);
    for (int i = 0; i < 256; ++i) weight(w, i) |= static_cast<uint8_t>((hmask[i % 32] >> i / 32 & 1) << 2);
}
/// IQ4_XS's weights.
inline void unpack_levels(const uint8_t* qs, Unit* w) {
    for (int i = 0; i < 256; ++i)
        weight(w, i) = static_cast<uint8_t>(IQ4_LEVELS[qs[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15]);
}
/// IQ3_S's entries [64]: a byte of `low` with a bit of `high` above it.
inline void nine_bits(const uint8_t* low, const uint8_t* high, uint16_t* entry) {
    for (int k = 0; k < 64; ++k)
        entry[k] = static_cast<uint16_t>(low[k] | (high[k / 8] << (8 - k % 8) & 256));
}
/// Eight words of four times seven signs -> of four times eight (blocks::signs_of_seven).
inline void signs_of_sevens(const uint8_t* words, uint32_t* signs) {
    for (int j = 0; j < 8; ++j) {
        const auto word = blocks::read<uint32_t>(words + 4 * j);
        signs[j] = 0;
        for (int m = 0; m < 4; ++m) signs[j] |= blocks::signs_of_seven(word >> 7 * m & 127) << 8 * m;
    }
}
/// IQ3's weights: quads from the codebook's entries [64], a word of signs a group.
template <typename Number>
inline void unpack_entries(const uint32_t* book, const Number* entry, const uint32_t* signs, Unit* w) {
    for (int i = 0; i < 256; ++i) {
        const auto value = static_cast<uint8_t>(book[entry[i / 4]] >> i % 4 * 8);
        weight(w, i) = signs[i / 32] >> i % 32 & 1 ? static_cast<uint8_t>(-value) : value;
    }
}

inline void prefetch(const void*) {}

}  // namespace
}  // namespace strata::cpu
