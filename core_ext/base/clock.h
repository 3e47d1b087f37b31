#pragma once

#include <chrono>
#include <cstdint>

namespace strata {

/// Nanoseconds of the one monotonic clock that every event, wait and rate goes by.
inline uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

/// Running time: a stopped process (ctrl-Z) sees the clock jump, and a jump of a second or more counts as
/// nothing.
class RunningTime {
  public:
    explicit RunningTime(uint64_t now) : last_ns_(now) {}
    uint64_t advance(uint64_t now) {
        const uint64_t step = now - last_ns_;
        last_ns_ = now;
        if (step < 1'000'000'000) elapsed_ns_ += step;
        return elapsed_ns_;
    }

  private:
    uint64_t last_ns_;
    uint64_t elapsed_ns_ = 0;
};

}  // namespace strata
