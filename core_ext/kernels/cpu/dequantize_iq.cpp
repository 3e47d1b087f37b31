#include "kernels/cpu/blocks.h"
#include "kernels/cpu/codebooks.h"
#include "kernels/cpu/dequantize_blocks.h"

/// The IQ types: groups of 4 or 8 values from codebooks, or 16 uneven levels. blocks.h has the layouts of
/// those with kernels. Of the others (256 values; d a float16; k counts groups of 8 values, j groups of 16 or
/// 32):
///
/// type     bytes  offset: field                                 value i of group k
/// IQ2_XXS   66    0: d, 2: 8 x (4 entries of a byte, 32 bits)   d / 8 * (2 sc_j + 1) * v_i; j = k / 4
/// IQ2_XS    74    0: d, 2: 32 x 16 bits, 66: scales[8]          d / 8 * (2 sc_j + 1) * v_i; j = k / 2
/// IQ2_S     82    0: d, 2: qs[32], 34: signs[32], 66: qh[8],    the same
///                 74: scales[8]
/// IQ1_S     50    0: d, 2: qs[32], 34: 8 x 16 bits              d * (2 sc_j + 1) * (v_i +- 1/8); j = k / 4
/// IQ1_M     56    0: qs[32], 32: qh[16], 48: 4 x 16 bits        d * (2 sc_j + 1) * (v_i +- 1/8); j = k / 2
///
/// IQ2_XXS: signs and scale as in IQ3_XXS. IQ2_XS: the low 9 bits are the entry, the high 7 the signs of the
/// first seven values. IQ2_S: the entry is qs[k] with two bits of qh[k / 4] above it. IQ2_XS, IQ2_S: sc_j is
/// a nibble of scales[j / 2]. IQ1_S: of word j, three bits for each k go above qs[k]; bits 12 .. 14 are sc_j;
/// bit 15 takes off the 1/8. IQ1_M: of a nibble of qh[k / 2] three bits go above qs[k], the fourth takes off
/// the 1/8; of each word four times three bits are sc_j, the high four belong to d, the lowest ones in the
/// first word.
namespace strata::cpu {

namespace {

using blocks::read;
using blocks::read_f16;
using blocks::signs_of_seven;

template <typename Entry>
inline int at(Entry entry, int j) {
    return static_cast<int8_t>(entry >> 8 * j & 255);
}

/// The values of one entry; those whose bit is set in `signs` are negative.
template <typename Entry>
inline void signed_entry(float scale, Entry entry, uint32_t signs, float* out) {
    for (int j = 0; j < static_cast<int>(sizeof(Entry)); ++j)
        out[j] = scale * static_cast<float>(signs >> j & 1 ? -at(entry, j) : at(entry, j));
}

inline int nibble(const uint8_t* p, int i) { return p[i / 2] >> i % 2 * 4 & 15; }
inline float odd(int scale) { return static_cast<float>(2 * scale + 1); }

inline void sixteen_levels(float scale, const uint8_t* qs, float* out) {
    for (int i = 0; i < 16; ++i) {
        out[i] = scale * static_cast<float>(IQ4_LEVELS[qs[i] & 15]);
        out[16 + i] = scale * static_cast<float>(IQ4_LEVELS[qs[i] >> 4]);
    }
}

inline void lifted_entry(float scale, uint64_t entry, bool down, float* out) {
    for (int j = 0; j < 8; ++j)
        out[j] = scale * (static_cast<float>(at(entry, j)) + (down ? -0.125f : 0.125f));
}

}  // namespace

void iq4_nl(const uint8_t* p, float* out) { sixteen_levels(read_f16(p), p + 2, out); }

void iq4_xs(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int j = 0; j < 8; ++j) {
        const int scale = nibble(p + 4, j) | (read<uint16_t>(p + 2) >> 2 * j & 3) << 4;
        sixteen_levels(d * static_cast<float>(scale - 32), p + 8 + 16 * j, out + 32 * j);
    }
}

void iq3_s(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int k = 0; k < 64; ++k) {
        const int entry = p[2 + k] | (p[66 + k / 8] >> k % 8 & 1) << 8;
        signed_entry(d * odd(nibble(p + 106, k / 8)), IQ3_S_ENTRIES[entry], nibble(p + 74, k), out + 4 * k);
    }
}

void iq3_xxs(const uint8_t* p, float* out) {
    const float d = read_f16(p) * 0.25f;
    for (int k = 0; k < 64; ++k) {
        const auto word = read<uint32_t>(p + 66 + k / 8 * 4);
        const uint32_t signs = signs_of_seven(word >> k % 8 / 2 * 7 & 127) >> k % 2 * 4;
        signed_entry(d * odd(word >> 28), IQ3_XXS_ENTRIES[p[2 + k]], signs, out + 4 * k);
    }
}

void iq2_xxs(const uint8_t* p, float* out) {
    const float d = read_f16(p) * 0.125f;
    for (int k = 0; k < 32; ++k) {
        const uint8_t* group = p + 2 + k / 4 * 8;
        const auto word = read<uint32_t>(group + 4);
        signed_entry(d * odd(word >> 28), IQ2_XXS_ENTRIES[group[k % 4]],
                     signs_of_seven(word >> k % 4 * 7 & 127), out + 8 * k);
    }
}

void iq2_xs(const uint8_t* p, float* out) {
    const float d = read_f16(p) * 0.125f;
    for (int k = 0; k < 32; ++k) {
        const auto word = read<uint16_t>(p + 2 + 2 * k);
        signed_entry(d * odd(nibble(p + 66, k / 2)), IQ2_XS_ENTRIES[word & 511], signs_of_seven(word >> 9),
                     out + 8 * k);
    }
}

void iq2_s(const uint8_t* p, float* out) {
    const float d = read_f16(p) * 0.125f;
    for (int k = 0; k < 32; ++k) {
        const int entry = p[2 + k] | (p[66 + k / 4] >> k % 4 * 2 & 3) << 8;
        signed_entry(d * odd(nibble(p + 74, k / 2)), IQ2_S_ENTRIES[entry], p[34 + k], out + 8 * k);
    }
}

void iq1_s(const uint8_t* p, float* out) {
    const float d = read_f16(p);
    for (int k = 0; k < 32; ++k) {
        const auto word = read<uint16_t>(p + 34 + k / 4 * 2);
        const int entry = p[2 + k] | (word >> k % 4 * 3 & 7) << 8;
        lifted_entry(d * odd(word >> 12 & 7), IQ1_ENTRIES[entry], word >> 15, out + 8 * k);
    }
}

void iq1_m(const uint8_t* p, float* out) {
    const auto word = [&](int i) { return read<uint16_t>(p + 48 + 2 * i); };
    int bits = 0;
    for (int i = 0; i < 4; ++i) bits |= word(i) >> 12 << 4 * i;
    const float d = blocks::from_f16(static_cast<uint16_t>(bits));
    for (int k = 0; k < 32; ++k) {
        const int high = nibble(p + 32, k), scale = word(k / 8) >> k / 2 % 4 * 3 & 7;
        lifted_entry(d * odd(scale), IQ1_ENTRIES[p[k] | (high & 7) << 8], high & 8, out + 8 * k);
    }
}

}  // namespace strata::cpu
