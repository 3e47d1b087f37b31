#include "decode/schedule.h"

#include <deque>
#include <map>
#include <random>

#include "check.h"

using namespace strata;

/// Replays actions and facts against the rules of split-decoding, section 5, and stops at the first broken
/// one with the whole grid printed. It keeps its own books: nothing of Schedule's.
class Validator {
  public:
    Validator(int n_stages, int n_slots)
        : n_stages_(n_stages), queued_(n_stages, std::vector<std::string>()) {
        (void)n_slots;
    }
    void apply(const Action& action, const Window& window, HandOffMode mode) {
        log(action.stage, action.str());
        auto& here = outstanding_[{action.stage, action.slot}];
        if (action.kind == Action::Kind::commit) {
            ++here.first;
            return;
        }
        if (here.first || here.second)
            fail(action, "inputs staged into a slot on which a program is still queued");
        if (action.stage + 1 < n_stages_ && outstanding_[{action.stage + 1, action.slot}].second)
            fail(action, "a hand-off written while a reader of it is outstanding");
        if (action.stage > 0 && !started_[{action.stage - 1, window.id}])
            fail(action, "launched before the stage ahead");
        if (action.stage > 0 && !finished_[{action.stage - 1, window.id}]) {
            if (mode == HandOffMode::serial) fail(action, "serial, but its input is not there");
            if (window.kind == WindowKind::chunk) fail(action, "a chunk launched ahead");
            if (action.stage > 1 && !finished_[{action.stage - 2, window.id}])
                fail(action, "more than one stage ahead");
        }
        if (started_[{action.stage, window.id}]) fail(action, "launched twice");
        started_[{action.stage, window.id}] = true;
        ++here.second;
    }
    void done(const Done& done) {
        log(done.stage, "done w" + std::to_string(done.window));
        auto& here = outstanding_[{done.stage, done.slot}];
        if (done.kind == Done::Kind::run) {
            finished_[{done.stage, done.window}] = true;
            --here.second;
        } else {
            --here.first;
        }
    }

  private:
    void log(int stage, std::string what) {
        for (auto& column : queued_) column.push_back("");
        queued_[stage].back() = std::move(what);
    }
    [[noreturn]] void fail(const Action& action, const std::string& rule) {
        std::string grid = rule + ": " + action.str() + "\n";
        for (size_t step = 0; step < queued_[0].size(); ++step) {
            for (auto& column : queued_) {
                std::string cell = column[step];
                cell.resize(24, ' ');
                grid += cell + "|";
            }
            grid += step + 1 == queued_[0].size() ? "  <-- here\n" : "\n";
        }
        throw test::Failure(grid);
    }
    const int n_stages_;
    std::vector<std::vector<std::string>> queued_;
    std::map<std::pair<int, int>, std::pair<int, int>> outstanding_;  // (stage, slot) -> commits, runs
    std::map<std::pair<int, uint32_t>, bool> started_, finished_;
};

/// Drives a schedule with facts in a random order that in-order queues allow; returns the launches ahead.
static int drive(int n_stages, HandOffMode mode, WindowKind kind, int n_windows, unsigned seed) {
    std::mt19937 random(seed);
    uint32_t last_id = 100;
    Schedule schedule(n_stages, 2, last_id);
    Validator validator(n_stages, 2);
    std::vector<std::deque<Done>> queues(n_stages);
    int opened = 0, closed = 0, ahead = 0, idle_turns = 0;
    while (closed < n_windows) {
        const size_t most = kind == WindowKind::chunk ? n_stages + 1 : 1;
        while (opened < n_windows && schedule.windows().size() < most) {
            schedule.open(kind, opened * 4, 4);
            ++opened;
        }
        while (auto action = schedule.next({mode})) {
            const Window* window = nullptr;
            for (const Window& w : schedule.windows())
                if (w.id == action->window) window = &w;
            validator.apply(*action, *window, mode);
            ahead += action->ahead;
            queues[action->stage].push_back({Done::Kind::run, action->stage, action->window, action->slot});
        }
        // One stage with work reports its oldest program; a reader launched ahead can't finish before its
        // writer.
        std::vector<int> able;
        for (int s = 0; s < n_stages; ++s) {
            if (queues[s].empty()) continue;
            const Done& front = queues[s].front();
            bool fed = true;
            if (front.kind == Done::Kind::run && s > 0)
                for (const Window& w : schedule.windows())
                    if (w.id == front.window && !w.finished_on(s - 1)) fed = false;
            if (fed) able.push_back(s);
        }
        if (able.empty()) {
            CHECK(++idle_turns < 2);  // neither anything to launch nor anything running: a deadlock
            continue;
        }
        const int s = able[random() % able.size()];
        const Done done = queues[s].front();
        queues[s].pop_front();
        schedule.done(done);
        validator.done(done);
        while (!schedule.windows().empty() && schedule.windows().front().finished_on(n_stages - 1)) {
            const Window window = schedule.windows().front();
            if (kind != WindowKind::chunk)
                for (int stage = 0; stage < n_stages; ++stage) {
                    validator.apply(schedule.commit(window, stage, 2), window, mode);
                    queues[stage].push_back({Done::Kind::commit, stage, window.id, window.slot});
                }
            schedule.close();
            ++closed;
        }
    }
    CHECK_EQ(last_id, 100u + n_windows);
    for (int s = 0; s < n_stages; ++s)
        for (; !queues[s].empty(); queues[s].pop_front()) schedule.done(queues[s].front());
    CHECK(!schedule.in_flight());
    return ahead;
}

TEST(schedule_holds_its_rules_in_any_order_of_facts) {
    for (int stages : {1, 2, 3, 4, 8})
        for (unsigned seed = 0; seed < 50; ++seed) {
            CHECK_EQ(drive(stages, HandOffMode::serial, WindowKind::verify, 20, seed), 0);
            CHECK_EQ(drive(stages, HandOffMode::overlapped, WindowKind::chunk, 20, seed), 0);
            const int ahead = drive(stages, HandOffMode::overlapped, WindowKind::verify, 20, seed);
            CHECK_EQ(ahead, 20 * (stages - 1));
            CHECK_EQ(drive(stages, HandOffMode::overlapped, WindowKind::prompt, 20, seed), 20 * (stages - 1));
        }
}

TEST(schedule_chunks_flow_one_stage_behind_another) {
    uint32_t last_id = 0;
    Schedule schedule(3, 2, last_id);
    for (int i = 0; i < 3; ++i) schedule.open(WindowKind::chunk, i * 16, 16);
    std::string launched;
    const auto launch = [&] {
        while (auto action = schedule.next({HandOffMode::serial})) launched += action->str() + "; ";
    };
    launch();
    CHECK_EQ(launched, "s0 launch w1; s0 launch w2; ");
    launched.clear();
    schedule.done({Done::Kind::run, 0, 1, 3});
    launch();
    // Chunk 3 takes chunk 1's slot on stage 0, but only when stage 1 has read that slot's hand-off.
    CHECK_EQ(launched, "s1 launch w1; ");
    launched.clear();
    schedule.done({Done::Kind::run, 1, 1, 3});
    launch();
    CHECK_EQ(launched, "s2 launch w1; s0 launch w3; ");
}

TEST(accept_counts_leading_agreement) {
    const std::vector<int32_t> picks{5, 6, 7, 8};
    CHECK_EQ(accept(std::vector<int32_t>{5, 6, 7}, picks), 3);
    CHECK_EQ(accept(std::vector<int32_t>{5, 9, 7}, picks), 1);
    CHECK_EQ(accept(std::vector<int32_t>{9, 6, 7}, picks), 0);
    CHECK_EQ(accept(std::vector<int32_t>{}, std::vector<int32_t>{5}), 0);
}

TEST(count_tokens_cuts_at_an_end_and_at_what_is_wanted) {
    const std::vector<int32_t> picks{5, 6, 0, 8}, ends{0, 99};
    CHECK_EQ(count_tokens(picks, 3, ends, 10), 3);  // the end token counts
    CHECK_EQ(count_tokens(picks, 1, ends, 10), 2);  // picks behind the verdict don't
    CHECK_EQ(count_tokens(picks, 3, {}, 10), 4);
    CHECK_EQ(count_tokens(picks, 3, ends, 2), 2);
}

TEST(most_rows_never_exceeds_what_is_wanted_or_fits) {
    CHECK_EQ(most_rows(4, 100, 0, 4096), 5);
    CHECK_EQ(most_rows(4, 3, 0, 4096), 3);
    CHECK_EQ(most_rows(7, 100, 4094, 4096), 2);
    CHECK_EQ(most_rows(7, 100, 4095, 4096), 1);
    CHECK_EQ(most_rows(0, 100, 0, 4096), 1);
}
