#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

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
inline Factors scale_factors(const uint8_t* scales) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)scales));
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
/// Q6_K's weights, 0 .. 63, of the groups 0, 2, 4, 6 and of the groups 1, 3, 5, 7.
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
