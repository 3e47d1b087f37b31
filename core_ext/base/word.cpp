#include "base/word.h"

#include <chrono>

#include "base/clock.h"

namespace strata {

void Word::wake() noexcept {
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    {
        std::lock_guard lock(mutex_);
    }  // whoever counted itself in is now asleep, not between check and sleep
    changed_.notify_all();
}

void Word::raise(uint64_t value) noexcept {
    uint64_t seen = value_.load(std::memory_order_relaxed);
    while (seen < value && !value_.compare_exchange_weak(seen, value, std::memory_order_seq_cst)) {
    }
    wake();
}

void Word::increment() noexcept {
    value_.fetch_add(1, std::memory_order_seq_cst);
    wake();
}

bool Word::wait_ge(uint64_t value, uint64_t bound_ns, uint64_t spin_ns) noexcept {
    if (this->value() >= value) return true;
    const uint64_t start = now_ns();
    while (now_ns() - start < spin_ns) {
        for (int i = 0; i < 16; ++i) spin_pause();
        if (this->value() >= value) return true;
    }
    RunningTime running(start);
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    bool reached = false;
    {
        std::unique_lock lock(mutex_);
        while (!(reached = value_.load(std::memory_order_seq_cst) >= value)) {
            const uint64_t used = running.advance(now_ns());
            if (used >= bound_ns) break;
            const uint64_t slice = std::min<uint64_t>(bound_ns - used, 100'000'000);
            changed_.wait_for(lock, std::chrono::nanoseconds(slice));
        }
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    return reached;
}

}  // namespace strata
