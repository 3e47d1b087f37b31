#include "device/pace.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"

namespace strata {

// A core that has slept for milliseconds is late to wake, a virtual one by hundreds of microseconds; one that
// has slept a moment by tens. So the last moment but one is a short sleep, and the last is spun away: it is
// small, since several stages share a core. Who spins has its core, and no appointment.
constexpr uint64_t NAP_NS = 300'000, SPIN_NS = 50'000;

constexpr std::array<const char*, N_PROGRAM_KINDS> NAMES{"forward", "publish", "commit",   "undo",
                                                         "draft",   "chunk",   "hand_off", "verdict"};

const char* program_name(ProgramKind kind) { return NAMES[static_cast<int>(kind)]; }

ProgramKind program_kind(const std::string& name) {
    for (int i = 0; i < N_PROGRAM_KINDS; ++i)
        if (name == NAMES[i]) return static_cast<ProgramKind>(i);
    throw Error(
        "[device] a program should be forward, publish, commit, undo, draft, chunk, hand_off or verdict, "
        "got " +
        name);
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
    if (kind == Kind::paced) return text.append("paced ").append(name).append(" (emulated)");
    text = "even";
    for (int i = 0; i < N_PROGRAM_KINDS; ++i) {
        if (!lasts_ns[i]) continue;
        text.append(text == "even" ? " " : ", ");
        if (i) text.append(NAMES[i]).append(" ");
        text.append(number(lasts_ns[i] * 1e-6)).append(" ms");
    }
    return text + " (emulated)";
}

void PaceSpec::check(int context) const {
    const auto lasts = [](const char* what, uint64_t ns) {
        if (ns > MAX_LASTS_NS)
            throw Error(std::string("[device] a program (") + what + ") should last 0 to " +
                        number(MAX_LASTS_NS * 1e-6) + " ms, got " + number(ns * 1e-6));
    };
    for (int i = 0; i < N_PROGRAM_KINDS; ++i) lasts(NAMES[i], lasts_ns[i]);
    for (uint64_t ns : run_ns) lasts("forward", ns);
    for (uint64_t ns : chunk_ns) lasts("chunk", ns);
    for (uint64_t ns : arrival_ns) lasts("hand_off", ns);
    if (!(run_ns_per_position >= 0 && run_ns_per_position <= 1e6))
        throw Error("[device] a position should add 0 to 1 ms to a program, got " +
                    number(run_ns_per_position * 1e-6));
    if (position_offset < 0 || position_offset > 1 << 30)
        throw Error("[device] a position offset should be from 0 to 2^30, got " +
                    std::to_string(position_offset));
    const double last_ns = (run_ns.empty() ? 0 : run_ns.back()) +
                           run_ns_per_position * (double(position_offset) + std::max(1, context) - 1);
    if (last_ns > MAX_LASTS_NS)
        throw Error("[device] a program should last " + number(MAX_LASTS_NS * 1e-6) +
                    " ms at most, the one at the end of the context lasts " + number(last_ns * 1e-6) + " ms");
    if (!(jitter >= 0 && jitter <= 0.5f))
        throw Error("[device] jitter should be from 0 to 0.5, got " + number(jitter));
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
        case PaceSpec::Kind::paced:
            return std::make_unique<PacedPace>(spec, lane);
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
    return kind == ProgramKind::forward || kind == ProgramKind::publish || kind == ProgramKind::chunk ||
           kind == ProgramKind::hand_off || kind == ProgramKind::verdict;
}

uint64_t Pace::begins(uint64_t) const noexcept { return now_ns(); }

uint64_t Pace::book(const Execution& execution) noexcept { return hold(execution); }

bool Pace::sleep_until(uint64_t end_ns, ProgramKind kind, uint32_t window) noexcept {
    Word& over = part_of_a_run(kind) ? runs_over_ : all_over_;
    for (const uint64_t ahead : {NAP_NS, SPIN_NS}) {
        if (now_ns() + ahead >= end_ns) continue;
        appointment_.make(end_ns - ahead);
        bool is_over = false;
        for (uint64_t now = now_ns(); !is_over && now + ahead < end_ns; now = now_ns())
            is_over = over.wait_ge(window, end_ns - ahead - now, 0);
        appointment_.keep();
        if (is_over) return false;
    }
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
        const size_t late = std::min<uint64_t>((now_ns - end_ns) / PaceKept::LATE_STEP_NS, LATE_STEPS - 1);
        kept.late[late].fetch_add(1, std::memory_order_relaxed);
    }
}

PaceKept Pace::kept(ProgramKind kind) const {
    const Kept& kept = kept_[static_cast<int>(kind)];
    const auto read = [](const std::atomic<uint64_t>& n) { return n.load(std::memory_order_relaxed); };
    std::vector<uint32_t> late;
    for (const auto& n : kept.late) late.push_back(n.load(std::memory_order_relaxed));
    while (!late.empty() && late.back() == 0) late.pop_back();
    return {read(kept.programs),      read(kept.held_ns),       read(kept.overruns), read(kept.over_ns),
            read(kept.worst_over_ns), read(kept.worst_late_ns), std::move(late)};
}

void Pace::count_anew() noexcept {
    for (Kept& kept : kept_) {
        for (auto& n : kept.late) n.store(0, std::memory_order_relaxed);
        for (auto* n : {&kept.programs, &kept.held_ns, &kept.overruns, &kept.over_ns, &kept.worst_over_ns,
                        &kept.worst_late_ns})
            n->store(0, std::memory_order_relaxed);
    }
}

// ---- even

uint64_t EvenPace::hold(const Execution& e) noexcept {
    const uint64_t lasts_ns = lasts_ns_[static_cast<int>(e.kind)], from_ns = now_ns();
    if (!lasts_ns) return from_ns;
    const uint64_t end_ns = e.start_ns + lasts_ns;
    const bool whole = sleep_until(end_ns, e.kind, e.window);
    const uint64_t ended_ns = now_ns();
    if (whole) note_hold(e.kind, from_ns, end_ns, ended_ns);
    return ended_ns;
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

uint64_t DelayedPace::hold(const Execution& execution) noexcept {
    delay(execution.kind, execution.window);
    return now_ns();
}

void DelayedPace::delay(ProgramKind kind, uint32_t window) noexcept {
    const uint64_t ns = delay_ns(spec_, lane_, kind, counts_[static_cast<int>(kind)]++);
    if (!ns) return;
    const uint64_t from_ns = now_ns();
    if (sleep_until(from_ns + ns, kind, window)) note_hold(kind, from_ns, from_ns + ns, now_ns());
}

// ---- paced

uint64_t PacedPace::lasts_ns(const PaceSpec& spec, const Execution& e) {
    const auto by_rows = [&e](const std::vector<uint64_t>& table) -> uint64_t {
        return table.empty() ? 0 : table[std::clamp<size_t>(e.rows, 1, table.size()) - 1];
    };
    switch (e.kind) {
        case ProgramKind::forward:
            return by_rows(spec.run_ns) +
                   static_cast<uint64_t>(spec.run_ns_per_position * (e.position + spec.position_offset));
        case ProgramKind::chunk:
            return by_rows(spec.chunk_ns);
        case ProgramKind::hand_off:
            return spec.arrival_ns[static_cast<int>(e.arrival)];
        default:
            return spec.lasts_ns[static_cast<int>(e.kind)];
    }
}

uint64_t PacedPace::jittered(uint64_t ns, ProgramKind kind) noexcept {
    if (spec_.jitter <= 0) return ns;
    const uint64_t place = mix(spec_.seed + mix(uint64_t(lane_) << 8 | uint64_t(kind)));
    const uint64_t bits = mix(place + counts_[static_cast<int>(kind)]++);
    const double uniform = double(bits >> 11) * 0x1p-52 - 1;  // [-1, 1)
    return static_cast<uint64_t>(double(ns) * (1 + uniform * spec_.jitter));
}

/// When it ends; counted against the model if it is over already.
uint64_t PacedPace::end_of(const Execution& e, uint64_t now) noexcept {
    const uint64_t lasts = jittered(lasts_ns(spec_, e), e.kind);
    switch (e.kind) {
        case ProgramKind::hand_off:  // the device is not taken by it: others may run while the rows travel
            return std::max({e.start_ns + lasts, e.launched_ns, free_ns_});
        case ProgramKind::publish:
        case ProgramKind::verdict:
            break;
        default:
            if (!lasts) return now;  // the program behind it makes up for it
    }
    const uint64_t end_ns = begins(e.start_ns) + lasts;
    if (lasts && now > end_ns) note_hold(e.kind, now, end_ns, now);
    return free_ns_ = lasts ? std::max(now, end_ns) : end_ns;
}

uint64_t PacedPace::book(const Execution& e) noexcept {
    const uint64_t now = now_ns(), end_ns = end_of(e, now);
    if (end_ns > now) note_hold(e.kind, now, end_ns, end_ns);
    return end_ns;
}

uint64_t PacedPace::hold(const Execution& e) noexcept {
    const uint64_t now = now_ns(), end_ns = end_of(e, now);
    uint64_t until_ns = end_ns;
    if (e.kind == ProgramKind::verdict) until_ns -= std::min(HEAD_START_NS, end_ns - e.start_ns);
    if (until_ns <= now) return end_ns;
    if (!sleep_until(until_ns, e.kind, e.window)) return free_ns_ = now_ns();
    note_hold(e.kind, now, until_ns, now_ns());
    return end_ns;
}

}  // namespace strata
