#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace strata {

/// Addresses of a mapped file, known to the handler of SIGBUS: the signal that a thread gets when it reads a
/// page that the file no longer has (or that the disk does not give). The handler puts zeros there and
/// remembers it; signals from other addresses go to whoever handled them before.
///
/// Ranges are links of a list that only grows, so that the handler can walk it at any moment; one that has
/// been forgotten is used again.
class MappedRange {
  public:
    static MappedRange* watch(const uint8_t* data, size_t size_bytes);
    void forget();
    /// True once zeros stand for bytes of the file.
    bool lost() const { return lost_.load(std::memory_order_acquire); }

    /// The range that holds an address, or null. Safe in a signal handler.
    static MappedRange* find(uintptr_t address);
    /// Zeros from the address's page to the end of the range. Safe in a signal handler.
    bool fill_from(uintptr_t address);

  private:
    // begin_ is written last and acquired first: who sees it sees the end that belongs to it.
    std::atomic<uintptr_t> begin_{0};  // 0: forgotten
    std::atomic<uintptr_t> end_{0};
    std::atomic<bool> lost_{false};
    MappedRange* next_ = nullptr;
};

}  // namespace strata
