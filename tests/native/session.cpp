#include "decode/session.h"

#include <random>
#include <thread>

#include "arms.h"
#include "base/clock.h"

using namespace strata;
using namespace strata::test;

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

/// What the draft layer owes by then may take long: it isn't waited for, nor lost.
TEST(session_cancel_in_a_prompt_leaves_the_draft_layer_behind) {
    const auto file = micro("micro-qwen35-friendly");
    const Request request{prompt(60), 12, {}, {}, {}};
    Arm arm{2, 1, 1, KvType::F16, false, DraftSource::mtp, 4, 0};  // chunks of one row: a pass each
    const Outcome whole = run_arm(file, arm, request);
    arm.pace.kind = PaceSpec::Kind::even;
    // Far slower than the stages, on any machine.
    arm.pace.lasts_ns[static_cast<int>(ProgramKind::draft)] = 40'000'000;
    Engine engine(file, options_of(*file, arm));
    set_switches(engine, arm);
    auto session = engine.session();
    session->start(request);
    std::vector<Event> events;
    const auto read = [&](const Event& event) { return event.kind == EventKind::prefill_chunk; };
    while (std::count_if(events.begin(), events.end(), read) < 2 * 30) engine.recorder().drain(events);
    session->cancel();
    while (session->finish() == Finish::running) session->wait(1);
    CHECK(session->finish() == Finish::cancel);
    CHECK(session->draft_fingerprint()->first < 30);
    const Outcome rest = run(*session, request);
    CHECK(rest.stats.cached_tokens >= 30);
    check_same(whole, rest, arm);
    CHECK(rest.draft == whole.draft);
}

TEST(session_error_in_a_stage_ends_it_and_the_engine_takes_another) {
    const auto file = micro("micro-qwen35-friendly");
    const Outcome plain = run_arm(file, {}, {prompt(12), 30, {}, {}, {}});
    for (int stage : {0, 1, 2})
        for (bool overlap : {false, true}) {
            const int short_read = overlap ? 64 : 0;  // windows or chunks of 8 rows
            Arm arm{3, 1, 8, KvType::F16, overlap, DraftSource::mtp, 4, short_read};
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
            CHECK_EQ(session->stats().guesses.late + session->stats().guesses.ended, 0);  // none was made
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
