#include "decode/session.h"

#include <optional>
#include <random>
#include <thread>

#include "base/clock.h"
#include "check.h"
#include "engine.h"

using namespace strata;

namespace {

const std::string DATA = STRATA_TEST_DATA;

std::shared_ptr<const GgufFile> micro(const char* name) {
    return GgufFile::open(DATA + "/oracles/" + name + ".gguf");
}

struct Arm {
    int stages = 1;
    int threads = 1;
    int chunk = 64;
    KvType kv = KvType::F16;
    bool overlap = false;
    DraftSource draft = DraftSource::none;
    int draft_max = 4;
    int short_read = 64;
    int windows = 0;  // in flight
    float theta = 0;
    int force_miss = 0;
    int spec_depth = 32;
    bool chain_ahead = true;
    PaceSpec pace{};
};

EngineOptions options_of(const GgufFile& file, const Arm& arm) {
    EngineOptions o;
    const int n_layers =
        static_cast<int>(
            file.integer(std::string(file.text("general.architecture")) + ".block_count", 1, 999)) -
        static_cast<int>(file.integer_or(
            std::string(file.text("general.architecture")) + ".nextn_predict_layers", 0, 0, 9));
    for (int s = 1; s < arm.stages; ++s) o.split.push_back(n_layers * s / arm.stages);
    o.devices.assign(arm.stages, CpuSpec{arm.threads, {}, arm.pace});
    o.pipeline_max = arm.windows;
    o.context = 256;
    o.chunk = arm.chunk;
    o.kv_type = arm.kv;
    o.event_capacity = 1 << 14;
    return o;
}

void set_switches(Engine& engine, const Arm& arm) {
    engine.switches().overlap = arm.overlap;
    engine.switches().draft = arm.draft;
    engine.switches().draft_max = arm.draft_max;
    engine.switches().short_read = arm.short_read;
    engine.switches().pipeline_windows = arm.windows;
    engine.switches().theta = arm.theta;
    engine.switches().force_miss = arm.force_miss;
    engine.switches().spec_depth = arm.spec_depth;
    engine.switches().chain_ahead = arm.chain_ahead;
    engine.switches().keep_drafting = true;
}

std::vector<int32_t> prompt(int n) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < n; ++i) tokens.push_back((i * i + 3 * i) % 97 + 5);
    return tokens;
}

/// Text and state of a request.
struct Outcome {
    std::vector<int32_t> tokens;
    std::vector<uint64_t> state;
    std::optional<std::pair<int, uint64_t>> draft;
    Finish finish = Finish::running;
    RequestStats stats;
};

Outcome run(Session& session, Request request) {
    session.start(std::move(request));
    while (session.finish() == Finish::running) session.wait(10);
    if (session.finish() == Finish::error) throw std::runtime_error(session.error());
    return {session.tokens(), session.fingerprint(), session.draft_fingerprint(), session.finish(),
            session.stats()};
}

Outcome run_arm(const std::shared_ptr<const GgufFile>& file, const Arm& arm, const Request& request) {
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    return run(*engine.session(), request);
}

std::string name(const Arm& a) {
    return "stages " + std::to_string(a.stages) + " threads " + std::to_string(a.threads) + " chunk " +
           std::to_string(a.chunk) + " overlap " + std::to_string(a.overlap) + " draft " +
           std::to_string(static_cast<int>(a.draft)) + " max " + std::to_string(a.draft_max) + " short " +
           std::to_string(a.short_read) + " windows " + std::to_string(a.windows) + " theta " +
           std::to_string(a.theta) + " force-miss " + std::to_string(a.force_miss) + " depth " +
           std::to_string(a.spec_depth) + " chain-ahead " + std::to_string(a.chain_ahead) + " pace " +
           a.pace.label();
}

void check_same(const Outcome& expected, const Outcome& got, const Arm& arm) {
    if (got.tokens != expected.tokens) test::fail(__FILE__, __LINE__, "text differs: " + name(arm));
    if (got.state != expected.state) test::fail(__FILE__, __LINE__, "state differs: " + name(arm));
    if (got.finish != expected.finish) test::fail(__FILE__, __LINE__, "finish differs: " + name(arm));
}

}  // namespace

TEST(session_text_and_state_never_depend_on_how) {
    for (const char* model : {"micro-llama", "micro-qwen35-friendly"}) {
        const auto file = micro(model);
        for (const Sampling& sampling : {Sampling{}, Sampling{0.8f, 0, 0.95f, 0, 1.1f, 7}}) {
            const Request request{prompt(37), 40, sampling, {}, {}};
            const Outcome plain = run_arm(file, {}, request);
            CHECK_EQ(plain.stats.generated, 40);
            check_same(plain, run_arm(file, {}, request), {});  // the serial arm twice
            for (int stages : {1, 2, 3, 4})
                for (bool overlap : {false, true})
                    for (DraftSource draft : {DraftSource::none, DraftSource::mtp, DraftSource::lookup}) {
                        Arm arm{stages,
                                stages % 2 + 1,
                                16,
                                KvType::F16,
                                overlap,
                                draft,
                                1 + (stages + overlap) % 7,
                                stages == 3 ? 0 : 64};
                        check_same(plain, run_arm(file, arm, request), arm);
                    }
            for (int draft_max = 1; draft_max <= 7; ++draft_max) {
                Arm arm{2, 1, 64, KvType::F16, true, DraftSource::mtp, draft_max, 64};
                check_same(plain, run_arm(file, arm, request), arm);
            }
            for (int chunk : {1, 5, 16, 512}) {
                Arm arm{3, 2, chunk, KvType::F16, false, DraftSource::mtp, 4, 0};
                check_same(plain, run_arm(file, arm, request), arm);
            }
        }
    }
}

TEST(session_drafts_are_accepted_where_the_layer_agrees) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome outcome =
        run_arm(file, {2, 1, 64, KvType::F16, true, DraftSource::mtp, 4, 64}, {prompt(9), 60, {}, {}, {}});
    CHECK(outcome.stats.accepted > 10);
    CHECK(outcome.stats.accepted < outcome.stats.drafted);
    CHECK_EQ(outcome.stats.windows_overlapped, outcome.stats.windows);
}

TEST(session_goes_on_where_it_stopped) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome whole = run_arm(file, {}, {prompt(12), 30, {}, {}, {}});
    Arm arm{2, 1, 64, KvType::F16, true, DraftSource::mtp, 3, 64};
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    auto session = engine.session();
    Outcome part = run(*session, {prompt(12), 11, {}, {}, {}});
    for (int wanted : {1, 18}) {
        const Outcome next = run(*session, {part.tokens, wanted, {}, {}, {}});
        CHECK_EQ(next.stats.cached_tokens, static_cast<int>(part.tokens.size()) - 1);
        part = next;
    }
    check_same(whole, part, arm);
    // Another prompt: the recurrent state begins anew, and nothing of the old one shows.
    const Outcome other = run(*session, {prompt(7), 9, {}, {}, {}});
    CHECK_EQ(other.stats.cached_tokens, 0);
    check_same(run_arm(file, {}, {prompt(7), 9, {}, {}, {}}), other, arm);
}

TEST(session_ends_alike_in_every_arm) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome plain = run_arm(file, {}, {prompt(12), 40, {}, {}, {}});
    Arm arm{2, 1, 64, KvType::F16, true, DraftSource::mtp, 7, 64};
    // Each token of the text in turn as the end token: the text ends with its first occurrence, state and
    // all.
    for (int i = 0; i < 40; i += 3) {
        const Request request{prompt(12), 40, {}, {plain.tokens[12 + i]}, {}};
        const Outcome ended = run_arm(file, {}, request);
        CHECK(ended.finish == Finish::stop);
        CHECK_EQ(ended.tokens.back(), plain.tokens[12 + i]);
        check_same(ended, run_arm(file, arm, request), arm);
    }
    for (int wanted = 1; wanted < 12; ++wanted) {
        const Request request{prompt(12), wanted, {}, {}, {}};
        check_same(run_arm(file, {}, request), run_arm(file, arm, request), arm);
    }
    const Request endless{prompt(240), 0, {}, {}, {}};  // context 256
    const Outcome full = run_arm(file, {}, endless);
    CHECK(full.finish == Finish::context);
    CHECK_EQ(full.tokens.size(), 257u);  // the last token needs no place
    check_same(full, run_arm(file, arm, endless), arm);
    CHECK_EQ(run_arm(file, arm, {prompt(256), 0, {}, {}, {}}).stats.generated, 1);
}

TEST(session_switches_flipped_at_random_change_nothing) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome plain = run_arm(file, {}, {prompt(12), 200, {}, {}, {}});
    Arm arm{3, 1, 64, KvType::F16, false, DraftSource::mtp, 4, 64};
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    auto session = engine.session();
    std::mt19937 random(5);
    int flips = 0;
    for (int round = 0; round < 5; ++round) {
        session = engine.session();
        session->start({prompt(12), 200, {}, {}, {}});
        while (session->finish() == Finish::running) {
            Switches& s = engine.switches();
            switch (random() % 4) {
                case 0:
                    s.overlap = !s.overlap;
                    break;
                case 1:
                    s.draft = static_cast<DraftSource>(random() % 3);
                    break;
                case 2:
                    s.draft_max = random() % 8;
                    break;
                case 3:
                    s.draft_min_p = (random() % 3) * 0.3f;
                    break;
            }
            ++flips;
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        }
        check_same(plain, {session->tokens(), session->fingerprint(), {}, session->finish(), {}}, arm);
    }
    CHECK(flips > 50);
    std::vector<Event> events;
    engine.recorder().drain(events);
    int toggles = 0;
    for (const Event& event : events) toggles += event.kind == EventKind::toggle;
    CHECK(toggles > 10);
}

TEST(session_replay_dials_the_acceptance) {
    const auto file = micro("micro-llama");
    const Outcome plain = run_arm(file, {}, {prompt(12), 200, {}, {}, {}});
    const std::vector<int32_t> text(plain.tokens.begin() + 12, plain.tokens.end());
    for (float quality : {0.0f, 0.6f, 1.0f}) {
        Arm arm{2, 1, 64, KvType::F16, true, DraftSource::replay, 3, 64};
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        engine.switches().replay_quality = quality;
        const Outcome outcome = run(*engine.session(), {prompt(12), 200, {}, {}, text});
        check_same(plain, outcome, arm);
        const double first = double(outcome.stats.accepted_at[1]) / outcome.stats.drafted_at[1];
        CHECK_NEAR(first, quality, 0.12);
    }
}

TEST(session_cancel_leaves_a_state_to_go_on_from) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome whole = run_arm(file, {}, {prompt(100), 100, {}, {}, {}});
    std::mt19937 random(3);
    for (int round = 0; round < 30; ++round) {
        Arm arm{2, 1, 8, KvType::F16, round % 2 == 0, DraftSource::mtp, 4, 0};
        Engine engine(file, options_of(*file, arm));
        set_switches(engine, arm);
        auto session = engine.session();
        session->start({prompt(100), 100, {}, {}, {}});
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
        session->cancel();
        while (session->finish() == Finish::running) session->wait(1);
        const auto tokens = session->tokens();
        const int written = static_cast<int>(tokens.size()) - 100;
        if (session->finish() == Finish::cancel && written < 100) {
            const Outcome rest = run(*session, {tokens, 100 - written, {}, {}, {}});
            check_same(whole, rest, arm);
        }
    }
}

TEST(session_error_in_a_stage_ends_it_and_the_engine_takes_another) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome plain = run_arm(file, {}, {prompt(12), 30, {}, {}, {}});
    for (int stage : {0, 1, 2})
        for (bool overlap : {false, true}) {
            Arm arm{3, 1, 64, KvType::F16, overlap, DraftSource::mtp, 4, 64};
            Engine engine(file, options_of(*file, arm));
            set_switches(engine, arm);
            auto session = engine.session();
            run(*session, {prompt(12), 5, {}, {}, {}});
            engine.split().stages[stage]->inject_error(0);
            const uint64_t start = now_ns();
            session->start({prompt(40), 30, {}, {}, {}});
            while (session->finish() == Finish::running) session->wait(1);
            CHECK(session->finish() == Finish::error);
            CHECK(session->error().find("[stage " + std::to_string(stage) + "]") == 0);
            CHECK(now_ns() - start < 2'000'000'000);  // readers were released, nobody waited for the bound
            CHECK_THROWS(session->start({prompt(3), 1, {}, {}, {}}), "ended by an error");
            check_same(plain, run(*engine.session(), {prompt(12), 30, {}, {}, {}}), arm);
        }
}

TEST(session_closed_in_the_middle_leaves_no_thread) {
    const auto file = micro("micro-qwen35-friendly");
    for (int round = 0; round < 20; ++round) {
        Arm arm{4, 2, 8, KvType::F16, true, DraftSource::mtp, 4, 0};
        std::shared_ptr<Session> session;
        {
            Engine engine(file, options_of(*file, arm));
            set_switches(engine, arm);
            session = engine.session();
            session->start({prompt(100), 0, {}, {}, {}});
            std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
        }
        CHECK(session->finish() != Finish::running);
        CHECK_THROWS(session->start({prompt(3), 1, {}, {}, {}}), "closed");
        session->cancel();
        CHECK(session->tokens().size() >= 100u);
    }
}

TEST(session_refuses_bad_requests) {
    const auto file = micro("micro-llama");
    Engine engine(file, options_of(*file, {}));
    auto session = engine.session();
    CHECK_THROWS(session->start({{}, 1, {}, {}, {}}), "at least one token");
    CHECK_THROWS(session->start({{1, 99999}, 1, {}, {}, {}}), "got 99999");
    CHECK_THROWS(session->start({{-1}, 1, {}, {}, {}}), "got -1");
    CHECK_THROWS(session->start({prompt(257), 1, {}, {}, {}}), "context of 256");
    CHECK_THROWS(session->start({prompt(3), 1, {}, {}, {-1}}), "replayed token ids");
    CHECK_THROWS(engine.eval({}), "got 0");
}

TEST(session_holds_back_at_a_rate_and_in_a_pause) {
    const auto file = micro("micro-llama");
    Engine engine(file, options_of(*file, {}));
    auto session = engine.session();
    engine.switches().rate = 50;
    const Outcome capped = run(*session, {prompt(5), 10, {}, {}, {}});
    const double seconds = (capped.stats.end_ns - capped.stats.begin_ns) * 1e-9;
    CHECK(seconds > 0.15);
    CHECK(capped.stats.held_ns > 0);
    engine.switches().rate = 0;
    engine.switches().paused = true;
    session = engine.session();
    session->start({prompt(5), 40, {}, {}, {}});
    CHECK(!session->wait(0.05));
    for (int step = 1; step <= 3; ++step) {
        ++engine.switches().steps;
        CHECK(session->wait(5));
        session->read();
        CHECK_EQ(session->stats().windows, step);
    }
    engine.switches().paused = false;
    while (session->finish() == Finish::running) session->wait(1);
    CHECK_EQ(session->stats().generated, 40);
}

namespace {

/// A plain run of the same request, for `replay` drafts, which keep as many guesses as wanted on any model.
Request replayed(const std::shared_ptr<const GgufFile>& file, Request request) {
    const Outcome plain = run_arm(file, {}, request);
    request.replay.assign(plain.tokens.begin() + request.tokens.size(), plain.tokens.end());
    return request;
}

void add(GuessStats& sum, const GuessStats& g) {
    CHECK_EQ(g.built, g.gated + g.late + g.launched);
    CHECK_EQ(g.launched, g.kept + g.rolled_back + g.ended);
    sum.built += g.built, sum.gated += g.gated, sum.late += g.late, sum.launched += g.launched;
    sum.kept += g.kept, sum.rolled_back += g.rolled_back, sum.ended += g.ended, sum.forced += g.forced;
    for (size_t d = 0; d < sum.kept_at_depth.size(); ++d) sum.kept_at_depth[d] += g.kept_at_depth[d];
}

const Sampling SAMPLED{0.8f, 0, 0.95f, 0, 1.1f, 7};

}  // namespace

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

TEST(session_draft_layer_is_given_up_once_and_asked_for_again) {
    const auto file = micro("micro-qwen35");  // its draft layer is random: nothing is accepted
    Engine engine(file, options_of(*file, {}));
    engine.switches().draft_max = 7;
    auto session = engine.session();
    Outcome outcome = run(*session, {prompt(5), 60, {}, {}, {}});
    CHECK(outcome.stats.drafting_stopped);
    CHECK_EQ(engine.notices().take().size(), size_t{1});
    outcome = run(*session, {prompt(9), 60, {}, {}, {}});
    CHECK_EQ(outcome.stats.drafted, 0);
    CHECK(engine.notices().take().empty());
    ++engine.switches().draft_asked;
    outcome = run(*session, {prompt(7), 60, {}, {}, {}});
    CHECK(outcome.stats.drafted >= 64);
    CHECK_EQ(engine.notices().take().size(), size_t{1});
}

TEST(session_steps_of_a_pause_are_not_the_next_sessions) {
    const auto file = micro("micro-llama");
    Engine engine(file, options_of(*file, {}));
    engine.switches().paused = true;
    engine.switches().steps = 5;
    auto session = engine.session();
    session->start({prompt(5), 20, {}, {}, {}});
    CHECK(!session->wait(0.05));
    ++engine.switches().steps;
    CHECK(session->wait(10));
    CHECK_EQ(session->read().size(), size_t{1});
    CHECK(!session->wait(0.05));
    session->cancel();
    while (session->finish() == Finish::running) session->wait(1);
}
