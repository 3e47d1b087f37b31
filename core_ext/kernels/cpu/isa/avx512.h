#pragma once

#include "kernels/cpu/isa/avx.h"

/// The vectors of the CPU kernels, AVX-512 F, BW, VL, DQ and VNNI. The twin of avx2.h: same names, same
/// order, equal bits.
namespace strata::cpu {
namespace {

constexpr const char* ISA_NAME = "avx512";
constexpr const char* ISA_NUMERICS = "fma16";
constexpr int ROWS_32 = 8, ROWS_256 = 8, ROWS_FLOAT = 8;

// 16 floats: lane i is partial sum i

struct V16 {
    __m512 v;
};
inline V16 fill16(float x) { return {_mm512_set1_ps(x)}; }
inline V16 load16(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store16(float* p, V16 a) { _mm512_storeu_ps(p, a.v); }

/// The first `left` floats, zeros behind them; nothing past them is touched.
inline __mmask16 mask(int64_t left) { return static_cast<__mmask16>((1u << left) - 1); }
inline V16 load16(const float* p, int64_t left) {
    if (left >= 16) return load16(p);
    return {_mm512_maskz_loadu_ps(mask(left), p)};
}
inline void store16(float* p, int64_t left, V16 a) {
    if (left >= 16) return store16(p, a);
    _mm512_mask_storeu_ps(p, mask(left), a.v);
}
/// Weights: at any address.
inline V16 load16_f32(const uint8_t* p) { return {_mm512_loadu_ps(p)}; }
inline V16 load16_f16(const uint8_t* p) { return {_mm512_cvtph_ps(load32(p))}; }
inline V16 load16_bf16(const uint8_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(p)), 16))};
}
inline void store16_f16(uint16_t* p, V16 a) {
    _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

inline V16 operator+(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline V16 operator-(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline V16 operator*(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline V16 operator/(V16 a, V16 b) { return {_mm512_div_ps(a.v, b.v)}; }
/// a * b + c, rounded once.
inline V16 fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// The larger one; `keep` where x is NaN.
inline V16 max_or(V16 x, V16 keep) { return {_mm512_max_ps(x.v, keep.v)}; }
/// a < b ? yes : no, lane by lane; no where one is NaN.
inline V16 where_less(V16 a, V16 b, V16 yes, V16 no) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
inline bool any_equal(V16 a, V16 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ); }
/// 2^n for the whole number n in -126 .. 127 that stands in the low bits of n + 1.5 * 2^23.
inline V16 power_of_two(V16 shifted) {
    const __m512i n = _mm512_add_epi32(_mm512_castps_si512(shifted.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(n, 23))};
}

/// Lanes i and i + 8 first.
inline V8 fold(V16 a) { return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)); }

// Activations to int8

struct I16 {
    __m512i v;
};
/// The bits of |x| as whole numbers: they order as the values do, NaN above all.
inline I16 magnitude_bits(V16 x) {
    return {_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff))};
}
inline I16 max(I16 a, I16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline int32_t max_lane(I16 a) { return _mm512_reduce_max_epi32(a.v); }
/// To nearest, ties to even, kept within -127 .. 127 (NaN gives -127).
inline I16 round_to_int8(V16 x) {
    const __m512i low = _mm512_set1_epi32(-127), high = _mm512_set1_epi32(127);
    return {_mm512_min_epi32(_mm512_max_epi32(_mm512_cvtps_epi32(x.v), low), high)};
}
inline void store_bytes(int8_t* p, I16 a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a.v)); }
inline int32_t sum(I16 a) { return _mm512_reduce_add_epi32(a.v); }

// Weights in blocks of 32, LANES blocks side by side: quad j (values 4j .. 4j+3) of block b in lane b of
// register j

constexpr int LANES = 16;
using Lanes = V16;
inline Lanes fill_lanes(float x) { return fill16(x); }
inline Lanes load_lanes(const float* p) { return load16(p); }
inline Lanes times(Lanes a, Lanes b) { return a * b; }
/// The first n lanes; zero in the others.
inline Lanes first_lanes(Lanes a, int n) { return n >= 16 ? a : Lanes{_mm512_maskz_mov_ps(mask(n), a.v)}; }
inline V8 fold(const Lanes parts[1]) { return fold(parts[0]); }
using Whole = __m512i;
inline Lanes to_lanes(Whole a) { return {_mm512_cvtepi32_ps(a)}; }

inline __m512i load64(const void* p) { return _mm512_loadu_si512(p); }
inline __m512i halves(__m256i lo, __m256i hi) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}
struct Quads {
    __m512i v[8];
};
/// 16 bytes of each of 16 blocks -> four quads of each: blocks four apart, then a transposition within
/// quarters.
template <typename At>
inline void four_quads(const At& at, int offset, __m512i* out) {
    const auto block = [&](int i) { return _mm_loadu_si128((const __m128i*)(at(i) + offset)); };
    __m512i row[4];
    for (int k = 0; k < 4; ++k) {
        row[k] = _mm512_inserti32x4(_mm512_castsi128_si512(block(k)), block(k + 4), 1);
        row[k] = _mm512_inserti32x4(_mm512_inserti32x4(row[k], block(k + 8), 2), block(k + 12), 3);
    }
    const __m512i a = _mm512_unpacklo_epi32(row[0], row[1]), b = _mm512_unpackhi_epi32(row[0], row[1]);
    const __m512i c = _mm512_unpacklo_epi32(row[2], row[3]), d = _mm512_unpackhi_epi32(row[2], row[3]);
    out[0] = _mm512_unpacklo_epi64(a, c), out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d), out[3] = _mm512_unpackhi_epi64(b, d);
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
    const __m512i low = _mm512_set1_epi8(15);
    Quads out;
    four_quads(at, offset, out.v);
    for (int j = 0; j < 4; ++j) {
        out.v[4 + j] = _mm512_and_si512(_mm512_srli_epi16(out.v[j], 4), low);
        out.v[j] = _mm512_and_si512(out.v[j], low);
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
    const __m512i all =
        _mm512_set_epi32(word(15), word(14), word(13), word(12), word(11), word(10), word(9), word(8),
                         word(7), word(6), word(5), word(4), word(3), word(2), word(1), word(0));
    for (int j = 0; j < 8; ++j) {  // byte j / 2 of the bits, four times; of its bits, one each
        const __m512i spread = _mm512_add_epi8(_mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0),
                                               _mm512_set1_epi8(static_cast<char>(j / 2)));
        const __m512i bit = _mm512_set1_epi32(j % 2 ? static_cast<int32_t>(0x80402010) : 0x08040201);
        const __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(all, spread), bit);
        w.v[j] = _mm512_mask_add_epi8(w.v[j], set, w.v[j], _mm512_set1_epi8(16));
    }
    return w;
}

/// The levels of IQ4_NL, by number.
inline Quads levels(Quads w) {
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)IQ4_LEVELS));
    for (int j = 0; j < 8; ++j) w.v[j] = _mm512_shuffle_epi8(table, w.v[j]);
    return w;
}

/// Unsigned weights. (How many 16-bit sums may be added is the twin's concern: here they are 32 bits wide.)
template <int ADDED>
struct Small {
    Quads w;
};
/// Each block's sum of w * x.
inline Whole dot(const Quads& w, const int8_t* x, Whole total) {
    for (int j = 0; j < 8; ++j) total = _mm512_dpbusd_epi32(total, w.v[j], load64(x + 64 * j));
    return total;
}
template <int ADDED>
inline Whole dot(const Small<ADDED>& a, const int8_t* x) {
    return dot(a.w, x, _mm512_setzero_si512());
}
/// a - (sums << SHIFT): an offset of 2^SHIFT on every weight.
template <int SHIFT>
inline Whole less_shifted(Whole a, const int32_t* sums) {
    return _mm512_sub_epi32(a, _mm512_slli_epi32(load64(sums), SHIFT));
}
/// Signed weights, -128 included: the instruction wants one unsigned factor, so it is w + 128, less 128 times
/// the sums.
struct Signed {
    Quads w;
};
inline Signed as_signed(Quads w) {
    for (int j = 0; j < 8; ++j) w.v[j] = _mm512_xor_si512(w.v[j], _mm512_set1_epi8(-128));
    return {w};
}
inline Whole dot(const Signed& a, const int8_t* x, const int32_t* sums) {
    return dot(a.w, x, less_shifted<7>(_mm512_setzero_si512(), sums));
}

/// The float16 at `offset` in each block.
template <typename At>
inline Lanes heads(const At& at, int offset) {
    return {_mm512_cvtph_ps(_mm256_set_m128i(heads8(at, 8, offset), heads8(at, 0, offset)))};
}

// Weights in blocks of 256, UNIT bytes at a time: groups 0, 2, 4, 6 in the first half of the units, then 1,
// 3, 5, 7

constexpr int UNIT = 64, UNITS = 256 / UNIT;
using Unit = __m512i;
/// Whole-number sums of a block, in 8 lanes once the halves are added.
using Sums = __m512i;
inline Sums no_sums() { return _mm512_setzero_si512(); }
inline V8 to_float(Sums a) {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1)));
}
/// start + scale * w * x; two products of pairs fit 16 bits together. A scale is two equal int16.
template <int ADDED>
inline Sums scaled_dot(Sums start, const Unit* w, const Unit* scale, const int8_t* x) {
    static_assert(ADDED >= 2);
    for (int u = 0; u < UNITS; u += 2) {
        const __m512i pairs = _mm512_add_epi16(_mm512_maddubs_epi16(w[u], load64(x + 64 * u)),
                                               _mm512_maddubs_epi16(w[u + 1], load64(x + 64 * u + 64)));
        start = _mm512_dpwssd_epi32(start, pairs, scale[u / 2]);
    }
    return start;
}
/// The same with signed weights, within -127 .. 127.
template <int ADDED>
inline Sums scaled_dot_signed(const Unit* w, const Unit* scale, const int8_t* x) {
    const auto pairs_of = [&](int u) {
        const __m512i plain = load64(x + 64 * u);
        const __m512i signed_x =
            _mm512_mask_sub_epi8(plain, _mm512_movepi8_mask(w[u]), _mm512_setzero_si512(), plain);
        return _mm512_maddubs_epi16(_mm512_abs_epi8(w[u]), signed_x);
    };
    Sums total = no_sums();
    for (int u = 0; u < UNITS; u += 2)
        if constexpr (ADDED > 1) {
            total = _mm512_dpwssd_epi32(total, _mm512_add_epi16(pairs_of(u), pairs_of(u + 1)), scale[u / 2]);
        } else {
            total = _mm512_dpwssd_epi32(total, pairs_of(u), scale[u / 2]);
            total = _mm512_dpwssd_epi32(total, pairs_of(u + 1), scale[u / 2]);
        }
    return total;
}
/// The start of a block's sums where every weight has an offset of 2^SHIFT: it times the scales and the
/// activations' sums is taken off.
template <int SHIFT>
inline Sums offset_sums(Factors a, const int16_t* sums) {
    const __m256i offset = _mm256_slli_epi32(_mm256_madd_epi16(a, load32(sums)), SHIFT);
    return _mm512_zextsi256_si512(_mm256_sub_epi32(_mm256_setzero_si256(), offset));
}
/// Scales in the place of the values that they belong to; the even groups', then the odd ones'.
inline void spread_scales(const uint32_t sc[2], Unit* scale) {
    const __m256i both = min_factors(sc);
    scale[0] = _mm512_broadcast_i64x4(even_groups(both));
    scale[1] = _mm512_broadcast_i64x4(odd_groups(both));
}
inline void spread_scales(Factors sixteen, Unit* scale) {
    scale[0] = _mm512_broadcast_i64x4(first_then_second(even_groups(sixteen)));
    scale[1] = _mm512_broadcast_i64x4(first_then_second(odd_groups(sixteen)));
}
/// The 256 low four bits of Q4_K and Q5_K.
inline void unpack_nibbles(const uint8_t* qs, Unit* w) {
    const __m512i low = _mm512_set1_epi8(15);
    const __m256i two_groups[4] = {load32(qs), load32(qs + 32), load32(qs + 64), load32(qs + 96)};
    __m256i quad[4];
    interleave(two_groups, quad);
    for (int j = 0; j < 2; ++j) {
        const __m512i two = halves(quad[2 * j], quad[2 * j + 1]);
        w[2 + j] = _mm512_and_si512(_mm512_srli_epi16(two, 4), low);
        w[j] = _mm512_and_si512(two, low);
    }
}
/// Q5_K's fifth bits, added to them: bits 2 l and 2 l + 1 of a byte belong to the groups of lane l.
inline void add_fifth_bits(const uint8_t* qh, Unit* w) {
    const __m512i one = _mm512_set1_epi8(16), own = _mm512_set4_epi32(6, 4, 2, 0);
    const __m256i all = load32(qh);
    const __m512i quads[2] = {halves(_mm256_shuffle_epi32(all, 0x00), _mm256_shuffle_epi32(all, 0x55)),
                              halves(_mm256_shuffle_epi32(all, 0xaa), _mm256_shuffle_epi32(all, 0xff))};
    for (int j = 0; j < 2; ++j) {
        const __m512i bits = _mm512_srlv_epi32(quads[j], own);
        w[j] = _mm512_or_si512(w[j], _mm512_and_si512(_mm512_slli_epi16(bits, 4), one));
        w[2 + j] = _mm512_or_si512(w[2 + j], _mm512_and_si512(_mm512_slli_epi16(bits, 3), one));
    }
}
/// Weights of the groups 0, 2, 4, 6 and of the groups 1, 3, 5, 7 where products want them.
inline void place(const __m256i even[4], const __m256i odd[4], Unit* w) {
    __m256i quad[4];
    interleave(even, quad);
    w[0] = halves(quad[0], quad[1]), w[1] = halves(quad[2], quad[3]);
    interleave(odd, quad);
    w[2] = halves(quad[0], quad[1]), w[3] = halves(quad[2], quad[3]);
}

}  // namespace
}  // namespace strata::cpu

#include "kernels/cpu/isa/avx_unpack.inl"
