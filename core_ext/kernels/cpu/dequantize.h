#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace strata::cpu {

/// n values (a multiple of the block size) from blocks of any Type (blocks.h has the layouts of those with
/// kernels). Scalar: the values are the same in every instruction set, products and sums rounded one by one
/// as the formulas are written.
void dequantize(Type type, const void* blocks, int64_t n, float* out);

}  // namespace strata::cpu
