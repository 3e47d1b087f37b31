#include "device/kernel_times.h"

namespace strata {

std::string kernel_name(KernelKind kind) {
    constexpr const char* NAMES[] = {"embed", "copy",    "norm",   "elementwise", "quantise", "attention",
                                     "delta", "experts", "commit", "head",        "pick",     "other"};
    if (kind < KernelKind::project) return NAMES[static_cast<int>(kind)];
    return type_info(static_cast<Type>(static_cast<int>(kind) - static_cast<int>(KernelKind::project))).name;
}

void KernelTimes::tell(int lane, std::vector<KernelTally>& out) const {
    for (int rows = 0; rows <= MOST_ROWS; ++rows)
        for (int kind = 0; kind < N_KERNEL_KINDS; ++kind)
            if (spent_[rows][kind])
                out.push_back(
                    {lane, rows, programs_[rows], static_cast<KernelKind>(kind), spent_[rows][kind]});
}

}  // namespace strata
