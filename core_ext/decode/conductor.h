#pragma once

#include <array>
#include <memory>
#include <vector>

#include "decode/mtp.h"
#include "decode/schedule.h"

namespace strata {

/// The stages of a split with their boundaries: what a conductor plays on. Made at load, idle between
/// requests.
struct Split {
    std::vector<std::unique_ptr<Stage>> stages;
    std::vector<std::vector<std::unique_ptr<HandOff>>> boundaries;  // [n_stages - 1][slot]
    std::unique_ptr<Mtp> mtp;                                       // null without a draft layer
    uint32_t last_window = 0;  // the newest window id: an epoch, never used twice in the life of a split
    Stage& last() { return *stages.back(); }
};

/// Carries the schedule's decisions out on the stages and brings back what they report: the one place that
/// launches.
class Conductor {
  public:
    Conductor(Split& split, int n_slots, int n_states, Word& done, EventLane& events);

    Schedule& schedule() { return schedule_; }
    const Schedule& schedule() const { return schedule_; }

    /// Notes what has finished on every stage. Throws Error with the text of a stage that failed.
    void note_finished();
    /// Carries out all that may be done now.
    void launch(const Limits& limits);
    /// After the oldest window's verdict: on every stage its first `rows` rows and no more are committed.
    /// Where it was committed whole before, it is left so, or undone.
    void settle(const Window& window, int rows);
    /// The windows from `index` on are given up: their readers go, their programs stop early, the recurrent
    /// states are those before the first of them. Those ahead have run to their end, or go next: programs of
    /// theirs would stop early too.
    void drop_from(size_t index);
    /// Sleeps until something has finished since note_finished(), or somebody called (Word `done`). Throws
    /// Error, with what every stage waits for, if nothing moves for the watchdog's time.
    void wait();
    void set_watchdog(uint64_t ns) { watchdog_ns_ = ns; }
    int undone() const { return undone_; }
    /// The recurrent state that the next program on a stage will find.
    int state(int stage) const { return state_[stage]; }
    /// Waits until nothing is queued anywhere. Throws like note_finished().
    void drain();
    /// After an error: lets every waiting reader go, waits until all queues are empty, forgets what was in
    /// flight.
    void abandon() noexcept;
    /// The stages begin with an empty state. Nothing may be in flight.
    void clear_state();

    /// Where chunks take their tokens from; window rows are copied into the inputs.
    void set_chunk_tokens(const int32_t* line) { chunk_tokens_ = line; }

  private:
    /// What each stage has still to report, oldest first: a ring, since queues are in order.
    struct Pending {
        std::array<std::pair<Ticket, Done>, 64> entries;
        uint64_t first = 0, next = 0;
        bool empty() const { return first == next; }
    };
    void carry_out(const Action& action, const Limits& limits);
    void stage_inputs(const Action& action, const Window& window, bool pipelined);
    void commit_rows(const Action& action);
    void undo_rows(const Action& action);
    void submit(int stage, Program& program, const Done& done);
    void check_failures();
    uint64_t progress() const;
    void sleep();
    std::string stall_report() const;

    Split& split_;
    const int n_states_;
    Word& done_;
    EventLane& events_;
    Schedule schedule_;
    std::vector<Pending> pending_;
    std::vector<int> state_;
    const int32_t* chunk_tokens_ = nullptr;
    uint64_t watchdog_ns_ = WAIT_BOUND_NS + 5'000'000'000;
    uint64_t seen_ = 0;
    int undone_ = 0;
};

}  // namespace strata
