#include "driver.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "base/error.h"
#include "mutate.h"

#define PLAIN __attribute__((no_sanitize("address", "undefined")))

namespace strata::fuzz {

namespace {

// Coverage: every basic block of the code under test calls __sanitizer_cov_trace_pc; which block followed
// which is counted by a hash of both. Touched counters are listed, so that clearing costs what was run.
constexpr size_t EDGES = 1 << 16;
uint8_t counts[EDGES];
uint32_t touched[EDGES];
size_t n_touched = 0;
uintptr_t before = 0;
uint8_t seen[EDGES];  // per edge, the classes of counts that have been seen

/// 1, 2, 3, 4-7, 8-15, 16-31, 32-127, more: how often an edge was taken matters by class.
uint8_t class_of(uint8_t count) {
    constexpr uint8_t LIMITS[] = {1, 2, 3, 7, 15, 31, 127};
    for (int i = 0; i < 7; ++i)
        if (count <= LIMITS[i]) return static_cast<uint8_t>(1 << i);
    return 128;
}

const Input* current = nullptr;  // for whoever ends the process
std::string crash_path;
std::atomic<uint64_t> done{0};

PLAIN void save() {
    if (!current) return;
    if (FILE* file = std::fopen(crash_path.c_str(), "wb")) {
        std::fwrite(current->data(), 1, current->size(), file);
        std::fclose(file);
        std::fprintf(stderr, "the input is in %s\n", crash_path.c_str());
    }
}

/// Runs it; true if it reached something new.
bool execute(const Target& target, const Input& input) {
    current = &input;
    for (size_t i = 0; i < n_touched; ++i) counts[touched[i]] = 0;
    n_touched = 0;
    before = 0;
    try {
        target.read(input);
    } catch (const Error& refused) {
        if (std::string(refused.what()).find('\n') != std::string::npos) std::abort();  // one line
    }
    done.fetch_add(1, std::memory_order_relaxed);
    bool fresh = false;
    for (size_t i = 0; i < n_touched; ++i) {
        const uint8_t bit = class_of(counts[touched[i]]);
        if (!(seen[touched[i]] & bit)) {
            seen[touched[i]] |= bit;
            fresh = true;
        }
    }
    return fresh;
}

size_t edges_seen() {
    return static_cast<size_t>(std::count_if(std::begin(seen), std::end(seen), [](uint8_t s) { return s; }));
}

/// Ends the process when one input takes ten seconds.
void watch(std::stop_token stop) {
    uint64_t last = UINT64_MAX;
    for (int stuck_s = 0; !stop.stop_requested();) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        const uint64_t now = done.load(std::memory_order_relaxed);
        stuck_s = now == last ? stuck_s + 1 : 0;
        last = now;
        if (stuck_s == 10) {
            std::fprintf(stderr, "no end after 10 s\n");
            std::abort();
        }
    }
}

}  // namespace

PLAIN void count_block(uintptr_t here) {
    here *= 0x9E3779B97F4A7C15u;
    const size_t edge = (here ^ before) >> 48;
    before = here >> 1;
    if (counts[edge] == 0) touched[n_touched++] = static_cast<uint32_t>(edge);
    if (counts[edge] < 255) ++counts[edge];
}

void run(const Target& target, uint64_t runs, uint64_t seed) {
    crash_path = "crash-" + target.name;
    std::fill(std::begin(seen), std::end(seen), uint8_t{0});
    std::vector<Input> corpus;
    for (const Input& input : target.corpus) {
        execute(target, input);
        corpus.push_back(input);
    }
    done = 0;
    std::jthread watcher(watch);
    Mutator mutator(seed);
    Input input;
    uint64_t last_new = 0, new_late = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 1; i <= runs; ++i) {
        // Half of the time one of the last finds.
        const size_t n = corpus.size();
        const size_t pick =
            mutator.below(2) ? n - 1 - mutator.below(std::min<size_t>(n, 16)) : mutator.below(n);
        input = corpus[pick];
        mutator.change(input, corpus[mutator.below(n)]);
        if (execute(target, input)) {
            corpus.push_back(input);
            last_new = i;
            new_late += i > runs - runs / 10;
        }
        if (i % std::max<uint64_t>(1, runs / 20) == 0)
            std::fprintf(stderr, "%s: %llu executions, %zu edges, %zu inputs, the last new one at %llu\n",
                         target.name.c_str(), static_cast<unsigned long long>(i), edges_seen(), corpus.size(),
                         static_cast<unsigned long long>(last_new));
    }
    current = nullptr;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf(
        "%s: %llu executions in %.0f s, %.0f a second; %zu edges, %zu inputs kept; the last new one at "
        "execution %llu, %llu in the last tenth; no crash\n",
        target.name.c_str(), static_cast<unsigned long long>(runs), seconds,
        static_cast<double>(runs) / seconds, edges_seen(), corpus.size(),
        static_cast<unsigned long long>(last_new), static_cast<unsigned long long>(new_late));
    std::fflush(stdout);
}

}  // namespace strata::fuzz

extern "C" {
PLAIN void __sanitizer_cov_trace_pc() {
    strata::fuzz::count_block(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}
void __sanitizer_set_death_callback(void (*callback)());
const char* __asan_default_options() {
    return "max_allocation_size_mb=256:hard_rss_limit_mb=2048:handle_abort=1:detect_leaks=1";
}
const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
}

namespace {
const bool registered = (__sanitizer_set_death_callback([] { strata::fuzz::save(); }), true);
}  // namespace
