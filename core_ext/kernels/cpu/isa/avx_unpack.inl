/// Blocks of 256 unpacked: the same for avx2.h and avx512.h, which include it, but for their place().
namespace strata::cpu {
namespace {

/// Q6_K's weights, 0 .. 63.
inline void unpack_six_bits(const uint8_t* ql, const uint8_t* qh, Unit* w) {
    __m256i even[4], odd[4];
    six_bits(ql, qh, even, odd);
    place(even, odd, w);
}
/// Q2_K's weights, 0 .. 3.
inline void unpack_two_bits(const uint8_t* qs, Unit* w) {
    __m256i even[4], odd[4];
    two_bits(qs, even, odd);
    place(even, odd, w);
}
/// Q3_K's weights, 0 .. 7.
inline void unpack_three_bits(const uint8_t* qs, const uint8_t* hmask, Unit* w) {
    __m256i even[4], odd[4];
    two_bits(qs, even, odd);
    third_bits(hmask, even, odd);
    place(even, odd, w);
}
/// IQ4_XS's weights.
inline void unpack_levels(const uint8_t* qs, Unit* w) {
    __m256i even[4], odd[4];
    sixteen_levels(qs, even, odd);
    place(even, odd, w);
}
/// IQ3's weights: quads from the codebook's entries [64], a word of signs a group.
template <typename Number>
inline void unpack_entries(const uint32_t* book, const Number* entry, const uint32_t* signs, Unit* w) {
    __m256i even[4], odd[4];
    entries(book, entry, signs, even, odd);
    place(even, odd, w);
}

}  // namespace
}  // namespace strata::cpu
