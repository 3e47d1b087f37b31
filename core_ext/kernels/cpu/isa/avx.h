#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/codebooks.h"

/// What avx2.h and avx512.h share: vectors of 256 bits and less.
namespace strata::cpu {
namespace {

inline __m256i load32(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline void prefetch(const void* p) { _mm_prefetch((const char*)p, _MM_HINT_T1); }

// 8 floats and the one tree of every sum

inline float fma(float a, float b, float c) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}
using V8 = __m256;
inline V8 fill8(float x) { return _mm256_set1_ps(x); }
/// The float16 at p, everywhere.
inline V8 fill8_f16(const uint8_t* p) {
    int16_t h;
    std::memcpy(&h, p, 2);
    return _mm256_cvtph_ps(_mm_set1_epi16(h));
}
inline V8 times8(V8 a, V8 b) { return _mm256_mul_ps(a, b); }
inline V8 fma(V8 a, V8 b, V8 c) { return _mm256_fmadd_ps(a, b, c); }
/// ((0+1) + (2+3)) + ((4+5) + (6+7)).
inline float sum(V8 a) {
    const V8 pairs = _mm256_add_ps(a, _mm256_movehdup_ps(a));
    const V8 fours = _mm256_add_ps(pairs, _mm256_permute_ps(pairs, 0x4e));
    return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
}
/// Eight sums by the same tree: out[i] = sum(a[i]).
inline void sum_each(const V8 a[8], float* out) {
    const V8 ab = _mm256_hadd_ps(a[0], a[1]), cd = _mm256_hadd_ps(a[2], a[3]);
    const V8 ef = _mm256_hadd_ps(a[4], a[5]), gh = _mm256_hadd_ps(a[6], a[7]);
    const V8 abcd = _mm256_hadd_ps(ab, cd), efgh = _mm256_hadd_ps(ef, gh);
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_permute2f128_ps(abcd, efgh, 0x20),
                                        _mm256_permute2f128_ps(abcd, efgh, 0x31)));
}

// Weights in blocks of 32

/// The float16 at `offset` in each of 8 blocks from `first` on; at(i) is where block i starts.
template <typename At>
inline __m128i heads8(const At& at, int first, int offset) {
    const auto half = [&](int i) {
        int16_t h;
        std::memcpy(&h, at(first + i) + offset, 2);
        return h;
    };
    __m128i h = _mm_cvtsi32_si128(half(0));
    h = _mm_insert_epi16(h, half(1), 1), h = _mm_insert_epi16(h, half(2), 2),
    h = _mm_insert_epi16(h, half(3), 3);
    h = _mm_insert_epi16(h, half(4), 4), h = _mm_insert_epi16(h, half(5), 5),
    h = _mm_insert_epi16(h, half(6), 6);
    return _mm_insert_epi16(h, half(7), 7);
}

/// The levels of IQ4_NL and IQ4_XS, by number.
inline __m256i levels(__m256i numbers) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)IQ4_LEVELS)),
                               numbers);
}

// Weights in blocks of 256

/// 16 factors times 16 sums of activations, neighbours added: 8 lanes.
using Factors = __m256i;
inline V8 dot_sums(Factors a, const int16_t* sums) {
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(a, load32(sums)));
}
/// One min or scale for 32 values, so for two sums of 16.
inline Factors min_factors(const uint32_t eight[2]) {
    const __m256i one = _mm256_cvtepu8_epi32(
        _mm_cvtsi64_si128(static_cast<int64_t>(static_cast<uint64_t>(eight[1]) << 32 | eight[0])));
    return _mm256_or_si256(one, _mm256_slli_epi32(one, 16));
}
inline Factors scale_factors(const void* scales) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)scales));
}
/// Sixteen int8, from the lowest byte on.
inline Factors scale_factors(uint64_t first, uint64_t second) {
    return _mm256_cvtepi8_epi16(_mm_set_epi64x(static_cast<int64_t>(second), static_cast<int64_t>(first)));
}
/// Eight int8, each for two sums of 16.
inline Factors scale_factors(uint64_t eight) {
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(eight));
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(bytes, bytes));
}
/// 2 n + 1 of the top nibble n of each of eight words, each for two sums of 16.
inline Factors odd_factors(const uint8_t* words) {
    const __m256i twice = _mm256_and_si256(_mm256_srli_epi32(load32(words), 27), _mm256_set1_epi32(30)),
                  odd = _mm256_or_si256(twice, _mm256_set1_epi32(1));
    return _mm256_or_si256(odd, _mm256_slli_epi32(odd, 16));
}
/// Sixteen nibbles, low or high, of 16 bytes.
inline Factors low_factors(const uint8_t* p) {
    return _mm256_and_si256(scale_factors(p), _mm256_set1_epi16(15));
}
inline Factors high_factors(const uint8_t* p) {
    return _mm256_and_si256(_mm256_srli_epi16(scale_factors(p), 4), _mm256_set1_epi16(15));
}
/// Scales of groups 0, 2, 4, 6 or 1, 3, 5, 7, in both halves.
inline __m256i even_groups(__m256i a) {
    return _mm256_permutevar8x32_epi32(a, _mm256_set_epi32(6, 4, 2, 0, 6, 4, 2, 0));
}
inline __m256i odd_groups(__m256i a) {
    return _mm256_permutevar8x32_epi32(a, _mm256_set_epi32(7, 5, 3, 1, 7, 5, 3, 1));
}
/// Of two scales for each group, the first in the low half, the second in the high half.
inline __m256i first_then_second(__m256i a) {
    return _mm256_shuffle_epi8(a, _mm256_set_epi8(15, 14, 15, 14, 11, 10, 11, 10, 7, 6, 7, 6, 3, 2, 3, 2, 13,
                                                  12, 13, 12, 9, 8, 9, 8, 5, 4, 5, 4, 1, 0, 1, 0));
}
/// Four groups of 32 -> their quads side by side: a transposition within halves.
inline void interleave(const __m256i* group, __m256i* out) {
    const __m256i a = _mm256_unpacklo_epi32(group[0], group[1]),
                  b = _mm256_unpackhi_epi32(group[0], group[1]);
    const __m256i c = _mm256_unpacklo_epi32(group[2], group[3]),
                  d = _mm256_unpackhi_epi32(group[2], group[3]);
    out[0] = _mm256_unpacklo_epi64(a, c), out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d), out[3] = _mm256_unpackhi_epi64(b, d);
}
inline __m256i shifted_right(__m256i a, int bits) { return _mm256_srl_epi16(a, _mm_cvtsi32_si128(bits)); }

// Weights of the groups 0, 2, 4, 6 and of the groups 1, 3, 5, 7.

/// The low two bits of Q2_K and Q3_K.
inline void two_bits(const uint8_t* qs, __m256i* even, __m256i* odd) {
    const __m256i low = _mm256_set1_epi8(3);
    for (int h = 0; h < 2; ++h) {
        const __m256i four = load32(qs + 32 * h);
        for (int j = 0; j < 2; ++j) {
            even[2 * h + j] = _mm256_and_si256(shifted_right(four, 4 * j), low);
            odd[2 * h + j] = _mm256_and_si256(shifted_right(four, 4 * j + 2), low);
        }
    }
}
/// The third bit of Q3_K, added to them: bit g of a byte belongs to group g.
inline void third_bits(const uint8_t* hmask, __m256i* even, __m256i* odd) {
    const __m256i all = load32(hmask), one = _mm256_set1_epi8(1);
    const auto bit = [&](int g) {
        return _mm256_slli_epi16(_mm256_and_si256(shifted_right(all, g), one), 2);
    };
    for (int j = 0; j < 4; ++j) {
        even[j] = _mm256_or_si256(even[j], bit(2 * j));
        odd[j] = _mm256_or_si256(odd[j], bit(2 * j + 1));
    }
}
/// IQ4_XS's weights.
inline void sixteen_levels(const uint8_t* qs, __m256i* even, __m256i* odd) {
    const __m256i mask = _mm256_set1_epi8(15);
    for (int j = 0; j < 4; ++j) {
        const __m256i two = load32(qs + 32 * j), low = levels(_mm256_and_si256(two, mask)),
                      high = levels(_mm256_and_si256(_mm256_srli_epi16(two, 4), mask));
        even[j] = _mm256_permute2x128_si256(low, high, 0x20);
        odd[j] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}
/// -x where a bit of `signs` is set.
inline __m256i with_signs(__m256i x, uint32_t signs) {
    const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    const __m256i own_byte = _mm256_set_epi8(3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1,
                                             1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i all = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(signs)), own_byte);
    const __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(all, bits), bits);
    return _mm256_sub_epi8(_mm256_xor_si256(x, minus), minus);
}
/// IQ3_S's entries [64]: a byte of `low` with a bit of `high` above it.
inline void nine_bits(const uint8_t* low, const uint8_t* high, uint16_t* entry) {
    const __m256i own = _mm256_set_epi16(static_cast<int16_t>(0x8000), 0x4000, 0x2000, 0x1000, 0x800, 0x400,
                                         0x200, 0x100, 0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1);
    for (int i = 0; i < 4; ++i) {
        int16_t sixteen;
        std::memcpy(&sixteen, high + 2 * i, 2);
        const __m256i set = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(sixteen), own), own);
        const __m256i bytes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(low + 16 * i)));
        _mm256_storeu_si256((__m256i*)(entry + 16 * i),
                            _mm256_or_si256(bytes, _mm256_and_si256(set, _mm256_set1_epi16(256))));
    }
}
/// Eight words of four times seven signs -> of four times eight (blocks::signs_of_seven).
inline void signs_of_sevens(const uint8_t* words, uint32_t* signs) {
    const __m256i w = load32(words), low = _mm256_set1_epi8(15);
    const auto seven = [&](int m) {
        return _mm256_and_si256(_mm256_slli_epi32(w, m), _mm256_set1_epi32(127 << 8 * m));
    };
    const __m256i all =
        _mm256_or_si256(_mm256_or_si256(seven(0), seven(1)), _mm256_or_si256(seven(2), seven(3)));
    // The top bit where a nibble has an odd number of ones.
    const __m256i odds = _mm256_broadcastsi128_si256(
        _mm_set_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    const __m256i eighth =
        _mm256_xor_si256(_mm256_shuffle_epi8(odds, _mm256_and_si256(all, low)),
                         _mm256_shuffle_epi8(odds, _mm256_and_si256(_mm256_srli_epi16(all, 4), low)));
    _mm256_storeu_si256((__m256i*)signs, _mm256_or_si256(all, eighth));
}
/// Four entries of a codebook, whose neighbours are readable (codebooks.h): each comes with the 16 bytes in
/// which it lies where it is wanted. A gather takes several times as long, more still where microcode has
/// mended it.
template <typename Number>
inline __m128i four_entries(const uint32_t* book, const Number* entry) {
    const auto at = [&](int lane) { return _mm_loadu_si128((const __m128i*)(book + entry[lane] - lane)); };
    const __m128i low = _mm_blend_epi32(at(0), at(1), 2), high = _mm_blend_epi32(at(2), at(3), 8);
    return _mm_blend_epi32(low, high, 12);
}
/// IQ3's weights: quads from the codebook's entries [64], a word of signs a group.
template <typename Number>
inline void entries(const uint32_t* book, const Number* entry, const uint32_t* signs, __m256i* even,
                    __m256i* odd) {
    const auto group = [&](int g) {
        const Number* own = entry + 8 * g;
        return with_signs(_mm256_setr_m128i(four_entries(book, own), four_entries(book, own + 4)), signs[g]);
    };
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) even[j] = group(2 * j), odd[j] = group(2 * j + 1);
}
/// Q6_K's weights, 0 .. 63.
inline void six_bits(const uint8_t* ql, const uint8_t* qh, __m256i* even, __m256i* odd) {
    const __m256i low = _mm256_set1_epi8(15), high = _mm256_set1_epi8(48);
    for (int h = 0; h < 2; ++h) {
        const __m256i a = load32(ql + 64 * h), b = load32(ql + 64 * h + 32), top = load32(qh + 32 * h);
        even[2 * h] =
            _mm256_or_si256(_mm256_and_si256(a, low), _mm256_and_si256(_mm256_slli_epi16(top, 4), high));
        odd[2 * h] =
            _mm256_or_si256(_mm256_and_si256(b, low), _mm256_and_si256(_mm256_slli_epi16(top, 2), high));
        even[2 * h + 1] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(a, 4), low), _mm256_and_si256(top, high));
        odd[2 * h + 1] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(b, 4), low),
                                         _mm256_and_si256(_mm256_srli_epi16(top, 2), high));
    }
}

}  // namespace
}  // namespace strata::cpu
