#pragma once

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/word.h"
#include "device/device.h"
#include "device/pace.h"
#include "device/team.h"

namespace strata {

/// A CPU program: runs on the device's worker thread, which spreads its kernels over the team. May throw
/// Error.
class CpuProgram : public Program {
  public:
    virtual void run(Team& team) = 0;
};

struct CpuSpec {
    int threads = 1;
    std::vector<int> cores;  // pinned to these, empty: anywhere
    PaceSpec pace{};
    std::string label() const;
};

/// A worker thread with an in-order queue and a team of threads.
class CpuDevice final : public Device {
  public:
    /// `done` is raised after every program: the control thread's wake-up. `lane`: the stage, or DRAFT_LANE.
    /// Throws Error if the system has no thread to give.
    CpuDevice(const CpuSpec& spec, int lane, Word& done);
    ~CpuDevice() override;  // finishes what is queued, holding nothing

    std::string describe() const override { return label_; }
    bool pinned() const override { return pinned_; }  // known once the device is made

    Ticket submit(Program& program) override;
    Ticket finished() const override { return finished_.value(); }
    uint64_t finished_ns(Ticket ticket) const override {
        return ended_ns_[ticket % QUEUE].load(std::memory_order_relaxed);  // published by finished_
    }
    bool failed() const override { return failed_.load(std::memory_order_acquire); }
    std::string failure() const override;
    void clear_failure() override;

    /// For programs: the places where the device's pace may keep them. See Pace.
    void delay(ProgramKind kind, uint32_t window) noexcept {
        if (pace_) pace_->delay(kind, window);
    }
    /// The time at which the program ended.
    uint64_t hold(const Execution& execution) noexcept { return pace_ ? pace_->hold(execution) : now_ns(); }
    /// See Pace.
    uint64_t begins(uint64_t input_ns) const noexcept { return pace_ ? pace_->begins(input_ns) : now_ns(); }
    uint64_t book(const Execution& execution) noexcept { return pace_ ? pace_->book(execution) : now_ns(); }
    void sleep_until(uint64_t end_ns, ProgramKind kind, uint32_t window) noexcept {
        if (pace_) pace_->sleep_until(end_ns, kind, window);
    }
    /// The program that runs ended at `end_ns`, and the host is to go on from `told_ns` (0: from when it
    /// looks).
    void note_end(uint64_t end_ns, uint64_t told_ns = 0) noexcept {
        noted_end_ns_ = end_ns;
        noted_told_ns_ = told_ns;
    }
    /// Does a further program wait behind the one that runs?
    bool more_queued() const noexcept { return submitted_.value() > finished_.value() + 1; }
    /// A program at work moves on (a layer): however long it takes, it does not stand still. Relaxed: a sign
    /// of life, nothing hangs on when it is seen.
    void note_progress() noexcept { progress_.fetch_add(1, std::memory_order_relaxed); }
    uint64_t progress() const override { return progress_.load(std::memory_order_relaxed); }
    /// The host is to look again: something has fallen due that was computed before its time.
    void call_host() noexcept { done_.increment(); }
    void cut_runs(uint32_t window) override {
        if (pace_) pace_->cut(window, false);
    }
    void cut(uint32_t window) override {
        if (pace_) pace_->cut(window, true);
    }
    Pace* pace() const override { return pace_.get(); }
    /// Does its pace have a clock of its own?
    bool has_clock() const { return pace_ && pace_->has_clock(); }
    uint64_t told_ns(Ticket ticket) const override {
        return told_ns_[ticket % QUEUE].load(std::memory_order_relaxed);  // published by finished_
    }

  private:
    static constexpr size_t QUEUE = 64;
    void serve();
    void keep_failure(const char* what);

    const std::string label_;
    const std::unique_ptr<Pace> pace_;
    Word& done_;
    // queue_[t % QUEUE] is written before submitted_ reaches t and read by the worker after (release /
    // acquire of Word); submit() refuses to run more than QUEUE ahead of finished_, so a place is never
    // written while it may be read.
    std::array<CpuProgram*, QUEUE> queue_{};
    std::array<std::atomic<uint64_t>, QUEUE> ended_ns_{}, told_ns_{};
    uint64_t noted_end_ns_ = 0, noted_told_ns_ = 0;  // the worker's
    Word submitted_;
    Word finished_;
    std::atomic<bool> stop_{false};
    std::atomic<uint64_t> progress_{0};
    bool pinned_ = true;  // the worker's first act
    std::latch started_{1};
    std::atomic<bool> failed_{false};  // set after failure_, before the ticket counts as finished
    mutable std::mutex failure_mutex_;
    std::string failure_;
    std::optional<Team> team_;
    std::thread worker_;  // last: starts when all else is there
};

}  // namespace strata
