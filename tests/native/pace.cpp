#include "device/pace.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "base/clock.h"
#include "check.h"
#include "engine.h"

using namespace strata;

namespace {

constexpr uint64_t MS = 1'000'000;
constexpr uint64_t SOON = 2'000 * MS;  // far below the holds that end early here, far above a busy machine's

PaceSpec even(std::initializer_list<std::pair<ProgramKind, uint64_t>> lasts) {
    PaceSpec spec;
    spec.kind = PaceSpec::Kind::even;
    for (const auto& [kind, ns] : lasts) spec.lasts_ns[static_cast<int>(kind)] = ns;
    return spec;
}

PaceSpec delayed(uint64_t seed, float chance = 0.3f, uint64_t max_ns = MS / 2) {
    PaceSpec spec;
    spec.kind = PaceSpec::Kind::delayed;
    spec.seed = seed;
    spec.chance = chance;
    spec.max_ns = max_ns;
    return spec;
}

PaceSpec paced() {
    PaceSpec spec;
    spec.kind = PaceSpec::Kind::paced;
    spec.name = "rig";
    spec.run_ns = {4 * MS, 5 * MS, 6 * MS, 7 * MS};
    spec.chunk_ns = {2 * MS};
    spec.run_ns_per_position = 100;
    spec.position_offset = 1000;
    spec.arrival_ns = {MS / 4, 3 * MS, MS, 2 * MS};
    spec.lasts_ns[static_cast<int>(ProgramKind::verdict)] = 4 * MS;
    spec.lasts_ns[static_cast<int>(ProgramKind::draft)] = 3 * MS;
    return spec;
}

Execution forward(uint32_t window) { return {ProgramKind::forward, window, 4, 0, now_ns()}; }

/// Does nothing, for as long as its device says.
struct Held final : CpuProgram {
    CpuDevice* device = nullptr;
    uint32_t window = 0;
    uint64_t start_ns = 0, end_ns = 0;
    void run(Team&) override {
        start_ns = now_ns();
        device->hold({ProgramKind::forward, window, 1, 0, start_ns});
        end_ns = now_ns();
    }
};

EngineOptions placed(const PaceSpec& pace, int stages, int chunk = 64) {
    EngineOptions o;
    for (int s = 1; s < stages; ++s) o.split.push_back(4 * s / stages);
    o.devices.assign(stages, CpuSpec{1, {}, pace});
    o.context = 256;
    o.chunk = chunk;
    o.event_capacity = 1 << 14;
    return o;
}

std::shared_ptr<const GgufFile> model() {
    return GgufFile::open(std::string(STRATA_TEST_DATA) + "/oracles/micro-qwen35-friendly.gguf");
}

Request request(int n_tokens) {
    Request request;
    for (int i = 0; i < 23; ++i) request.tokens.push_back((i * i + 3 * i) % 97 + 5);
    request.max_tokens = n_tokens;
    return request;
}

/// Text and state at the end.
std::pair<std::vector<int32_t>, std::vector<uint64_t>> decode(Engine& engine, int n_tokens) {
    auto session = engine.session();
    session->start(request(n_tokens));
    while (session->finish() == Finish::running) session->wait(10);
    if (session->finish() == Finish::error) throw std::runtime_error(session->error());
    return {session->tokens(), session->fingerprint()};
}

}  // namespace

TEST(pace_even_lasts_as_long_as_was_asked) {
    EvenPace pace(even({{ProgramKind::forward, 3 * MS}}));
    for (uint32_t window = 1; window <= 5; ++window) {
        const Execution execution = forward(window);
        pace.hold(execution);
        CHECK(now_ns() - execution.start_ns >= 3 * MS);
    }
    const PaceKept kept = pace.kept(ProgramKind::forward);
    CHECK_EQ(kept.programs, 5u);
    CHECK(kept.held_ns <= 5 * 3 * MS + 5 * kept.worst_late_ns);
    CHECK_EQ(std::accumulate(kept.late.begin(), kept.late.end(), uint64_t{0}), 5u);
    CHECK_EQ(kept.late.size(), std::min<size_t>(256, kept.worst_late_ns / PaceKept::LATE_STEP_NS + 1));
    pace.hold({ProgramKind::commit, 1, 4, 0, now_ns()});  // no time was asked for it
    CHECK_EQ(pace.kept(ProgramKind::commit).programs, 0u);
}

TEST(pace_even_counts_what_took_longer) {
    EvenPace pace(even({{ProgramKind::draft, 3 * MS}}));
    pace.hold({ProgramKind::draft, 1, 1, 0, now_ns() - 5 * MS});
    pace.hold({ProgramKind::draft, 2, 1, 0, now_ns() - 9 * MS});
    const PaceKept kept = pace.kept(ProgramKind::draft);
    CHECK_EQ(kept.programs, 2u);
    CHECK_EQ(kept.overruns, 2u);
    CHECK(kept.over_ns >= 8 * MS);
    CHECK(kept.worst_over_ns >= 6 * MS && kept.worst_over_ns < kept.over_ns);
    CHECK_EQ(kept.held_ns, 0u);
}

TEST(pace_cut_ends_holds_of_that_window_and_of_those_before) {
    for (bool all : {false, true})
        for (ProgramKind kind : {ProgramKind::forward, ProgramKind::publish, ProgramKind::chunk,
                                 ProgramKind::commit, ProgramKind::undo, ProgramKind::draft}) {
            const bool cut = all || kind == ProgramKind::forward || kind == ProgramKind::publish ||
                             kind == ProgramKind::chunk;
            EvenPace pace(even({{kind, cut ? 5'000 * MS : 40 * MS}}));
            const uint64_t start = now_ns();
            std::thread worker([&] {
                pace.hold({kind, 7, 4, 0, start});
                pace.hold({kind, 6, 4, 0, start});
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            pace.cut(7, all);
            worker.join();
            const uint64_t took = now_ns() - start;
            CHECK(cut ? took < SOON : took >= 40 * MS);
            CHECK_EQ(pace.kept(kind).programs, cut ? 0u : 2u);
        }
    EvenPace pace(even({{ProgramKind::forward, 10 * MS}}));
    pace.cut(7, true);
    const Execution later = forward(8);
    pace.hold(later);
    CHECK(now_ns() - later.start_ns >= 10 * MS);
}

TEST(pace_delays_are_the_same_for_the_same_seed) {
    const PaceSpec spec = delayed(7);
    std::set<std::vector<uint64_t>> seen;
    for (uint64_t seed : {7, 8})
        for (int lane : {0, 1, 254})
            for (ProgramKind kind : {ProgramKind::forward, ProgramKind::commit}) {
                std::vector<uint64_t> delays, again;
                for (uint64_t count = 0; count < 2000; ++count) {
                    delays.push_back(DelayedPace::delay_ns(delayed(seed), lane, kind, count));
                    again.push_back(DelayedPace::delay_ns(delayed(seed), lane, kind, count));
                    CHECK(delays.back() <= spec.max_ns);
                }
                CHECK(delays == again);
                const double late = 2000 - std::count(delays.begin(), delays.end(), 0u);
                CHECK_NEAR(late / 2000, spec.chance, 0.05);
                seen.insert(delays);
            }
    CHECK_EQ(seen.size(), 12u);  // each seed, device and kind has its own
    PaceSpec only = spec;
    only.kinds = 1u << static_cast<int>(ProgramKind::undo);
    only.chance = 1;
    for (uint64_t count = 0; count < 50; ++count) {
        CHECK_EQ(DelayedPace::delay_ns(only, 0, ProgramKind::forward, count), 0u);
        CHECK(DelayedPace::delay_ns(only, 0, ProgramKind::undo, count) > 0);
    }
}

TEST(pace_a_device_runs_in_order_and_goes_at_once) {
    Word done;
    Held programs[4];
    {
        CpuDevice device({1, {}, even({{ProgramKind::forward, 4 * MS}})}, 0, done);
        CHECK_EQ(device.describe(), "even 4 ms (emulated), cpu 1 thread");
        for (uint32_t i = 0; i < 4; ++i) {
            programs[i].device = &device;
            programs[i].window = i + 1;
            device.submit(programs[i]);
        }
        while (device.finished() < 4) std::this_thread::yield();
        for (int i = 0; i < 4; ++i) {
            CHECK(programs[i].end_ns - programs[i].start_ns >= 4 * MS);
            if (i) CHECK(programs[i].start_ns >= device.finished_ns(i));
        }
    }
    const uint64_t start = now_ns();
    {
        CpuDevice device({1, {}, even({{ProgramKind::forward, 5'000 * MS}})}, 0, done);
        for (Held& program : programs) {
            program.device = &device;
            device.submit(program);
        }
    }
    CHECK(now_ns() - start < SOON);
    CHECK(programs[3].end_ns >= start);  // it did run
}

TEST(pace_even_devices_keep_their_times_and_the_text) {
    const auto file = model();
    Engine plain(file, placed({}, 1));
    const auto expected = decode(plain, 24);
    const PaceSpec pace = even({{ProgramKind::forward, 4 * MS},
                                {ProgramKind::publish, MS / 2},
                                {ProgramKind::commit, MS},
                                {ProgramKind::draft, MS}});
    for (bool overlap : {false, true}) {
        Engine engine(file, placed(pace, 3));
        engine.switches().overlap = overlap;
        const auto got = decode(engine, 24);
        CHECK(got == expected);
        std::vector<Event> events;
        engine.recorder().drain(events);
        int runs = 0, commits = 0, drafts = 0, publishes = 0;
        for (const Event& e : events) {
            switch (e.kind) {
                case EventKind::run:
                    ++runs;
                    CHECK(e.dur_ns >= 4 * MS + (e.stage < 2 ? MS / 2 : 0));
                    // It begins when the stage before has published, not earlier.
                    for (const Event& p : events)
                        if (p.kind == EventKind::publish && p.stage + 1 == e.stage && p.window == e.window)
                            CHECK(e.start_ns >= p.start_ns + MS / 2);
                    break;
                case EventKind::publish:
                    ++publishes;
                    CHECK(e.dur_ns >= MS / 2);
                    break;
                case EventKind::commit:
                    ++commits;
                    CHECK(e.dur_ns >= MS);
                    break;
                case EventKind::draft_step:
                    ++drafts;
                    CHECK(e.dur_ns >= MS);
                    break;
                default:
                    break;
            }
        }
        CHECK(runs > 9 && commits > 9 && drafts > 9 && publishes > 6);
        const PaceKept kept = engine.split().stages[1]->device().pace()->kept(ProgramKind::forward);
        CHECK_EQ(kept.programs, uint64_t(runs) / 3);
    }
}

TEST(pace_delayed_devices_change_no_text) {
    const auto file = model();
    Engine plain(file, placed({}, 1));
    const auto expected = decode(plain, 40);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        Engine engine(file, placed(delayed(seed), 2 + seed % 3, seed % 2 ? 5 : 64));
        engine.switches().overlap = true;
        engine.switches().short_read = seed % 2 ? 0 : 64;
        const auto got = decode(engine, 40);
        CHECK(got == expected);
        const Pace& first = *engine.split().stages[0]->device().pace();
        for (ProgramKind kind : {ProgramKind::forward, ProgramKind::publish, ProgramKind::commit})
            CHECK(first.kept(kind).programs > 0);
        CHECK(engine.split().mtp->device().pace()->kept(ProgramKind::draft).programs > 0);
    }
}

TEST(pace_paced_lasts_by_rows_position_and_arrival) {
    const PaceSpec spec = paced();
    const auto lasts = [&](ProgramKind kind, int rows, int position, Arrival arrival) {
        return PacedPace::lasts_ns(spec, {kind, 1, rows, position, 0, 0, arrival});
    };
    CHECK_EQ(lasts(ProgramKind::forward, 1, 0, Arrival::staged), 4 * MS + 100 * 1000);
    CHECK_EQ(lasts(ProgramKind::forward, 3, 500, Arrival::polled), 6 * MS + 100 * 1500);
    CHECK_EQ(lasts(ProgramKind::forward, 8, 0, Arrival::staged), 7 * MS + 100 * 1000);  // no more is known
    CHECK_EQ(lasts(ProgramKind::chunk, 512, 9000, Arrival::serial), 2 * MS);
    CHECK_EQ(lasts(ProgramKind::hand_off, 4, 0, Arrival::staged), MS / 4);
    CHECK_EQ(lasts(ProgramKind::hand_off, 4, 0, Arrival::serial), 3 * MS);
    CHECK_EQ(lasts(ProgramKind::hand_off, 4, 0, Arrival::overlapped), MS);
    CHECK_EQ(lasts(ProgramKind::hand_off, 4, 0, Arrival::polled), 2 * MS);
    CHECK_EQ(lasts(ProgramKind::commit, 4, 0, Arrival::staged), 0u);
    CHECK_EQ(PaceSpec(spec).label(), "paced rig (emulated)");
}

TEST(pace_paced_chains_modelled_times) {
    // Ten times as slow: the test itself may come late, on a busy machine.
    constexpr uint64_t UNIT = 10 * MS;
    PaceSpec spec = paced();
    spec.run_ns_per_position = 0;
    for (uint64_t& ns : spec.run_ns) ns *= 10;
    for (uint64_t& ns : spec.arrival_ns) ns *= 10;
    PacedPace pace(spec, 0);
    const uint64_t zero = now_ns();
    // The rows were there a unit ago and travel for two; the host launched at once.
    const uint64_t arrived = pace.hold({ProgramKind::hand_off, 1, 4, 0, zero - UNIT, zero, Arrival::polled});
    CHECK_EQ(arrived, zero + UNIT);
    CHECK(now_ns() >= arrived);
    CHECK_EQ(pace.hold({ProgramKind::forward, 1, 4, 0, arrived}), arrived + 7 * UNIT);
    CHECK(now_ns() >= arrived + 7 * UNIT);
    // A commit without a time of its own takes none of the clock, and the next program makes up for it.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pace.hold({ProgramKind::commit, 1, 4, 0, now_ns()});
    CHECK_EQ(pace.begins(0), arrived + 7 * UNIT);
    CHECK_EQ(pace.hold({ProgramKind::forward, 2, 1, 0, arrived}), arrived + 11 * UNIT);
    // Launched later than the rows came: from then on.
    const uint64_t later = now_ns() + 2 * UNIT;
    CHECK_EQ(pace.hold({ProgramKind::hand_off, 3, 1, 0, zero, later, Arrival::polled}), later);
    // What took longer ends when it ends, and is counted.
    CHECK_EQ(pace.kept(ProgramKind::forward).overruns, 0u);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const uint64_t over = now_ns();
    CHECK(pace.hold({ProgramKind::forward, 3, 1, 0, later}) >= over);
    CHECK_EQ(pace.kept(ProgramKind::forward).overruns, 1u);
    CHECK(pace.begins(0) >= over);
}

TEST(pace_paced_tells_the_host_of_a_verdict_before_its_end) {
    PacedPace pace(paced(), 0);
    const uint64_t zero = now_ns();
    const uint64_t told = pace.hold({ProgramKind::verdict, 1, 4, 0, zero});
    CHECK_EQ(told, zero + 4 * MS);
    CHECK(now_ns() >= told - PacedPace::HEAD_START_NS);
}

TEST(pace_paced_books_what_is_computed_before_its_time) {
    PacedPace pace(paced(), DRAFT_LANE);
    const uint64_t zero = now_ns();
    for (int i = 1; i <= 3; ++i) CHECK_EQ(pace.book({ProgramKind::draft, 1, 1, 0, zero}), zero + 3 * i * MS);
    CHECK(now_ns() < zero + SOON);  // it did not wait
    CHECK_EQ(pace.kept(ProgramKind::draft).programs, 3u);
}

TEST(pace_paced_jitter_is_bounded_and_seeded) {
    PaceSpec spec = paced();
    spec.jitter = 0.1f;
    const auto holds = [&spec](uint64_t seed) {
        spec.seed = seed;
        PacedPace pace(spec, 1);
        std::vector<uint64_t> all;
        uint64_t before = now_ns() + 60'000 * MS;  // booked far ahead: nothing overruns
        for (int i = 0; i < 200; ++i) {
            const uint64_t end = pace.book({ProgramKind::draft, 1, 1, 0, before});
            all.push_back(end - before);
            before = end;
        }
        return all;
    };
    const auto one = holds(1), again = holds(1), two = holds(2);
    CHECK(one == again);
    CHECK(one != two);
    const auto [least, most] = std::minmax_element(one.begin(), one.end());
    CHECK(*least >= 27 * MS / 10 && *least < 275 * MS / 100);
    CHECK(*most <= 33 * MS / 10 && *most > 325 * MS / 100);
}

TEST(pace_paced_devices_keep_the_text_and_show_what_a_rig_would) {
    const auto file = model();
    Engine plain(file, placed({}, 1));
    const auto expected = decode(plain, 24);
    for (int arm = 0; arm < 8; ++arm) {
        const bool overlap = arm & 1;
        const int windows = arm & 2 ? 3 : 0;
        EngineOptions options = placed(paced(), 3);
        options.pipeline_max = 3;
        Engine engine(file, options);
        engine.switches().overlap = overlap;
        engine.switches().pipeline_windows = windows;
        engine.switches().draft_max = 3;
        // A floor ends chains early, with steps queued behind their end.
        engine.switches().draft_min_p = arm & 4 ? 0.4f : 0.0f;
        CHECK(decode(engine, 24) == expected);
        std::vector<Event> events;
        engine.recorder().drain(events);
        int runs = 0, verdicts = 0;
        std::set<uint32_t> cut;  // windows that are held no more: they began as soon as they were rolled back
        for (const Event& e : events)
            if (e.kind == EventKind::guess_rolled_back || e.kind == EventKind::guess_ended)
                cut.insert(e.window);
        for (const Event& e : events) {
            if (e.kind == EventKind::verdict) ++verdicts;
            if (e.kind != EventKind::run || e.b || cut.contains(e.window)) continue;
            for (const Event& p : events) {
                if (p.window != e.window || p.b) continue;
                if (p.kind == EventKind::run && p.stage + 1 == e.stage) {
                    ++runs;
                    CHECK(e.start_ns >= p.start_ns + p.dur_ns + (overlap ? MS : 2 * MS));
                }
                // The way of the picks to the host is shown as sync behind the run.
                if (p.kind == EventKind::sync && p.stage == 2 && e.stage == 2) {
                    CHECK(p.start_ns >= e.start_ns + e.dur_ns);
                    CHECK(p.dur_ns >= 4 * MS);
                }
            }
        }
        CHECK(runs > 12 && verdicts > 6);
    }
}

TEST(pace_an_engine_closes_amid_a_hold) {
    const auto file = model();
    const uint64_t start = now_ns();
    {
        Engine engine(file, placed(even({{ProgramKind::forward, 5'000 * MS}}), 2));
        engine.switches().overlap = true;
        engine.session()->start(request(40));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    CHECK(now_ns() - start < SOON);
}

TEST(pace_refuses_what_it_cannot_keep) {
    const auto file = model();
    CHECK_THROWS(Engine(file, placed(even({{ProgramKind::commit, 5'001 * MS}}), 1)),
                 "(commit) should last 0 to 5000 ms, got 5001");
    CHECK_THROWS(Engine(file, placed(delayed(1, 1.5f), 1)), "from 0 to 1, got 1.5");
    CHECK_THROWS(Engine(file, placed(delayed(1, 0.5f, 1'001 * MS), 1)), "1000 ms at most, got 1001");
    PaceSpec spec = paced();
    spec.run_ns.push_back(5'001 * MS);
    CHECK_THROWS(Engine(file, placed(spec, 1)), "(forward) should last 0 to 5000 ms, got 5001");
    spec = paced();
    spec.jitter = 0.6f;
    CHECK_THROWS(Engine(file, placed(spec, 1)), "jitter should be from 0 to 0.5, got 0.6");
    spec = paced();
    spec.run_ns_per_position = 1'000;
    spec.position_offset = 5'000'000;
    CHECK_THROWS(Engine(file, placed(spec, 1)), "the one at the end of the context lasts 500");
    CHECK_THROWS(program_kind("launch"), "got launch");
}
