#if defined(__x86_64__)

#include "kernels/cpu/isa/avx2.h"

#include "kernels/cpu/table.inl"

namespace strata::cpu {

extern const Kernels AVX2;
const Kernels AVX2 = TABLE;

}  // namespace strata::cpu

#endif
