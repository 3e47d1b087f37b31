#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strata {

/// Prompt lookup: the longest recent suffix of a line of tokens that occurred before, continued.
class Lookup {
  public:
    static constexpr int MIN_MATCH = 2;   // a shorter suffix says too little
    static constexpr int MAX_MATCH = 16;  // a longer one says no more
    static constexpr int MAX_TRIES = 64;  // occurrences looked at, newest first

    explicit Lookup(int capacity);

    /// Where the line's end occurred before: line[end + 1 + i % period] continues it by its i-th token.
    struct Match {
        int end = -1;
        int period = 0;  // 0: it didn't
    };
    /// `line` only grows between calls, or forget() was called.
    Match find(std::span<const int32_t> line);
    void forget();

  private:
    size_t bucket(int32_t first, int32_t second) const;
    void index(std::span<const int32_t> line);

    std::vector<int32_t> newest_;    // by hash of a pair: where it last ended, -1 for never
    std::vector<int32_t> previous_;  // by position: where a pair of the same hash ended before
    int indexed_ = 0;                // positions below have been entered, the line's last pair never
};

}  // namespace strata
