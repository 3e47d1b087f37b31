#include "base/word.h"

#include <thread>

#include "base/clock.h"
#include "check.h"
#include "split/hand_off.h"
#include "trace/recorder.h"

using namespace strata;

TEST(word_is_an_atomic_maximum) {
    Word word;
    word.raise(7);
    word.raise(3);  // late: must not lower it
    CHECK_EQ(word.value(), 7u);
    CHECK(word.wait_ge(7, 0));
    word.increment();
    CHECK_EQ(word.value(), 8u);
}

TEST(word_wait_is_bounded) {
    Word word;
    const uint64_t start = now_ns();
    CHECK(!word.wait_ge(1, 30'000'000));
    CHECK(now_ns() - start >= 30'000'000);
}

TEST(running_time_ignores_a_stopped_process) {
    RunningTime running(0);
    CHECK_EQ(running.advance(500'000'000), 500'000'000u);
    CHECK_EQ(running.advance(90'000'000'000), 500'000'000u);  // ctrl-Z for a minute and a half
    CHECK_EQ(running.advance(90'100'000'000), 600'000'000u);
}

TEST(word_passes_a_payload_between_threads) {
    Word ready, taken;
    uint64_t payload = 0;
    constexpr uint64_t N = 20000;
    std::thread reader([&] {
        for (uint64_t i = 1; i <= N; ++i) {
            if (!ready.wait_ge(i, WAIT_BOUND_NS, i % 3 ? Word::SPIN_NS : 0) || payload != i * i) return;
            taken.raise(i);
        }
    });
    for (uint64_t i = 1; i <= N; ++i) {
        payload = i * i;
        ready.raise(i);
        if (!taken.wait_ge(i, 5'000'000'000, i % 5 ? Word::SPIN_NS : 0)) break;
    }
    reader.join();
    CHECK_EQ(taken.value(), N);
}

TEST(hand_off_waits_as_long_as_its_writer_is_at_work) {
    constexpr uint64_t BOUND_NS = 200'000'000;
    HandOff hand_off(1, 1, BOUND_NS);
    std::thread writer([&] {
        for (const uint64_t start = now_ns(); now_ns() - start < 3 * BOUND_NS;) {
            hand_off.note_progress();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        hand_off.publish(1, 0);
    });
    CHECK(hand_off.wait(1));
    writer.join();
    const uint64_t start = now_ns();
    CHECK(!hand_off.wait(2));  // it stands still
    CHECK(now_ns() - start >= BOUND_NS);
}

TEST(ring_keeps_order_and_counts_what_it_drops) {
    Recorder recorder(true, 8);
    EventLane& lane = recorder.add_lane();
    for (int i = 0; i < 11; ++i) lane.record({uint64_t(i), 0, 0, EventKind::run, 0, 0, i, 0});
    std::vector<Event> events;
    recorder.drain(events);
    CHECK_EQ(events.size(), 8u);
    for (int i = 0; i < 8; ++i) CHECK_EQ(events[i].a, i);
    CHECK_EQ(recorder.dropped(), 3u);
    recorder.set_on(false);
    lane.record({});
    events.clear();
    recorder.drain(events);
    CHECK(events.empty());
    CHECK_EQ(recorder.dropped(), 3u);  // off is not dropped
}

TEST(ring_survives_two_threads) {
    Recorder recorder(true, 64);
    EventLane& lane = recorder.add_lane();
    constexpr int N = 100000;
    std::thread producer([&] {
        for (int i = 0; i < N; ++i) lane.record({0, 0, 0, EventKind::run, 0, 0, i, 0});
    });
    std::vector<Event> events;
    int last = -1;
    const auto check = [&] {
        events.clear();
        recorder.drain(events);
        for (const Event& event : events) {
            if (event.a <= last) return false;
            last = event.a;
        }
        return true;
    };
    bool ascending = true;
    for (int i = 0; i < 2000; ++i) ascending &= check();
    producer.join();
    ascending &= check();
    CHECK(ascending);
    CHECK(last >= 0);
}
