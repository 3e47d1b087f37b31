#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/word.h"
#include "device/appointment.h"

namespace strata {

/// What a device executes, as far as its pace is concerned. Three are parts of a forward program: the
/// hand-off comes before the layers, the publish behind them, and the verdict (reading the head's results
/// back) is the end of the last stage's.
enum class ProgramKind : uint8_t { forward, publish, commit, undo, draft, chunk, hand_off, verdict };
constexpr int N_PROGRAM_KINDS = 8;
const char* program_name(ProgramKind kind);
/// Throws Error.
ProgramKind program_kind(const std::string& name);

/// How the input of a forward program comes to it, known when it is launched.
enum class Arrival : uint8_t {
    staged,      // by the host: the first stage
    serial,      // from the stage before, which has finished; then the host launched this one
    overlapped,  // from the stage before; launched ahead, it waits on the ready word
    polled,      // from the stage before, which has finished; the host looks after several windows at a time
};
constexpr int N_ARRIVALS = 4;

/// One execution of a program.
struct Execution {
    ProgramKind kind = ProgramKind::forward;
    uint32_t window = 0;
    int rows = 0;
    int position = 0;          // of row 0 in the context
    uint64_t start_ns = 0;     // it has had its input since
    uint64_t launched_ns = 0;  // a hand-off: when the host launched its program
    Arrival arrival = Arrival::staged;
};

/// How a device paces its programs (split-decoding.md, section 9).
struct PaceSpec {
    enum class Kind : uint8_t {
        none,     // as fast as they go
        even,     // each lasts a fixed time from when it had its input: an emulation
        delayed,  // some come late, by seeded amounts: a test
        paced,    // as a described device would have it: an emulation
    };
    Kind kind = Kind::none;
    // even; paced: those that are not told below
    std::array<uint64_t, N_PROGRAM_KINDS> lasts_ns{};  // by ProgramKind; 0: not held
    // delayed; paced: of the jitter
    uint64_t seed = 0;
    uint32_t kinds =
        (1u << static_cast<int>(ProgramKind::hand_off)) - 1;  // a bit a ProgramKind; not its parts
    float chance = 0.25f;         // of a delay, at each place where there may be one
    uint64_t max_ns = 1'000'000;  // of one delay
    // paced
    std::string name;                               // of the rig
    std::vector<uint64_t> run_ns, chunk_ns;         // [rows - 1]; beyond the end as the last one
    double run_ns_per_position = 0;                 // more for each position before row 0 ..
    int position_offset = 0;                        // .. which stands so much later than it does here
    std::array<uint64_t, N_ARRIVALS> arrival_ns{};  // of a hand-off
    float jitter = 0;                               // each lasts up to this share longer or shorter

    static constexpr uint64_t MAX_LASTS_NS = 5'000'000'000;  // well within a reader's bounded wait
    static constexpr uint64_t MAX_DELAY_NS = 1'000'000'000;

    bool emulated() const { return kind == Kind::even || kind == Kind::paced; }
    /// "even 10 ms, commit 0.2 ms (emulated)", "delayed by seed 7 (test)"; empty for none.
    std::string label() const;
    /// Throws Error: times, a chance or kinds that can't be used, or a program at the end of so long a
    /// context that lasts too long.
    void check(int context) const;
};

/// How well a pace was kept, by kind of program. Programs that were cut are not counted.
struct PaceKept {
    uint64_t programs = 0;       // that were to be held
    uint64_t held_ns = 0;        // in all
    uint64_t overruns = 0;       // of them took longer to compute than they should have lasted:
    uint64_t over_ns = 0;        // in all ..
    uint64_t worst_over_ns = 0;  // .. and at most. The timing is then not what was asked for
    uint64_t worst_late_ns = 0;  // the latest return from a hold
    static constexpr uint64_t LATE_STEP_NS = 5'000;
    std::vector<uint32_t> late;  // holds by how late they ended, a step each; the last: as late or later
};

/// When a device's programs may go on and end. One a device; none for a plain one.
///
/// The device's worker calls delay() and hold(). They sleep and then spin for a moment, so that many stages
/// can share few cores. cut() may come from any thread.
class Pace {
  public:
    /// `lane`: the stage, or DRAFT_LANE. Null for PaceSpec::Kind::none.
    static std::unique_ptr<Pace> make(const PaceSpec& spec, int lane);
    virtual ~Pace() = default;

    /// At a place where a program may come late: before it looks at its input, before it uses it, before a
    /// payload is written.
    virtual void delay(ProgramKind kind, uint32_t window) noexcept = 0;
    /// After the work, before its result is reported: returns when the program may end, with that time.
    virtual uint64_t hold(const Execution& execution) noexcept = 0;
    /// A pace with a clock of its own: hold() returns the time that was modelled, which is a moment before
    /// now, so that one program being late makes none behind it late.
    virtual bool has_clock() const noexcept { return false; }
    /// When a program that had its input at `input_ns` begins.
    virtual uint64_t begins(uint64_t input_ns) const noexcept;
    /// hold() without the wait: when the program, whose work is done, will end.
    virtual uint64_t book(const Execution& execution) noexcept;
    /// False if it was cut.
    bool sleep_until(uint64_t end_ns, ProgramKind kind, uint32_t window) noexcept;

    /// The windows up to this one are over: what waits for the end of their forward programs, or of all their
    /// programs, now or later, waits no more.
    void cut(uint32_t window, bool all_programs) noexcept;
    PaceKept kept(ProgramKind kind) const;
    /// Between requests: what was counted is forgotten.
    void count_anew() noexcept;

  protected:
    void note_hold(ProgramKind kind, uint64_t from_ns, uint64_t end_ns, uint64_t now_ns) noexcept;

  private:
    static constexpr size_t LATE_STEPS = 256;
    // Each a figure of its own, written by the worker alone: nothing else hangs on them.
    struct Kept {
        std::atomic<uint64_t> programs{0}, held_ns{0}, overruns{0}, over_ns{0}, worst_over_ns{0},
            worst_late_ns{0};
        std::array<std::atomic<uint32_t>, LATE_STEPS> late{};  // holds by how late they ended
    };
    std::array<Kept, N_PROGRAM_KINDS> kept_;
    Appointment appointment_;
    Word runs_over_;  // forward programs of windows up to this one are cut
    Word all_over_;   // and all their others
};

/// Each program of a kind lasts the same time, counted from when it had its input. Its result is the real
/// one.
class EvenPace final : public Pace {
  public:
    explicit EvenPace(const PaceSpec& spec) : lasts_ns_(spec.lasts_ns) {}
    void delay(ProgramKind, uint32_t) noexcept override {}
    uint64_t hold(const Execution& execution) noexcept override;

  private:
    const std::array<uint64_t, N_PROGRAM_KINDS> lasts_ns_;
};

/// Programs come late by chance, so that orders that are rare in life become common: before their input is
/// looked at, before they use it, before a payload, before its ready word, before they end.
class DelayedPace final : public Pace {
  public:
    DelayedPace(const PaceSpec& spec, int lane) : spec_(spec), lane_(lane) {}
    void delay(ProgramKind kind, uint32_t window) noexcept override;
    uint64_t hold(const Execution& execution) noexcept override;

    /// The delay at the `count`-th place of this kind on a device: the same for the same arguments, short
    /// ones often, long ones rarely.
    static uint64_t delay_ns(const PaceSpec& spec, int lane, ProgramKind kind, uint64_t count);

  private:
    const PaceSpec spec_;
    const int lane_;
    std::array<uint64_t, N_PROGRAM_KINDS> counts_{};  // the worker's
};

/// The times of a described device. Costs are of programs, never of kinds of windows: those emerge.
///
/// Times are chained on a clock of the model: a program begins when it had its input or when the one before
/// it on the device ended, whichever is later, and both are modelled times. What the real work takes, and how
/// late a sleep ends, is lost only where it takes longer than the model.
class PacedPace final : public Pace {
  public:
    PacedPace(const PaceSpec& spec, int lane) : spec_(spec), lane_(lane) {}
    void delay(ProgramKind, uint32_t) noexcept override {}
    uint64_t hold(const Execution& execution) noexcept override;
    bool has_clock() const noexcept override { return true; }
    uint64_t begins(uint64_t input_ns) const noexcept override { return std::max(input_ns, free_ns_); }
    uint64_t book(const Execution& execution) noexcept override;

    /// How long a program lasts, without jitter; 0: as long as it takes.
    static uint64_t lasts_ns(const PaceSpec& spec, const Execution& execution);

    /// The host takes its share of a verdict's time for what it does itself (acceptance, launches) and for
    /// what the draft layer computes longer than it should: it is told so much before the end, and what it
    /// then launches counts from the end.
    static constexpr uint64_t HEAD_START_NS = 1'500'000;

  private:
    uint64_t jittered(uint64_t ns, ProgramKind kind) noexcept;
    uint64_t end_of(const Execution& execution, uint64_t now) noexcept;

    const PaceSpec spec_;
    const int lane_;
    uint64_t free_ns_ = 0;                            // the worker's: when the last program ended
    std::array<uint64_t, N_PROGRAM_KINDS> counts_{};  // the worker's
};

}  // namespace strata
