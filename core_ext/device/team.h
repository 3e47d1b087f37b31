#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/word.h"
#include "device/appointment.h"

namespace strata {

/// Where the threads of a team meet. Spins for a moment, then sleeps: the others may lack a core.
///
/// The last to arrive resets the count (relaxed: nobody else touches it before the phase moves) and moves the
/// phase; the others acquire it. It is stored seq_cst: notify_all() first looks whether anybody sleeps, and
/// that look must not come before the phase is seen to have moved. Every arrival is acq_rel, so all that was
/// written before the barrier by anyone is visible after it to everyone. The wait needs no bound: teammates
/// run kernels, which neither throw nor wait (a delayed device lets member 0 come late, by a bounded time).
class Barrier {
  public:
    explicit Barrier(int n) : n_(n) {}
    void wait() noexcept {
        if (n_ == 1) return;
        const uint32_t phase = phase_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) == n_ - 1) {
            arrived_.store(0, std::memory_order_relaxed);
            phase_.store(phase + 1, std::memory_order_seq_cst);
            phase_.notify_all();
            return;
        }
        for (int spin = 0; spin < SPINS; ++spin) {
            if (phase_.load(std::memory_order_acquire) != phase) return;
            spin_pause();
        }
        while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase, std::memory_order_acquire);
    }

  private:
    static constexpr int SPINS = 2000;  // tens of microseconds: longer than a matrix product's imbalance
    const int n_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
};

/// One thread's place in its team.
struct Member {
    int index = 0;
    int count = 1;
    Barrier* barrier = nullptr;
    bool courteous = false;  // makes way for those who are due

    /// This member's share [first, second) of `total` items, in units of `grain`.
    std::pair<int, int> share(int total, int grain = 1) const {
        const int64_t units = (int64_t{total} + grain - 1) / grain;
        const auto at = [&](int i) {
            return static_cast<int>(std::min<int64_t>(total, units * i / count * grain));
        };
        return {at(index), at(index + 1)};
    }
    void meet() const {
        if (courteous) Appointment::let_pass();
        barrier->wait();
    }
};

/// n threads that walk through one function together: the calling thread is member 0, the others wait for it.
class Team {
  public:
    /// What a team is to threads that sleep until a given time.
    enum class Manner : uint8_t {
        plain,      // nothing: a real device's
        courteous,  // between operations it lets those pass who are due
        apart,      // the same; and its caller is one of them: no member, it sleeps while they work
    };
    /// `cores`: where the members are pinned (any of them), empty for anywhere. Throws std::system_error if
    /// the system refuses a thread.
    Team(int n_threads, std::vector<int> cores, Manner manner = Manner::plain);
    ~Team();
    /// Runs `job` on all members (always the same thread for the same member); returns when all are done. The
    /// job does not throw.
    void run(const std::function<void(const Member&)>& job);
    int size() const { return static_cast<int>(members_.size()); }

  private:
    void serve(int index);
    void stop();
    Barrier barrier_;
    std::vector<Member> members_;
    const std::vector<int> cores_;
    const bool apart_;
    const std::function<void(const Member&)>* job_ = nullptr;  // null: stop; written before round_ is raised
    Word round_;
    Word ended_;  // apart: the last round whose job is done
    std::vector<std::thread> threads_;
};

}  // namespace strata
