#pragma once

#include <cstdint>

/// The codebooks of ggml's IQ types: the groups of neighbouring values that their quantisers may choose from.
/// They are data of the format, as the order of its bits is. Byte j of an entry is value j of its group.
/// Three entries' bytes before and behind a book can be read.
namespace strata::cpu {

extern const uint32_t* const IQ3_XXS_ENTRIES;  // [256]: 4 magnitudes of 4 .. 62
extern const uint32_t* const IQ3_S_ENTRIES;    // [512]: 4 magnitudes of 1, 3 .. 15
extern const uint64_t* const IQ2_XXS_ENTRIES;  // [256]: 8 magnitudes of 8, 25, 43
extern const uint64_t* const IQ2_XS_ENTRIES;   // [512]
extern const uint64_t* const IQ2_S_ENTRIES;    // [1024]
extern const uint64_t* const IQ1_ENTRIES;      // [2048]: 8 of -1, 0, 1, int8; IQ1_S and IQ1_M

/// The 16 levels of IQ4_NL and IQ4_XS.
constexpr int8_t IQ4_LEVELS[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Twice the 16 values of FP4 (E2M1): MXFP4, NVFP4.
constexpr int8_t FP4_DOUBLED[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace strata::cpu
