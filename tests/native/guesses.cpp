#include <climits>
#include <map>
#include <random>
#include <thread>

#include "arms.h"
#include "base/clock.h"

using namespace strata;
using namespace strata::test;

/// Windows launched before the one ahead has its verdict: whatever becomes of them, text and state are those
/// of plain decoding.
TEST(session_guesses_change_nothing) {
    for (const char* model : {"micro-llama", "micro-qwen35-friendly"}) {
        const auto file = micro(model);
        for (const Sampling& sampling : {Sampling{}, SAMPLED}) {
            const Request request = replayed(file, {prompt(37), 60, sampling, {}, {}});
            const Outcome plain = run_arm(file, {}, request);
            GuessStats all;
            for (int stages : {2, 3, 4})
                for (int windows = 1; windows <= stages; ++windows)
                    for (bool overlap : {false, true})
                        for (DraftSource draft :
                             {DraftSource::mtp, DraftSource::lookup, DraftSource::replay}) {
                            Arm arm{stages, 1, 16, KvType::F16, overlap, draft, (stages + windows) % 5, 64};
                            arm.windows = windows;
                            arm.force_miss = stages == 4 && windows == 2 ? 3 : 0;
                            if (windows == 4 &&
                                draft == DraftSource::replay) {  // long enough that every window in flight is
                                                                 // launched
                                arm.pace.kind = PaceSpec::Kind::even;
                                arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = 3'000'000;
                            }
                            arm.spec_depth = stages == 4 && windows == 3 ? 1 : 32;
                            arm.chain_ahead = (stages + windows) % 2;
                            Engine engine(file, options_of(*file, arm));
                            set_switches(engine, arm);
                            engine.switches().replay_quality = 0.9f;
                            const Outcome outcome = run(*engine.session(), request);
                            check_same(plain, outcome, arm);
                            add(all, outcome.stats.guesses);
                            if (windows < 2) CHECK_EQ(outcome.stats.guesses.built, 0);
                        }
            CHECK(all.kept > 50);
            CHECK(all.rolled_back > 50);
            CHECK(all.forced > 0);
            CHECK(all.kept_at_depth[1] > 0 && all.kept_at_depth[2] > 0);
        }
    }
}

TEST(session_guesses_leave_the_draft_layer_as_serial_decoding_does) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request{prompt(21), 50, {}, {}, {}};
    Arm serial{2, 1, 16, KvType::F16, false, DraftSource::mtp, 3, 64};
    const Outcome expected = run_arm(file, serial, request);
    CHECK_EQ(expected.draft->first, 21 + 50 - 1);
    for (bool chain_ahead : {false, true}) {
        Arm arm = serial;
        arm.windows = 2, arm.chain_ahead = chain_ahead;
        CHECK(run_arm(file, arm, request).draft == expected.draft);
    }
}

TEST(session_gate_lets_no_guess_pass_above_certainty) {
    const auto file = micro("micro-qwen35-friendly");
    Arm arm{3, 1, 64, KvType::F16, false, DraftSource::mtp, 3, 64};
    arm.windows = 3, arm.theta = 2;
    const GuessStats g = run_arm(file, arm, {prompt(9), 40, {}, {}, {}}).stats.guesses;
    CHECK(g.gated > 0);
    CHECK_EQ(g.launched, 0);
}

TEST(session_forced_misses_are_never_kept) {
    const auto file = micro("micro-llama");
    Arm arm{3, 1, 64, KvType::F16, false, DraftSource::replay, 3, 64};
    arm.windows = 3, arm.force_miss = 1;
    const Request request = replayed(file, {prompt(12), 80, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request), outcome = run_arm(file, arm, request);
    check_same(plain, outcome, arm);
    CHECK(outcome.stats.guesses.launched > 10);
    CHECK_EQ(outcome.stats.guesses.kept, 0);
    CHECK(outcome.stats.undone == 0);  // every draft was right: whole windows stay as they were committed
}

TEST(session_programs_that_come_late_change_nothing) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(20), 40, SAMPLED, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    GuessStats all;
    for (unsigned seed = 0; seed < 20; ++seed) {
        Arm arm{2 + static_cast<int>(seed % 3),
                1,
                16,
                KvType::F16,
                seed % 2 == 1,
                seed % 4 < 2 ? DraftSource::mtp : DraftSource::replay,
                3,
                64};
        arm.windows = 2 + static_cast<int>(seed) % (arm.stages - 1);
        arm.chain_ahead = seed % 5 < 3;
        arm.pace.kind = PaceSpec::Kind::delayed;
        arm.pace.seed = seed;
        arm.pace.max_ns = 1'500'000;
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        engine.switches().replay_quality = 0.85f;
        const Outcome outcome = run(*engine.session(), request);
        check_same(plain, outcome, arm);
        add(all, outcome.stats.guesses);
    }
    CHECK(all.kept > 10);
    CHECK(all.rolled_back > 10);
}

TEST(session_everything_flipped_at_random_changes_nothing) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(12), 200, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    std::mt19937 random(11);
    GuessStats all;
    for (int stages : {2, 3, 4}) {
        Arm arm{stages, 1, 64, KvType::F16, false, DraftSource::mtp, 3, 64};
        arm.windows = stages;
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        for (int round = 0; round < 4; ++round) {
            auto session = engine.session();
            session->start(request);
            Switches& s = engine.switches();
            while (session->finish() == Finish::running) {
                switch (random() % 8) {
                    case 0:
                        s.overlap = !s.overlap;
                        break;
                    case 1:
                        s.pipeline_windows = static_cast<int>(random() % (stages + 1));
                        break;
                    case 2:
                        s.theta = (random() % 3) * 0.3f;
                        break;
                    case 3:
                        s.draft_max = static_cast<int>(random() % 8);
                        break;
                    case 4:
                        s.draft = static_cast<DraftSource>(random() % 4);
                        break;
                    case 5:
                        s.draft_min_p = (random() % 3) * 0.3f;
                        break;
                    case 6:
                        s.chain_ahead = !s.chain_ahead;
                        break;
                    case 7:
                        s.spec_depth = static_cast<int>(random() % 4);
                        break;
                }
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            }
            check_same(plain, {session->tokens(), session->fingerprint(), {}, session->finish(), {}}, arm);
            add(all, session->stats().guesses);
        }
    }
    CHECK(all.kept > 10);
    CHECK(all.rolled_back > 10);
}

TEST(session_ends_in_any_state_as_the_serial_one) {
    const auto file = micro("micro-qwen35-friendly");
    // Every length ends another window at another row; guesses are in flight then.
    for (int wanted = 1; wanted <= 24; ++wanted) {
        Request request{prompt(15), wanted, {}, {}, {}};
        const Outcome plain = run_arm(file, {}, request);
        request.replay.assign(plain.tokens.begin() + 15, plain.tokens.end());
        request.replay.resize(60, 7);
        Arm arm{3, 1, 64, KvType::F16, wanted % 2 == 0, DraftSource::replay, wanted % 4, 64};
        arm.windows = 3;
        check_same(plain, run_arm(file, arm, request), arm);
    }
    // The context as the limit, and an end token in the middle of a window.
    Request request = replayed(file, {prompt(230), 0, {}, {}, {}});
    const Outcome full = run_arm(file, {}, request);
    CHECK(full.finish == Finish::context);
    for (int draft_max : {0, 1, 3, 7}) {
        Arm arm{3, 1, 64, KvType::F16, true, DraftSource::replay, draft_max, 64};
        arm.windows = 3;
        check_same(full, run_arm(file, arm, request), arm);
        Request ended = request;
        ended.end_tokens = {full.tokens[230 + 9]};
        check_same(run_arm(file, {}, ended), run_arm(file, arm, ended), arm);
    }
}

TEST(session_cancelled_among_guesses_can_go_on) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(40), 120, {}, {}, {}});
    const Outcome whole = run_arm(file, {}, request);
    std::mt19937 random(3);
    int cancelled = 0;
    for (int round = 0; round < 30; ++round) {
        Arm arm{3, 1, 8, KvType::F16, round % 2 == 0, DraftSource::replay, 3, 64};
        arm.windows = 3;
        if (round % 3 == 0) arm.pace.kind = PaceSpec::Kind::delayed, arm.pace.seed = round;
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        auto session = engine.session();
        session->start(request);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 9000));
        session->cancel();
        while (session->finish() == Finish::running) session->wait(1);
        const auto tokens = session->tokens();
        const int written = static_cast<int>(tokens.size()) - 40;
        if (session->finish() != Finish::cancel || written >= 120) continue;
        ++cancelled;
        check_same(whole, run(*session, {tokens, 120 - written, {}, {}, {}}), arm);
    }
    CHECK(cancelled > 5);
}

TEST(session_errors_among_guesses_end_it_and_the_engine_takes_another) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(12), 60, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    for (int stage : {0, 1, 2})
        for (bool overlap : {false, true})
            for (int after : {3, 6, 9}) {
                Arm arm{3, 1, 64, KvType::F16, overlap, DraftSource::replay, 3, 64};
                arm.windows = 3;
                Engine engine(file, options_of(*file, arm));
                set_switches(engine, arm);
                engine.split().stages[stage]->inject_error(after);
                auto session = engine.session();
                const uint64_t start = now_ns();
                session->start(request);
                while (session->finish() == Finish::running) session->wait(1);
                if (session->finish() == Finish::error) {
                    CHECK(session->error().find("[stage " + std::to_string(stage) + "]") == 0);
                    CHECK(now_ns() - start < 10'000'000'000);
                }
                engine.split().stages[stage]->inject_error(-1);
                check_same(plain, run(*engine.session(), request), arm);
            }
}

TEST(session_watchdog_names_what_does_not_move_and_the_engine_goes_on) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(12), 60, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    for (int stage : {0, 1, 2})
        for (bool overlap : {false, true}) {
            Arm arm{3, 1, 64, KvType::F16, overlap, DraftSource::replay, 3, 64};
            arm.windows = 3;
            EngineOptions options = options_of(*file, arm);
            options.watchdog_s = 0.3;
            Engine engine(file, options);
            set_switches(engine, arm);
            auto session = engine.session();
            engine.split().stages[stage]->inject_stall();
            session->start(request);
            while (session->finish() == Finish::running) session->wait(1);
            CHECK(session->finish() == Finish::error);
            const std::string error = session->error();
            CHECK(error.find("[watchdog] nothing has moved for 300 ms") == 0);
            CHECK(error.find("stage " + std::to_string(stage) + ": window ") != std::string::npos);
            if (overlap && stage < 2)
                CHECK(error.find("ready word of stage " + std::to_string(stage) + ": wanted") !=
                      std::string::npos);
            check_same(plain, run(*engine.session(), request), arm);
        }
}

TEST(session_refuses_windows_that_cannot_be_in_flight) {
    const auto file = micro("micro-llama");
    struct Case {
        int stages, allocated, asked, in_force;
    };
    for (const Case& c : {Case{1, 2, 2, 0},
                          {2, 2, 1, 1},
                          {3, 3, 1, 0},
                          {3, 3, 3, 3},
                          {3, 2, 3, 2},
                          {2, 0, 2, 0},
                          {2, 5, 5, 2},
                          {2, 1, 2, 0}}) {
        Arm arm{c.stages, 1, 64, KvType::F16, false, DraftSource::lookup, 3, 64};
        EngineOptions options = options_of(*file, arm);
        options.pipeline_max = c.allocated;
        Engine engine(file, options);
        engine.switches().pipeline_windows = c.asked;
        auto session = engine.session();
        run(*session, {prompt(5), 6, {}, {}, {}});
        CHECK_EQ(session->in_force().pipeline_windows, c.in_force);
        CHECK_EQ(engine.notices().take().size(), size_t(c.asked != c.in_force));
    }
}

namespace {

/// Verdicts in which each follows each: a < rows = so many drafts accepted; rows = all of them, but the bonus
/// is not what was guessed.
std::vector<int> every_pair_of_verdicts(int rows) {
    std::vector<int> verdicts;
    for (int x = 0; x <= rows; ++x)
        for (int y = x; y <= rows; ++y) verdicts.insert(verdicts.end(), {x, y});
    return verdicts;
}

/// A plain text with a wrong token wherever drafts of windows of `rows` rows are to meet these verdicts.
std::vector<int32_t> with_wrong_tokens(std::vector<int32_t> text, const std::vector<int>& verdicts, int rows,
                                       int n_vocab) {
    int row0 = 0;
    for (int verdict : verdicts) {
        if (verdict != rows - 1) {
            int32_t& token = text[row0 + (verdict < rows ? verdict + 1 : rows)];
            token = (token + 1) % n_vocab;
        }
        row0 += std::min(verdict, rows - 1) + 1;
    }
    return text;
}

/// The same text under these verdicts, over and over, on two and three stages, serial and overlapped.
/// Returns, by verdict, how many had a launched guess behind them.
std::map<int, int> check_verdicts(const std::shared_ptr<const GgufFile>& file, const Request& plain_request,
                                  const Outcome& plain, const std::vector<int>& verdicts, int rows,
                                  uint64_t forward_ns) {
    const std::vector<int32_t> text(plain.tokens.begin() + 12, plain.tokens.end());
    std::map<int, int> with_guess;
    for (int stages : {2, 3})
        for (bool overlap : {false, true}) {
            Arm arm{stages, 1, 64, KvType::F16, overlap, DraftSource::replay, rows - 1, 64};
            arm.windows = stages;
            arm.pace.kind = PaceSpec::Kind::even;
            arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = forward_ns;
            Engine engine(file, options_of(*file, arm));
            set_switches(engine, arm);
            Request request = plain_request;
            request.replay = with_wrong_tokens(text, verdicts, rows, engine.model().dims().n_vocab);
            check_same(plain, run(*engine.session(), request), arm);

            std::vector<Event> events;
            engine.recorder().drain(events);
            std::vector<int> accepted;
            int missed = -1;  // accepted drafts of the window whose guess is not kept
            for (const Event& event : events) {
                if (event.kind == EventKind::miss) missed = event.a == 2 ? rows : 0;
                if (event.kind == EventKind::guess_kept) ++with_guess[rows - 1];
                if (event.kind != EventKind::verdict) continue;
                accepted.push_back(event.a);
                if (missed >= 0) ++with_guess[missed == rows ? rows : event.a];
                missed = -1;
            }
            CHECK(accepted.size() > verdicts.size());
            for (size_t i = 0; i < verdicts.size(); ++i)  // behind the first window, of one row
                CHECK_EQ(accepted[i + 1], std::min(verdicts[i], rows - 1));
        }
    return with_guess;
}

}  // namespace

TEST(guesses_every_verdict_with_some_in_flight_changes_nothing) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request{prompt(12), 200, {}, {}, {}};
    const Outcome plain = run_arm(file, {}, request);
    for (int rows = 1; rows <= 5; ++rows) {
        const std::vector<int> verdicts = every_pair_of_verdicts(rows);
        const auto seen = [&](uint64_t forward_ns) {
            auto with_guess = check_verdicts(file, request, plain, verdicts, rows, forward_ns);
            int least = INT_MAX;
            for (int verdict = 0; verdict <= rows; ++verdict) least = std::min(least, with_guess[verdict]);
            return least > 4;
        };
        // Long enough that guesses are launched: on a slow machine, or under a sanitizer, longer.
        CHECK(seen(1'000'000) || seen(4'000'000) || seen(16'000'000));
    }
}

TEST(guesses_gated_one_takes_those_behind_it_along) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request{prompt(21), 120, {}, {}, {}};
    const Outcome plain = run_arm(file, {}, request);
    int launched = 0, gated = 0, taken_along = 0;
    // Long enough that guesses wait for stage 0 one behind another, on a slow machine as well.
    for (uint64_t lasts_ns = 1'500'000; taken_along <= 3 && lasts_ns < 100'000'000; lasts_ns *= 4)
        for (int windows : {3, 4})
            for (float theta : {0.005f, 0.02f}) {
                Arm arm{4, 1, 64, KvType::F16, false, DraftSource::mtp, 2, 64};
                arm.windows = windows;
                arm.theta = theta;
                arm.pace.kind = PaceSpec::Kind::even;
                arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = lasts_ns;
                Engine engine(file, options_of(*file, arm));
                set_switches(engine, arm);
                const Outcome outcome = run(*engine.session(), request);
                check_same(plain, outcome, arm);
                launched += outcome.stats.guesses.launched, gated += outcome.stats.guesses.gated;
                std::vector<Event> events;
                engine.recorder().drain(events);
                for (const Event& event : events) {
                    // Whatever its own estimate, it stood behind one that was below theta.
                    taken_along += event.kind == EventKind::guess_gated && event.a >= theta * 1e6f;
                    if (event.kind == EventKind::guess_launched) CHECK(event.b >= theta * 1e6f - 1);
                }
            }
    CHECK(launched > 10);
    CHECK(gated > 10);
    CHECK(taken_along > 3);
}

TEST(guesses_error_in_the_draft_layer_ends_it_and_the_engine_takes_another) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request{prompt(12), 60, {}, {}, {}};
    const Outcome plain = run_arm(file, {}, request);
    for (int windows : {0, 3})
        for (bool overlap : {false, true})
            for (bool amid : {false, true}) {
                Arm arm{3, 1, 64, KvType::F16, overlap, DraftSource::mtp, 3, 64};
                arm.windows = windows;
                arm.pace.kind = PaceSpec::Kind::even;
                arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = 1'000'000;
                Engine engine(file, options_of(*file, arm));
                set_switches(engine, arm);
                auto session = engine.session();
                if (!amid) engine.split().mtp->inject_error();
                const uint64_t start = now_ns();
                session->start(request);
                session->wait(10);
                if (amid) engine.split().mtp->inject_error();
                while (session->finish() == Finish::running) session->wait(1);
                CHECK(session->finish() == Finish::error);
                CHECK(session->error().find("[draft layer] window ") == 0);
                CHECK(now_ns() - start <
                      10'000'000'000);  // readers were released: nobody waited for the bound
                CHECK_THROWS(session->start(request), "ended by an error");
                const GuessStats g = session->stats().guesses;
                CHECK_EQ(g.launched, g.kept + g.rolled_back + g.ended);
                check_same(plain, run(*engine.session(), request), arm);
            }
}

TEST(guesses_fewer_windows_are_allocated_where_memory_lacks) {
    const auto file = micro("micro-qwen35-friendly");
    Arm arm{4, 1, 16, KvType::F16, false, DraftSource::replay, 3, 64};
    arm.windows = 4;
    const Request request = replayed(file, {prompt(12), 40, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    const auto bytes = [](Engine& engine, int windows) {
        uint64_t sum = 0;
        for (auto& stage : engine.split().stages) sum += stage->window_bytes(windows, windows);
        return sum;
    };
    EngineOptions options = options_of(*file, arm);
    options.chunk = 16;
    {
        Engine engine(file, options);
        uint64_t allocated = 0;
        for (auto& stage : engine.split().stages) allocated += stage->slot_bytes() + stage->state_bytes();
        CHECK_EQ(allocated, bytes(engine, 4));  // the estimate is what is taken
        CHECK(engine.notices().take().empty());
    }
    for (int fit : {2, 3, 4}) {
        Engine measure(file, options);
        for (uint64_t given : {bytes(measure, fit), bytes(measure, fit + 1) - 1}) {
            options.window_memory = given;
            Engine engine(file, options);
            options.window_memory = 0;
            CHECK_EQ(engine.pipeline_max(), fit);
            const auto notices = engine.notices().take();
            CHECK_EQ(notices.size(), size_t(fit < 4));
            if (fit < 4)
                CHECK(notices[0].find("--pipeline-max 4: " + std::to_string(fit) +
                                      " windows in flight allocated: 4 need ") == 0);
            set_switches(engine, arm);
            auto session = engine.session();
            check_same(plain, run(*session, request), arm);
            CHECK_EQ(session->in_force().pipeline_windows, fit);
        }
    }
    options.window_memory = 1;  // two windows are there without pipelining too
    CHECK_EQ(Engine(file, options).pipeline_max(), 2);
}

TEST(guesses_are_kept_beside_the_draft_layer_at_any_depth) {
    // At full depth the last stage begins with the verdict, as the chain's next steps do: a buffer that both
    // use shows there first. Replayed drafts keep guesses; the real chain runs all the same.
    const auto file = micro("micro-qwen35-friendly");
    const Request request = replayed(file, {prompt(21), 100, {}, {}, {}});
    const Outcome plain = run_arm(file, {}, request);
    std::string differing;
    for (int depth : {0, 1, 2}) {
        int texts = 0, kept = 0;
        for (int round = 0; round < 4; ++round) {
            Arm arm{3, 1, 16, KvType::F16, round % 2 == 1, DraftSource::replay, 3 + round, 64};
            arm.windows = 3;
            arm.spec_depth = depth;
            arm.pace.kind = PaceSpec::Kind::even;
            arm.pace.lasts_ns[static_cast<int>(ProgramKind::forward)] = 1'000'000;
            const Outcome outcome = run_arm(file, arm, request);
            texts += outcome.tokens != plain.tokens || outcome.state != plain.state;
            kept += outcome.stats.guesses.kept;
        }
        if (texts) differing += " depth " + std::to_string(depth) + ": " + std::to_string(texts) + " of 4;";
        CHECK_EQ(kept > 20, depth > 0);
    }
    CHECK_EQ(differing, "");
}
