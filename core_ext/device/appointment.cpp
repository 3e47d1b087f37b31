#include "device/appointment.h"

#include <algorithm>
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

uint64_t Appointment::earliest_ns() noexcept {
    uint64_t earliest = NONE;
    for (const auto& place : places) {
        const uint64_t at = place.load(std::memory_order_relaxed);
        if (at != FREE) earliest = std::min(earliest, at);
    }
    return earliest == NONE ? 0 : earliest;
}

}  // namespace strata
