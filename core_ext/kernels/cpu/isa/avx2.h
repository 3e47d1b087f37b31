#pragma once

#include "kernels/cpu/isa/avx.h"

/// The vectors of the CPU kernels, AVX2 + FMA + F16C. Twins: avx512.h, portable.h; same names, same order.
/// The kernels (*.inl) are written once over these names and compiled once per instruction set, everything in
/// an unnamed namespace: no function compiled for one instruction set may be picked by the linker for another
/// (so no std:: templates either).
namespace strata::cpu {
namespace {

constexpr const char* ISA_NAME = "avx2";
constexpr const char* ISA_NUMERICS = "fma16";
/// Rows that a product takes at once.
constexpr int ROWS_32 = 8, ROWS_256 = 8, ROWS_FLOAT = 4;

// 16 floats: lane i is partial sum i

struct V16 {
    __m256 lo, hi;
};
inline V16 fill16(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline V16 load16(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store16(float* p, V16 a) { _mm256_storeu_ps(p, a.lo), _mm256_storeu_ps(p + 8, a.hi); }

/// The first `left` floats, zeros behind them; nothing past them is touched.
alignas(64) constexpr int32_t MASKS[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
inline __m256i mask_lo(int64_t left) { return _mm256_loadu_si256((const __m256i*)(MASKS + 16 - left)); }
inline __m256i mask_hi(int64_t left) { return _mm256_loadu_si256((const __m256i*)(MASKS + 24 - left)); }
inline V16 load16(const float* p, int64_t left) {
    if (left >= 16) return load16(p);
    return {_mm256_maskload_ps(p, mask_lo(left)), _mm256_maskload_ps(p + 8, mask_hi(left))};
}
inline void store16(float* p, int64_t left, V16 a) {
    if (left >= 16) return store16(p, a);
    _mm256_maskstore_ps(p, mask_lo(left), a.lo);
    _mm256_maskstore_ps(p + 8, mask_hi(left), a.hi);
}
/// Weights: at any address.
inline V16 load16_f32(const uint8_t* p) { return load16((const float*)p); }
inline V16 load16_f16(const uint8_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 16)))};
}
inline __m256 widen_bf16(__m128i h) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline V16 load16_bf16(const uint8_t* p) {
    return {widen_bf16(_mm_loadu_si128((const __m128i*)p)),
            widen_bf16(_mm_loadu_si128((const __m128i*)(p + 16)))};
}
inline void store16_f16(uint16_t* p, V16 a) {
    _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i*)(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}

inline V16 operator+(V16 a, V16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline V16 operator-(V16 a, V16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline V16 operator*(V16 a, V16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline V16 operator/(V16 a, V16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
/// a * b + c, rounded once.
inline V16 fma(V16 a, V16 b, V16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// The larger one; `keep` where x is NaN.
inline V16 max_or(V16 x, V16 keep) { return {_mm256_max_ps(x.lo, keep.lo), _mm256_max_ps(x.hi, keep.hi)}; }
/// a < b ? yes : no, lane by lane; no where one is NaN.
inline V16 where_less(V16 a, V16 b, V16 yes, V16 no) {
    return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
inline bool any_equal(V16 a, V16 b) {
    return _mm256_movemask_ps(
        _mm256_or_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)));
}
/// 2^n for the whole number n in -126 .. 127 that stands in the low bits of n + 1.5 * 2^23.
inline __m256 power_of_two(__m256 shifted) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127)), 23));
}
inline V16 power_of_two(V16 shifted) { return {power_of_two(shifted.lo), power_of_two(shifted.hi)}; }

/// Lanes i and i + 8 first.
inline V8 fold(V16 a) { return _mm256_add_ps(a.lo, a.hi); }

// Activations to int8

struct I16 {
    __m256i lo, hi;
};
/// The bits of |x| as whole numbers: they order as the values do, NaN above all.
inline I16 magnitude_bits(V16 x) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    return {_mm256_and_si256(_mm256_castps_si256(x.lo), mask),
            _mm256_and_si256(_mm256_castps_si256(x.hi), mask)};
}
inline I16 max(I16 a, I16 b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
inline int32_t max_lane(I16 a) {
    const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}
/// To nearest, ties to even, kept within -127 .. 127 (NaN gives -127).
inline I16 round_to_int8(V16 x) {
    const __m256i low = _mm256_set1_epi32(-127), high = _mm256_set1_epi32(127);
    return {_mm256_min_epi32(_mm256_max_epi32(_mm256_cvtps_epi32(x.lo), low), high),
            _mm256_min_epi32(_mm256_max_epi32(_mm256_cvtps_epi32(x.hi), low), high)};
}
inline void store_bytes(int8_t* p, I16 a) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
    _mm_storeu_si128((__m128i*)p,
                     _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
inline int32_t sum(I16 a) {
    const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// Weights in blocks of 32, LANES blocks side by side: quad j (values 4j .. 4j+3) of block b in lane b of
// register j

constexpr int LANES = 8;
using Lanes = V8;
inline Lanes fill_lanes(float x) { return fill8(x); }
inline Lanes load_lanes(const float* p) { return _mm256_loadu_ps(p); }
inline Lanes times(Lanes a, Lanes b) { return _mm256_mul_ps(a, b); }
/// The first n lanes; zero in the others.
inline Lanes first_lanes(Lanes a, int n) {
    return n >= 8
               ? a
               : _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i*)(MASKS + 16 - n))));
}
inline V8 fold(const Lanes parts[2]) { return _mm256_add_ps(parts[0], parts[1]); }
using Whole = __m256i;
inline Lanes to_lanes(Whole a) { return _mm256_cvtepi32_ps(a); }

struct Quads {
    __m256i v[8];
};
/// 16 bytes of each of 8 blocks -> four quads of each: pairs of blocks four apart, then a transposition
/// within halves.
template <typename At>
inline void four_quads(const At& at, int offset, __m256i* out) {
    __m256i row[4];
    for (int k = 0; k < 4; ++k) {
        const __m128i low = _mm_loadu_si128((const __m128i*)(at(k) + offset));
        const __m128i high = _mm_loadu_si128((const __m128i*)(at(k + 4) + offset));
        row[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
    const __m256i a = _mm256_unpacklo_epi32(row[0], row[1]), b = _mm256_unpackhi_epi32(row[0], row[1]);
    const __m256i c = _mm256_unpacklo_epi32(row[2], row[3]), d = _mm256_unpackhi_epi32(row[2], row[3]);
    out[0] = _mm256_unpacklo_epi64(a, c), out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d), out[3] = _mm256_unpackhi_epi64(b, d);
}
/// 32 bytes of each block, from `offset` on.
template <typename At>
inline Quads bytes32(const At& at, int offset) {
    Quads out;
    four_quads(at, offset, out.v);
    four_quads(at, offset + 16, out.v + 4);
    return out;
}
/// 16 bytes of each block, from `offset` on: low nibbles, then high nibbles.
template <typename At>
inline Quads nibbles(const At& at, int offset) {
    const __m256i low = _mm256_set1_epi8(15);
    Quads out;
    four_quads(at, offset, out.v);
    for (int j = 0; j < 4; ++j) {
        out.v[4 + j] = _mm256_and_si256(_mm256_srli_epi16(out.v[j], 4), low);
        out.v[j] = _mm256_and_si256(out.v[j], low);
    }
    return out;
}
/// + 16 where the bit is set; 32 bits of each block, at `offset`.
template <typename At>
inline Quads with_fifth_bits(Quads w, const At& at, int offset) {
    const auto word = [&](int i) {
        int32_t bits;
        std::memcpy(&bits, at(i) + offset, 4);
        return bits;
    };
    const __m256i all =
        _mm256_set_epi32(word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0));
    for (int j = 0; j < 8; ++j) {  // byte j / 2 of the bits, four times; of its bits, one each
        const __m256i spread = _mm256_add_epi8(
            _mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0, 0x0c0c0c0c, 0x08080808, 0x04040404, 0),
            _mm256_set1_epi8(static_cast<char>(j / 2)));
        const __m256i bit = _mm256_set1_epi32(j % 2 ? static_cast<int32_t>(0x80402010) : 0x08040201);
        const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(all, spread), bit), bit);
        w.v[j] = _mm256_or_si256(w.v[j], _mm256_and_si256(set, _mm256_set1_epi8(16)));
    }
    return w;
}

/// The levels of IQ4_NL, by number.
inline Quads levels(Quads w) {
    for (int j = 0; j < 8; ++j) w.v[j] = levels(w.v[j]);
    return w;
}

/// Unsigned weights so small that ADDED products of pairs (two times weight times 127) fit 16 bits together.
template <int ADDED>
struct Small {
    Quads w;
};
/// Each block's sum of w * x.
template <int ADDED>
inline Whole dot(const Small<ADDED>& a, const int8_t* x) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i total = _mm256_setzero_si256();
    for (int j = 0; j < 8; j += ADDED) {
        __m256i pairs = _mm256_maddubs_epi16(a.w.v[j], load32(x + 64 * j));
        for (int i = j + 1; i < j + ADDED; ++i)
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(a.w.v[i], load32(x + 64 * i)));
        total = j ? _mm256_add_epi32(total, _mm256_madd_epi16(pairs, ones)) : _mm256_madd_epi16(pairs, ones);
    }
    return total;
}
/// a - (sums << SHIFT): an offset of 2^SHIFT on every weight.
template <int SHIFT>
inline Whole less_shifted(Whole a, const int32_t* sums) {
    return _mm256_sub_epi32(a, _mm256_slli_epi32(load32(sums), SHIFT));
}
/// Signed weights, -128 included: |w| times x with w's sign; 2 * 128 * 127 fits 16 bits since x is never
/// -128.
struct Signed {
    Quads w, magnitude;
};
inline Signed as_signed(const Quads& w) {
    Signed out{w, {}};
    for (int j = 0; j < 8; ++j) out.magnitude.v[j] = _mm256_abs_epi8(w.v[j]);
    return out;
}
inline Whole dot(const Signed& a, const int8_t* x, const int32_t*) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i total = _mm256_setzero_si256();
    for (int j = 0; j < 8; ++j) {
        const __m256i signed_x = _mm256_sign_epi8(load32(x + 64 * j), a.w.v[j]);
        const __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(a.magnitude.v[j], signed_x), ones);
        total = j ? _mm256_add_epi32(total, four) : four;
    }
    return total;
}

/// The float16 at `offset` in each block.
template <typename At>
inline Lanes heads(const At& at, int offset) {
    return _mm256_cvtph_ps(heads8(at, 0, offset));
}

// Weights in blocks of 256, UNIT bytes at a time: groups 0, 2, 4, 6 in the first half of the units, then 1,
// 3, 5, 7

constexpr int UNIT = 32, UNITS = 256 / UNIT;
using Unit = __m256i;
/// Whole-number sums of a block, in 8 lanes.
using Sums = __m256i;
inline Sums no_sums() { return _mm256_setzero_si256(); }
inline V8 to_float(Sums a) { return _mm256_cvtepi32_ps(a); }
/// start + scale * w * x; w so small that ADDED products of pairs fit 16 bits together. A scale is two equal
/// int16.
template <int ADDED>
inline Sums scaled_dot(Sums start, const Unit* w, const Unit* scale, const int8_t* x) {
    for (int u = 0; u < UNITS; u += ADDED) {
        __m256i pairs = _mm256_maddubs_epi16(w[u], load32(x + 32 * u));
        for (int i = u + 1; i < u + ADDED; ++i)
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w[i], load32(x + 32 * i)));
        start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, scale[u / 4]));
    }
    return start;
}
/// The same with signed weights, within -127 .. 127.
template <int ADDED>
inline Sums scaled_dot_signed(const Unit* w, const Unit* scale, const int8_t* x) {
    const auto pairs_of = [&](int u) {
        return _mm256_maddubs_epi16(_mm256_abs_epi8(w[u]), _mm256_sign_epi8(load32(x + 32 * u), w[u]));
    };
    Sums total = no_sums();
    for (int u = 0; u < UNITS; u += ADDED) {
        __m256i pairs = pairs_of(u);
        for (int i = u + 1; i < u + ADDED; ++i) pairs = _mm256_add_epi16(pairs, pairs_of(i));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, scale[u / 4]));
    }
    return total;
}
/// The start of a block's sums where every weight has an offset of 2^SHIFT: it times the scales and the
/// activations' sums is taken off.
template <int SHIFT>
inline Sums offset_sums(Factors a, const int16_t* sums) {
    return _mm256_sub_epi32(_mm256_setzero_si256(),
                            _mm256_slli_epi32(_mm256_madd_epi16(a, load32(sums)), SHIFT));
}
/// Scales in the place of the values that they belong to; the even groups', then the odd ones'.
inline void spread_scales(const uint32_t sc[2], Unit* scale) {
    const __m256i both = min_factors(sc);
    scale[0] = even_groups(both);
    scale[1] = odd_groups(both);
}
inline void spread_scales(Factors sixteen, Unit* scale) {
    scale[0] = first_then_second(even_groups(sixteen));
    scale[1] = first_then_second(odd_groups(sixteen));
}
/// The 256 low four bits of Q4_K and Q5_K.
inline void unpack_nibbles(const uint8_t* qs, Unit* w) {
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i two_groups[4] = {load32(qs), load32(qs + 32), load32(qs + 64), load32(qs + 96)};
    interleave(two_groups, w);
    for (int j = 0; j < 4; ++j) {
        w[4 + j] = _mm256_and_si256(_mm256_srli_epi16(w[j], 4), low);
        w[j] = _mm256_and_si256(w[j], low);
    }
}
/// Q5_K's fifth bits, added to them: bits 2 l and 2 l + 1 of a byte belong to the groups of lane l.
inline void add_fifth_bits(const uint8_t* qh, Unit* w) {
    const __m256i all = load32(qh), one = _mm256_set1_epi8(16),
                  own = _mm256_set_epi32(6, 4, 2, 0, 6, 4, 2, 0);
    const __m256i quad[4] = {_mm256_shuffle_epi32(all, 0x00), _mm256_shuffle_epi32(all, 0x55),
                             _mm256_shuffle_epi32(all, 0xaa), _mm256_shuffle_epi32(all, 0xff)};
    for (int j = 0; j < 4; ++j) {
        const __m256i bits = _mm256_srlv_epi32(quad[j], own);
        w[j] = _mm256_or_si256(w[j], _mm256_and_si256(_mm256_slli_epi16(bits, 4), one));
        w[4 + j] = _mm256_or_si256(w[4 + j], _mm256_and_si256(_mm256_slli_epi16(bits, 3), one));
    }
}
/// Weights of the groups 0, 2, 4, 6 and of the groups 1, 3, 5, 7 where products want them.
inline void place(const __m256i even[4], const __m256i odd[4], Unit* w) {
    interleave(even, w);
    interleave(odd, w + 4);
}

}  // namespace
}  // namespace strata::cpu

#include "kernels/cpu/isa/avx_unpack.inl"
