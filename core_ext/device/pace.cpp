#include "device/pace.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"

namespace strata {

// A sleep may end this much late, so the rest is spun away. Small: several stages share a core.
constexpr uint64_t SPIN_NS = 50'000;

constexpr std::array<const char*, N_PROGRAM_KINDS> NAMES{"forward", "publish", "commit",
                                                         "undo",    "draft",   "chunk"};

const char* program_name(ProgramKind kind) { return NAMES[static_cast<int>(kind)]; }

ProgramKind program_kind(const std::string& name) {
    for (int i = 0; i < N_PROGRAM_KINDS; ++i)
        if (name == NAMES[i]) return static_cast<ProgramKind>(i);
    throw Error("[device] a program should be forward, publish, commit, undo, draft or chunk, got " + name);
}

static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

std::string PaceSpec::label() const {
    if (kind == Kind::none) return "";
    std::string text;
    if (kind == Kind::delayed)
        return text.append("delayed by seed ").append(std::to_string(seed)).append(" (test)");
    text = "even";
    for (int i = 0; i < N_PROGRAM_KINDS; ++i) {
        if (!lasts_ns[i]) continue;
        text.append(text == "even" ? " " : ", ");
        if (i) text.append(NAMES[i]).append(" ");
        text.append(number(lasts_ns[i] * 1e-6)).append(" ms");
    }
    return text + " (emulated)";
}

void PaceSpec::check() const {
    for (int i = 0; i < N_PROGRAM_KINDS; ++i)
        if (lasts_ns[i] > MAX_LASTS_NS)
            throw Error(std::string("[device] a program (") + NAMES[i] + ") should last 0 to " +
                        number(MAX_LASTS_NS * 1e-6) + " ms, got " + number(lasts_ns[i] * 1e-6));
    if (!(chance >= 0 && chance <= 1))
        throw Error("[device] the chance of a delay should be from 0 to 1, got " + number(chance));
    if (max_ns > MAX_DELAY_NS)
        throw Error("[device] a delay should be " + number(MAX_DELAY_NS * 1e-6) + " ms at most, got " +
                    number(max_ns * 1e-6));
}

// ---- any pace

std::unique_ptr<Pace> Pace::make(const PaceSpec& spec, int lane) {
    switch (spec.kind) {
        case PaceSpec::Kind::even:
            return std::make_unique<EvenPace>(spec);
        case PaceSpec::Kind::delayed:
            return std::make_unique<DelayedPace>(spec, lane);
        case PaceSpec::Kind::none:
            break;
    }
    return nullptr;
}

void Pace::cut(uint32_t window, bool all_programs) noexcept {
    runs_over_.raise(window);
    if (all_programs) all_over_.raise(window);
}

static bool part_of_a_run(ProgramKind kind) {
    return kind == ProgramKind::forward || kind == ProgramKind::publish || kind == ProgramKind::chunk;
}

bool Pace::sleep_until(uint64_t end_ns, ProgramKind kind, uint32_t window) noexcept {
    Word& over = part_of_a_run(kind) ? runs_over_ : all_over_;
    for (uint64_t now = now_ns(); now + SPIN_NS < end_ns; now = now_ns())
        if (over.wait_ge(window, end_ns - SPIN_NS - now, 0)) return false;
    while (now_ns() < end_ns) {
        if (over.value() >= window) return false;
        spin_pause();
    }
    return true;
}

void Pace::note_hold(ProgramKind kind, uint64_t from_ns, uint64_t end_ns, uint64_t now_ns) noexcept {
    Kept& kept = kept_[static_cast<int>(kind)];
    const auto add = [](std::atomic<uint64_t>& sum, uint64_t n) {
        sum.fetch_add(n, std::memory_order_relaxed);
    };
    const auto most = [](std::atomic<uint64_t>& worst, uint64_t n) {
        worst.store(std::max(worst.load(std::memory_order_relaxed), n), std::memory_order_relaxed);
    };
    add(kept.programs, 1);
    if (from_ns > end_ns) {
        add(kept.overruns, 1);
        add(kept.over_ns, from_ns - end_ns);
        most(kept.worst_over_ns, from_ns - end_ns);
    } else {
        add(kept.held_ns, now_ns - from_ns);
        most(kept.worst_late_ns, now_ns - end_ns);
    }
}

PaceKept Pace::kept(ProgramKind kind) const {
    const Kept& kept = kept_[static_cast<int>(kind)];
    const auto read = [](const std::atomic<uint64_t>& n) { return n.load(std::memory_order_relaxed); };
    return {read(kept.programs), read(kept.held_ns),       read(kept.overruns),
            read(kept.over_ns),  read(kept.worst_over_ns), read(kept.worst_late_ns)};
}

// ---- even

void EvenPace::hold(const Execution& e) noexcept {
    const uint64_t lasts_ns = lasts_ns_[static_cast<int>(e.kind)];
    if (!lasts_ns) return;
    const uint64_t end_ns = e.start_ns + lasts_ns, from_ns = now_ns();
    if (!sleep_until(end_ns, e.kind, e.window)) return;
    note_hold(e.kind, from_ns, end_ns, now_ns());
}

// ---- delayed

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the input moves every bit.
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t DelayedPace::delay_ns(const PaceSpec& spec, int lane, ProgramKind kind, uint64_t count) {
    if (!(spec.kinds >> static_cast<int>(kind) & 1)) return 0;
    const uint64_t place = mix(spec.seed + mix(uint64_t(lane) << 8 | uint64_t(kind)));
    const auto uniform = [](uint64_t bits) { return double(bits >> 11) * 0x1p-53; };  // [0, 1)
    if (!(uniform(mix(place + 2 * count)) < spec.chance)) return 0;
    const double size = uniform(mix(place + 2 * count + 1));
    return static_cast<uint64_t>(size * size * double(spec.max_ns));
}

void DelayedPace::delay(ProgramKind kind, uint32_t window) noexcept {
    const uint64_t ns = delay_ns(spec_, lane_, kind, counts_[static_cast<int>(kind)]++);
    if (!ns) return;
    const uint64_t from_ns = now_ns();
    if (sleep_until(from_ns + ns, kind, window)) note_hold(kind, from_ns, from_ns + ns, now_ns());
}

}  // namespace strata
