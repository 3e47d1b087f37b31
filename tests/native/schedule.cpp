#include "decode/schedule.h"

#include <deque>
#include <map>
#include <random>
#include <set>

#include "check.h"

using namespace strata;

/// Replays actions and facts against the rules of split-decoding, section 5, and stops at the first broken
/// one with the whole grid printed. It keeps its own books: nothing of Schedule's.
class Validator {
  public:
    explicit Validator(int n_stages) : n_stages_(n_stages), columns_(n_stages) {}

    /// `ahead`: the window before this one, 0 for none.
    void apply(const Action& action, const Window& window, uint32_t ahead, HandOffMode mode) {
        log(action.stage, action.str());
        auto& here = outstanding_[{action.stage, action.slot}];
        if (dropped_.contains(window.id)) fail(action, "a window that was given up");
        if (action.kind == Action::Kind::launch)
            launch(action, window, ahead, mode);
        else
            commit(action, window);
        ++(action.kind == Action::Kind::launch ? here.runs : here.commits);
    }
    void done(const Done& done) {
        log(done.stage, "done w" + std::to_string(done.window));
        auto& here = outstanding_[{done.stage, done.slot}];
        if (done.kind == Done::Kind::run) finished_.insert({done.stage, done.window});
        --(done.kind == Done::Kind::run ? here.runs : here.commits);
    }
    void verified(uint32_t window) { verified_.insert(window); }
    void drop(uint32_t window) { dropped_.insert(window); }
    bool committed(int stage, uint32_t window) const { return committed_.contains({stage, window}); }

  private:
    using At = std::pair<int, uint32_t>;  // (stage, window)
    void launch(const Action& action, const Window& window, uint32_t ahead, HandOffMode mode) {
        const int s = action.stage;
        const auto& here = outstanding_[{s, action.slot}];
        if (here.runs || here.commits)
            fail(action, "inputs staged into a slot on which a program is still queued");
        if (s + 1 < n_stages_ && outstanding_[{s + 1, action.slot}].runs)
            fail(action, "a hand-off written while a reader of it is outstanding");
        if (uint32_t& written = written_[{s, action.slot}]; s + 1 < n_stages_) {
            if (written && !dropped_.contains(written) && !finished_.contains({s + 1, written}))
                fail(action, "a hand-off written before its rows were read");
            written = window.id;
        }
        if (started_.contains({s, window.id})) fail(action, "launched twice");
        if (s > 0 && !started_.contains({s - 1, window.id})) fail(action, "launched before the stage ahead");
        if (s > 0 && !finished_.contains({s - 1, window.id})) {
            if (mode == HandOffMode::serial) fail(action, "serial, but its input is not there");
            if (window.kind == WindowKind::chunk) fail(action, "a chunk launched ahead");
            if (s > 1 && !finished_.contains({s - 2, window.id})) fail(action, "more than one stage ahead");
        }
        if (window.guess() && s + 1 == n_stages_) fail(action, "an unverified window on the last stage");
        if (ahead && window.kind != WindowKind::chunk) {
            if (!finished_.contains({s, ahead})) fail(action, "not a stage behind the window ahead");
            if (!committed_.contains({s, ahead})) fail(action, "the state before it is not secured");
        }
        started_.insert({s, window.id});
    }
    void commit(const Action& action, const Window& window) {
        const int s = action.stage;
        const bool before = committed_.contains({s, window.id});
        if (action.kind == Action::Kind::undo && !before) fail(action, "an undo of what was not committed");
        if (action.kind == Action::Kind::commit && before) fail(action, "committed twice");
        if (action.speculative && (verified_.contains(window.id) || action.rows != window.rows))
            fail(action, "speculative, but not whole or not before the verdict");
        if (action.speculative && s + 1 == n_stages_) fail(action, "speculative on the last stage");
        committed_.insert({s, window.id});
    }
    void log(int stage, std::string what) {
        for (auto& column : columns_) column.push_back("");
        columns_[stage].back() = std::move(what);
    }
    [[noreturn]] void fail(const Action& action, const std::string& rule) {
        std::string grid = rule + ": " + action.str() + "\n";
        for (size_t step = 0; step < columns_[0].size(); ++step) {
            for (auto& column : columns_) {
                std::string cell = column[step];
                cell.resize(28, ' ');
                grid += cell + "|";
            }
            grid += step + 1 == columns_[0].size() ? "  <-- here\n" : "\n";
        }
        throw test::Failure(grid);
    }
    struct Outstanding {
        int runs = 0, commits = 0;
    };
    const int n_stages_;
    std::vector<std::vector<std::string>> columns_;
    std::map<std::pair<int, int>, Outstanding> outstanding_;  // by (stage, slot)
    std::map<std::pair<int, int>, uint32_t> written_;         // whose rows lie in the hand-off behind it
    std::set<At> started_, finished_, committed_;
    std::set<uint32_t> verified_, dropped_;
};

/// How a run went.
struct Tally {
    int ahead = 0, kept = 0, rolled_back = 0, undone = 0, deepest = 0;
};

/// Drives a schedule with facts in a random order that in-order queues allow, and verdicts by chance: a guess
/// that was launched comes true with probability `keep`.
class Player {
  public:
    Player(int n_stages, int n_slots, int in_flight, Limits limits, WindowKind kind, double keep,
           unsigned seed)
        : n_stages_(n_stages),
          in_flight_(in_flight),
          limits_(limits),
          kind_(kind),
          keep_(keep),
          random_(seed),
          schedule_(n_stages, n_slots, last_id_),
          validator_(n_stages),
          queues_(n_stages) {}

    Tally play(int n_windows) {
        const uint32_t first = last_id_;
        int idle = 0;
        while (closed_ < n_windows || !schedule_.windows().empty()) {
            if (closed_ < n_windows) open();
            while (auto action = schedule_.next(limits_)) carry_out(*action);
            close();
            if (finish_one())
                idle = 0;
            else
                CHECK(++idle < 3);  // neither anything to launch nor anything running: a deadlock
        }
        while (finish_one()) {
        }
        CHECK(!schedule_.in_flight());
        CHECK(last_id_ - first >= static_cast<uint32_t>(n_windows));
        return tally_;
    }

  private:
    bool coin(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
    void open() {
        auto& windows = schedule_.windows();
        if (kind_ != WindowKind::verify) {
            const size_t most = kind_ == WindowKind::chunk ? n_stages_ + 1 : in_flight_;
            for (; windows.size() < most && opened_ < 30; ++opened_) schedule_.open(kind_, opened_ * 4, 4);
            return;
        }
        if (windows.empty()) schedule_.open(kind_, 0, 4);
        // Guesses come when their drafts come: not all at once.
        while (static_cast<int>(windows.size()) < in_flight_ && coin(0.7))
            schedule_.open(kind_, windows.back().end_position(), 4).fate = WindowFate::guess;
        if (coin(0.05)) {  // the gate
            size_t from = 1;
            while (from < windows.size() && windows[from].launched) ++from;
            for (size_t i = from; i < windows.size(); ++i) validator_.drop(windows[i].id);
            schedule_.drop_from(from);
        }
    }
    void carry_out(const Action& action) {
        const auto& windows = schedule_.windows();
        for (size_t i = 0; i < windows.size(); ++i)
            if (windows[i].id == action.window)
                validator_.apply(action, windows[i], i ? windows[i - 1].id : 0, limits_.mode);
        tally_.ahead += action.ahead;
        tally_.undone += action.kind == Action::Kind::undo;
        if (action.kind == Action::Kind::launch)
            CHECK(action.stage < limits_.spec_depth || !is_guess(action.window));
        queues_[action.stage].push_back(
            {action.kind == Action::Kind::launch ? Done::Kind::run : Done::Kind::commit, action.stage,
             action.window, action.slot});
    }
    bool is_guess(uint32_t id) const {
        for (const Window& w : schedule_.windows())
            if (w.id == id) return w.guess();
        return false;
    }
    void close() {
        auto& windows = schedule_.windows();
        while (!windows.empty() && windows.front().finished_on(n_stages_ - 1)) {
            const Window window = windows.front();
            if (kind_ == WindowKind::prompt && window.committed != (uint64_t{1} << n_stages_) - 1) return;
            if (kind_ == WindowKind::verify) verdict(window);
            schedule_.close();
            ++closed_;
        }
    }
    void verdict(const Window& window) {
        auto& windows = schedule_.windows();
        validator_.verified(window.id);
        const bool kept = windows.size() > 1 && windows[1].launched && coin(keep_);
        const int rows = kept ? window.rows : 1 + static_cast<int>(random_() % window.rows);
        if (kept) {
            ++tally_.kept;
            tally_.deepest = std::max(tally_.deepest, windows[1].depth);
            windows[1].fate = WindowFate::kept_after_fresh;
        } else {
            for (size_t i = 1; i < windows.size(); ++i) {
                tally_.rolled_back += windows[i].launched != 0;
                validator_.drop(windows[i].id);
                released_.insert(windows[i].id);
            }
            schedule_.drop_from(1);
        }
        const Window now = windows.front();
        for (int s = 0; s < n_stages_; ++s) {
            if (!now.committed_on(s))
                carry_out(schedule_.commit(now, s, rows));
            else if (rows < now.rows)
                carry_out(schedule_.undo(now, s, rows));
            CHECK(validator_.committed(s, window.id));
        }
    }
    /// A stage with work reports its oldest program; a reader launched ahead can't finish before its writer,
    /// unless it was released.
    bool finish_one() {
        std::vector<int> able;
        for (int s = 0; s < n_stages_; ++s) {
            if (queues_[s].empty()) continue;
            const Done& front = queues_[s].front();
            bool fed = true;
            if (front.kind == Done::Kind::run && s > 0 && !released_.contains(front.window))
                for (const Window& w : schedule_.windows())
                    if (w.id == front.window && !w.finished_on(s - 1)) fed = false;
            if (fed) able.push_back(s);
        }
        if (able.empty()) return false;
        const int s = able[random_() % able.size()];
        const Done done = queues_[s].front();
        queues_[s].pop_front();
        schedule_.done(done);
        validator_.done(done);
        return true;
    }

    const int n_stages_, in_flight_;
    const Limits limits_;
    const WindowKind kind_;
    const double keep_;
    std::mt19937 random_;
    uint32_t last_id_ = 100;
    Schedule schedule_;
    Validator validator_;
    std::vector<std::deque<Done>> queues_;
    std::set<uint32_t> released_;
    int opened_ = 0, closed_ = 0;
    Tally tally_;
};

constexpr Limits SERIAL{HandOffMode::serial}, OVERLAPPED{HandOffMode::overlapped};

TEST(schedule_holds_its_rules_in_any_order_of_facts) {
    for (int stages : {1, 2, 3, 4, 8, 32})  // a bit a stage: 32 at most
        for (unsigned seed = 0; seed < (stages < 32 ? 50 : 4); ++seed) {
            const auto drive = [&](Limits limits, WindowKind kind, int in_flight = 1) {
                return Player(stages, std::max(2, in_flight), in_flight, limits, kind, 0, seed)
                    .play(kind == WindowKind::verify ? 20 : 30);
            };
            CHECK_EQ(drive(SERIAL, WindowKind::verify).ahead, 0);
            CHECK_EQ(drive(OVERLAPPED, WindowKind::chunk).ahead, 0);
            CHECK_EQ(drive(OVERLAPPED, WindowKind::verify).ahead, 20 * (stages - 1));
            CHECK_EQ(drive(OVERLAPPED, WindowKind::prompt).ahead, 30 * (stages - 1));
            CHECK_EQ(drive(SERIAL, WindowKind::prompt, std::max(2, stages)).ahead, 0);
            drive(OVERLAPPED, WindowKind::prompt, 2);
        }
}

TEST(schedule_guesses_follow_one_stage_behind_in_any_order_of_facts) {
    for (int stages : {2, 3, 4, 8})
        for (int in_flight = 2; in_flight <= stages; ++in_flight)
            for (const Limits& limits : {SERIAL, OVERLAPPED, Limits{HandOffMode::serial, 1}})
                for (double keep : {0.0, 0.5, 1.0}) {
                    Tally all;
                    for (unsigned seed = 0; seed < 20; ++seed) {
                        const Tally t =
                            Player(stages, in_flight, in_flight, limits, WindowKind::verify, keep, seed)
                                .play(40);
                        all.kept += t.kept, all.rolled_back += t.rolled_back, all.undone += t.undone;
                        all.deepest = std::max(all.deepest, t.deepest);
                    }
                    if (keep > 0) CHECK(all.kept > 100);
                    if (keep < 1) CHECK(all.rolled_back > 100);
                    if (keep < 1) CHECK(all.undone > 100);
                    if (keep == 1) CHECK_EQ(all.undone, 0);
                    if (keep > 0 && limits.spec_depth > 1) CHECK(all.deepest >= std::min(in_flight - 1, 2));
                }
}

TEST(schedule_guesses_follow_on_the_most_stages_there_are) {
    for (int in_flight : {2, 5, 32})
        for (unsigned seed = 0; seed < 4; ++seed) {
            const Tally t =
                Player(32, in_flight, in_flight, OVERLAPPED, WindowKind::verify, 0.7, seed).play(60);
            CHECK(t.kept > 5);
            CHECK(t.rolled_back > 5);
            CHECK(t.undone > 5);
        }
}

TEST(schedule_a_guess_below_theta_waits_at_the_gate) {
    uint32_t last_id = 0;
    Schedule schedule(3, 3, last_id);
    const Limits gate{HandOffMode::serial, 32, 0.2f};
    std::string steps;
    const auto go = [&] {
        while (auto action = schedule.next(gate)) steps += action->str() + "; ";
    };
    schedule.open(WindowKind::verify, 0, 4);
    for (float estimate : {0.1f, 0.9f}) {
        Window& guess = schedule.open(WindowKind::verify, schedule.windows().back().end_position(), 4);
        guess.fate = WindowFate::guess;
        guess.estimate = estimate;
    }
    go();
    CHECK_EQ(steps, "s0 launch w1; ");
    CHECK(!schedule.at_gate(gate));  // what is ahead of it keeps it too
    schedule.done({Done::Kind::run, 0, 1, 1});
    steps.clear();
    go();
    CHECK_EQ(steps, "s1 launch w1; ");  // the window ahead is not committed for one that is not launched
    CHECK_EQ(schedule.at_gate(gate).value(), 1u);
    CHECK(!schedule.at_gate({HandOffMode::serial, 32, 0.1f}));
    CHECK(!schedule.at_gate({HandOffMode::serial, 0, 0.2f}));  // held back by the depth
    schedule.drop_from(1);
    steps.clear();
    go();
    CHECK_EQ(steps, "");
    CHECK(!schedule.at_gate(gate));
}

TEST(schedule_a_gated_guess_leaves_its_slot_to_the_next_window) {
    uint32_t last_id = 0;
    Schedule schedule(2, 2, last_id);
    CHECK_EQ(schedule.open(WindowKind::verify, 0, 4).slot, 1);
    Window& guess = schedule.open(WindowKind::verify, 4, 4);
    guess.fate = WindowFate::guess;
    CHECK_EQ(guess.slot, 0);
    schedule.drop_from(1);
    CHECK_EQ(schedule.open(WindowKind::verify, 2, 4).slot, 0);
    CHECK_EQ(last_id, 3u);  // but its id is not used again
}

TEST(schedule_commits_the_window_ahead_before_a_guess) {
    uint32_t last_id = 0;
    Schedule schedule(3, 3, last_id);
    std::string steps;
    const auto go = [&] {
        while (auto action = schedule.next(SERIAL)) steps += action->str() + "; ";
    };
    schedule.open(WindowKind::verify, 0, 4);
    schedule.open(WindowKind::verify, 4, 4).fate = WindowFate::guess;
    go();
    CHECK_EQ(steps, "s0 launch w1; ");
    schedule.done({Done::Kind::run, 0, 1, 1});
    steps.clear();
    go();
    CHECK_EQ(steps, "s1 launch w1; s0 commit w1 rows=4 speculative; s0 launch w2; ");
    schedule.done({Done::Kind::commit, 0, 1, 1});
    schedule.done({Done::Kind::run, 0, 2, 2});
    schedule.done({Done::Kind::run, 1, 1, 1});
    steps.clear();
    go();
    CHECK_EQ(steps, "s2 launch w1; s1 commit w1 rows=4 speculative; s1 launch w2; ");
    schedule.done({Done::Kind::commit, 1, 1, 1});
    schedule.done({Done::Kind::run, 1, 2, 2});
    steps.clear();
    go();
    CHECK_EQ(steps, "");  // the last stage never runs an unverified window
}

TEST(schedule_chunks_flow_one_stage_behind_another) {
    uint32_t last_id = 0;
    Schedule schedule(3, 2, last_id);
    for (int i = 0; i < 3; ++i) schedule.open(WindowKind::chunk, i * 16, 16);
    std::string launched;
    const auto launch = [&] {
        while (auto action = schedule.next(SERIAL)) launched += action->str() + "; ";
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
