#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kernels/types.h"

namespace strata {

/// What the kernels of a program do; projections are told apart by the type of their weights.
enum class KernelKind : uint8_t {
    embed,
    copy,
    norm,
    elementwise,
    quantise,  // of a projection's inputs
    attention,
    delta,
    experts,  // their projections too: what a row reads depends on what it chose
    commit,   // of a recurrent state
    head,
    pick,
    other,    // rotary angles, looks at whether a window was dropped
    project,  // + the number of the Type
};
constexpr int N_KERNEL_KINDS = static_cast<int>(KernelKind::project) + static_cast<int>(Type::BF16) + 1;
constexpr KernelKind projection(Type type) {
    return static_cast<KernelKind>(static_cast<int>(KernelKind::project) + static_cast<int>(type));
}
/// "attention", "Q4_K".
std::string kernel_name(KernelKind kind);

/// One line of KernelTimes.
struct KernelTally {
    int lane = 0;      // the stage, or DRAFT_LANE
    int rows = 0;      // of the programs; 0: more than a window has
    int programs = 0;  // forward programs of so many rows
    KernelKind kind = KernelKind::other;
    uint64_t ns = 0;
};

/// Time that the programs of one queue spent in each kind of kernel, by the rows that they ran over. Written
/// by the queue's worker alone, one program after the other; read while nothing is queued.
class KernelTimes {
  public:
    static constexpr int MOST_ROWS = 8;  // told apart

    void clear() {
        spent_ = {};
        programs_ = {};
    }
    void count_program(int rows) { ++programs_[index(rows)]; }
    /// The time since `mark`, which becomes now.
    void add(int rows, KernelKind kind, uint64_t& mark) {
        const uint64_t now = now_ns();
        spent_[index(rows)][static_cast<size_t>(kind)] += now - mark;
        mark = now;
    }
    /// What is not zero, behind what `out` holds.
    void tell(int lane, std::vector<KernelTally>& out) const;

  private:
    static size_t index(int rows) { return rows <= MOST_ROWS ? static_cast<size_t>(rows) : 0; }
    std::array<std::array<uint64_t, N_KERNEL_KINDS>, MOST_ROWS + 1> spent_{};
    std::array<int, MOST_ROWS + 1> programs_{};
};

}  // namespace strata
