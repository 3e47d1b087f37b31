#pragma once

#include <cstddef>

#include "kernels/cpu/kernels.h"

namespace strata::cpu {

/// Bytes a second at which `threads` threads together read `bytes` of memory, each a part of its own, over
/// and over for about `seconds`: the roof under which a product of one row stays. Larger than any cache, it
/// is the memory's.
double read_bandwidth(const Kernels& kernels, size_t bytes, int threads, double seconds);

}  // namespace strata::cpu
