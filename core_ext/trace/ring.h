#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

namespace strata {

/// A bounded queue of fixed-size values from one producer thread to one consumer thread, without locks.
///
/// head_ counts values written, tail_ values read; only the producer stores head_ and only the consumer
/// stores tail_. The release store of head_ after the value pairs with the consumer's acquire load: a value
/// that is counted is whole. The release store of tail_ after the copy out pairs with the producer's acquire
/// load: a place is written again only after it was read. Each side keeps the other's last known count on its
/// own cache line and asks again only when it seems full or empty.
template <typename T>
class Ring {
  public:
    /// Capacity is rounded up to a power of two.
    explicit Ring(size_t capacity)
        : slots_(std::bit_ceil(capacity < 2 ? size_t{2} : capacity)), mask_(slots_.size() - 1) {}

    /// Producer. False when full; the value is not kept.
    bool push(const T& value) noexcept {
        const size_t head = head_.load(std::memory_order_relaxed);
        if (head - known_tail_ > mask_) {
            known_tail_ = tail_.load(std::memory_order_acquire);
            if (head - known_tail_ > mask_) return false;
        }
        slots_[head & mask_] = value;
        head_.store(head + 1, std::memory_order_release);
        return true;
    }

    /// Consumer. Calls `take(value)` for each value there is; returns how many.
    template <typename F>
    size_t drain(F&& take) {
        const size_t tail = tail_.load(std::memory_order_relaxed);
        const size_t head = head_.load(std::memory_order_acquire);
        for (size_t i = tail; i != head; ++i) take(slots_[i & mask_]);
        tail_.store(head, std::memory_order_release);
        return head - tail;
    }

    size_t capacity() const { return slots_.size(); }

  private:
    std::vector<T> slots_;
    const size_t mask_;
    alignas(64) std::atomic<size_t> head_{0};
    size_t known_tail_ = 0;  // producer's
    alignas(64) std::atomic<size_t> tail_{0};
};

}  // namespace strata
