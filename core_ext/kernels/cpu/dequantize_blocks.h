#pragma once

#include <cstdint>

/// One block's values of the types that dequantize.cpp does not hold itself, from the block's bytes: 32
/// values (IQ4_NL, MXFP4), 64 (NVFP4) or 256.
namespace strata::cpu {

// dequantize_iq.cpp
void iq4_nl(const uint8_t* p, float* out);
void iq4_xs(const uint8_t* p, float* out);
void iq3_s(const uint8_t* p, float* out);
void iq3_xxs(const uint8_t* p, float* out);
void iq2_xxs(const uint8_t* p, float* out);
void iq2_xs(const uint8_t* p, float* out);
void iq2_s(const uint8_t* p, float* out);
void iq1_s(const uint8_t* p, float* out);
void iq1_m(const uint8_t* p, float* out);

// dequantize_small.cpp
void tq1_0(const uint8_t* p, float* out);
void tq2_0(const uint8_t* p, float* out);
void mxfp4(const uint8_t* p, float* out);
void nvfp4(const uint8_t* p, float* out);

}  // namespace strata::cpu
