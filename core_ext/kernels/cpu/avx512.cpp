#if defined(__x86_64__)

#include "kernels/cpu/isa/avx512.h"

#include "kernels/cpu/table.inl"

namespace strata::cpu {

extern const Kernels AVX512;
const Kernels AVX512 = TABLE;

}  // namespace strata::cpu

#endif
