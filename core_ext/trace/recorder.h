#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "trace/event.h"
#include "trace/ring.h"

namespace strata {

/// One producer thread's way to record. With recording off, record() is one relaxed load and a branch.
class EventLane {
  public:
    EventLane(const std::atomic<bool>& on, size_t capacity) : on_(on), ring_(capacity) {}

    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
    /// The producer's time: the clock's, or what it was told of if that is later.
    uint64_t now() const noexcept { return std::max(now_ns(), not_before_ns_); }
    /// A device with a clock of its own says that it is as late as that already.
    void not_before(uint64_t ns) noexcept { not_before_ns_ = std::max(not_before_ns_, ns); }
    void record(const Event& event) noexcept {
        if (on() && !ring_.push(event)) dropped_.fetch_add(1, std::memory_order_relaxed);
    }
    /// A span that ends now.
    void span(EventKind kind, uint64_t start_ns, uint8_t stage, uint32_t window, int rows, int a = 0,
              int b = 0) noexcept {
        if (on())
            record({start_ns, now() - start_ns, window, kind, stage, static_cast<uint16_t>(rows), a, b});
    }
    void moment(EventKind kind, uint8_t stage, uint32_t window, int rows, int a = 0, int b = 0) noexcept {
        if (on()) record({now(), 0, window, kind, stage, static_cast<uint16_t>(rows), a, b});
    }

  private:
    friend class Recorder;
    const std::atomic<bool>& on_;
    Ring<Event> ring_;
    uint64_t not_before_ns_ = 0;        // the producer's
    std::atomic<uint64_t> dropped_{0};  // a count: no other data hangs on it
};

/// All lanes of an engine. Lanes are made at load, before their threads run; drained by one reader at a time.
class Recorder {
  public:
    Recorder(bool on, size_t lane_capacity) : on_(on), lane_capacity_(lane_capacity) {}

    EventLane& add_lane() { return *lanes_.emplace_back(std::make_unique<EventLane>(on_, lane_capacity_)); }

    bool on() const { return on_.load(std::memory_order_relaxed); }
    void set_on(bool on) { on_.store(on, std::memory_order_relaxed); }

    /// Appends all events there are to `out`, lane by lane.
    void drain(std::vector<Event>& out) {
        std::lock_guard lock(reader_);
        for (auto& lane : lanes_) lane->ring_.drain([&](const Event& event) { out.push_back(event); });
    }
    uint64_t dropped() const {
        uint64_t total = 0;
        for (const auto& lane : lanes_) total += lane->dropped_.load(std::memory_order_relaxed);
        return total;
    }

  private:
    std::atomic<bool> on_;
    const size_t lane_capacity_;
    std::vector<std::unique_ptr<EventLane>> lanes_;
    std::mutex reader_;
};

}  // namespace strata
