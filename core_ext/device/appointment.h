#pragma once

#include <atomic>
#include <cstdint>

namespace strata {

/// The time at which a sleeping thread is to be back on a core, for all to see: cores are the whole process's.
///
/// Such a thread runs for moments only, but in time; and on a core where another computes, Linux may let it
/// wait for milliseconds, because it has just had its share. So the teams of emulated devices look, between
/// two operations, whether somebody is due, and let them pass. (Those of real ones don't: they owe nobody.)
///
/// Relaxed: nothing hangs on when a time is seen.
class Appointment {
  public:
    Appointment() noexcept;  // where all places are taken nobody makes way for it
    ~Appointment() { set(FREE); }
    Appointment(const Appointment&) = delete;
    Appointment& operator=(const Appointment&) = delete;

    void make(uint64_t ns) noexcept { set(ns); }
    void keep() noexcept { set(NONE); }

    /// The calling thread lets others onto its core for a moment, if an appointment has fallen due since it last
    /// did. True if so.
    static bool let_pass() noexcept;

    /// Tests: the earliest that is made; 0 if none is.
    static uint64_t earliest_ns() noexcept;

  private:
    static constexpr uint64_t FREE = 0, NONE = UINT64_MAX;
    void set(uint64_t ns) noexcept {
        if (place_) place_->store(ns, std::memory_order_relaxed);
    }
    std::atomic<uint64_t>* place_ = nullptr;
};

}  // namespace strata
