#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace strata {

/// A 64-bit word that only grows, shared by threads: a ready word, a count of finished programs, a wake-up.
///
/// Memory orders. raise() is sequentially consistent: as a release it makes everything written before it (a
/// payload) visible to whoever reads the new value with acquire; as one of two seq_cst pairs (value/waiters)
/// it closes the gap in which a waiter has seen the old value and has not slept yet: either the waiter's
/// increment of waiters_ comes first and the raiser sees it and notifies, or the raise comes first and the
/// waiter sees the value under the lock.
class Word {
  public:
    uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

    /// The word becomes at least `value` (an atomic maximum: a late raise never lowers it); waiters wake.
    void raise(uint64_t value) noexcept;
    /// Adds one; waiters wake.
    void increment() noexcept;
    /// Until the word is at least `value`: spins for at most `spin_ns`, then blocks. False after `bound_ns`
    /// of running time.
    bool wait_ge(uint64_t value, uint64_t bound_ns, uint64_t spin_ns = SPIN_NS) noexcept;

    static constexpr uint64_t SPIN_NS = 20'000;

  private:
    void wake() noexcept;
    std::atomic<uint64_t> value_{0};
    std::atomic<uint32_t> waiters_{0};
    std::mutex mutex_;  // held only to sleep and to wake sleepers
    std::condition_variable changed_;
};

/// How long any wait for another stage may last, in running time (split-decoding.md, section 4).
constexpr uint64_t WAIT_BOUND_NS = 20'000'000'000;

/// One turn of a spinning wait.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace strata
