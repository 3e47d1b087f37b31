#include "kernels/cpu/isa/portable.h"

#include "kernels/cpu/table.inl"

namespace strata::cpu {

extern const Kernels PORTABLE;
const Kernels PORTABLE = TABLE;

}  // namespace strata::cpu
