#include "device/appointment.h"

#include <array>
#include <thread>

#include "base/clock.h"

namespace strata {

// A split of 32 stages with its draft layer has one each; engines beside it share the rest.
static constinit std::array<std::atomic<uint64_t>, 64> places{};

Appointment::Appointment() noexcept {
    for (auto& place : places) {
        uint64_t expected = FREE;
        if (place.compare_exchange_strong(expected, NONE, std::memory_order_relaxed)) {
            place_ = &place;
            return;
        }
    }
}

bool Appointment::let_pass() noexcept {
    static thread_local uint64_t passed_ns = 0;
    const uint64_t now = now_ns();
    for (const auto& place : places) {
        const uint64_t due = place.load(std::memory_order_relaxed);
        if (due <= passed_ns || due > now) continue;  // free ones too: 0
        passed_ns = now;
        std::this_thread::yield();
        return true;
    }
    return false;
}

}  // namespace strata
