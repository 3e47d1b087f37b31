#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/window.h"

namespace strata {

/// One step that the schedule has decided. Prints as "s1 launch w7 ahead", "s0 commit w6 rows=3", "s0 undo w6
/// rows=1".
struct Action {
    enum class Kind : uint8_t { launch, commit, undo };
    Kind kind = Kind::launch;
    int stage = 0;
    uint32_t window = 0;
    int slot = 0;
    int rows = 0;              // commit, undo: rows committed
    bool ahead = false;        // launch: before its input is there (overlapped)
    bool speculative = false;  // commit: before the window's verdict
    std::string str() const;
};

/// What a stage reports back.
struct Done {
    enum class Kind : uint8_t { run, commit };  // an undo counts as a commit
    Kind kind = Kind::run;
    int stage = 0;
    uint32_t window = 0;
    int slot = 0;
};

/// What the switches allow.
struct Limits {
    HandOffMode mode = HandOffMode::serial;
    int spec_depth = 32;            // guesses stay on the first front stages
    float theta = 0;                // the gate: guesses whose estimate is below don't pass onto stage 0
    bool pipelined = false;         // several verify windows may be in flight
    bool prompt_pipelined = false;  // several windows of the prompt may be
};

/// Is a window's input on `stage` promised? The one fact that the overlap changes: serial = the writer has
/// finished, overlapped = the writer is queued, one stage ahead only (the writer itself waits for nobody).
/// Chunks of a prompt are always serial: their programs may take longer than a wait's bound.
bool input_promised(const Window& window, int stage, HandOffMode mode);

/// Decides what runs next: a state machine over windows, stages and slots that knows no device, no clock and
/// no memory. Facts come in through open(), done(), close(), drop_from(); decisions leave through next(),
/// commit() and undo().
///
/// In flight, oldest first: the window that the next verdict is about, and guesses behind it, each of which
/// assumes that the window ahead is accepted whole. A guess runs on front stages only, at least one stage
/// behind the window ahead, whose rows are all committed there before it (speculatively); prompt windows and
/// chunks follow one another the same way, with nothing to be speculative about.
///
/// Guards (split-decoding: section 5): inputs are staged into a (stage, slot) only when every program queued
/// on it has finished, and a window is launched on stage k only when what lies in that slot's hand-off has
/// been read on k+1.
class Schedule {
  public:
    static constexpr size_t MAX_IN_FLIGHT = 64;

    /// `last_id`: the newest window id that the stages have seen; it outlives the schedule, so that no epoch
    /// is used twice.
    Schedule(int n_stages, int n_slots, uint32_t& last_id);

    /// A new window behind those in flight, in the slot after the newest one's.
    Window& open(WindowKind kind, int position, int rows);
    /// The next step that is permitted now, oldest window and front stage first; it counts as carried out.
    std::optional<Action> next(const Limits& limits);
    /// The oldest guess that nothing but the gate keeps from being launched on stage 0.
    std::optional<size_t> at_gate(const Limits& limits);
    /// The commit of a window's first rows on one stage, after its verdict; it counts as carried out.
    Action commit(const Window& window, int stage, int rows);
    /// The replay of a window's first rows on a stage where it was committed speculatively; it counts as
    /// carried out.
    Action undo(const Window& window, int stage, int rows);
    void done(const Done& done);
    /// The oldest window has had its verdict (or its last row read) and leaves; its commits may still run.
    void close();
    /// The windows from `index` on leave without a verdict and are launched on no further stage; what they
    /// have running still holds its place.
    void drop_from(size_t index);

    /// Oldest first.
    std::vector<Window>& windows() { return windows_; }
    const std::vector<Window>& windows() const { return windows_; }
    bool in_flight() const;
    int n_stages() const { return n_stages_; }
    uint32_t last_id() const { return last_id_; }
    /// No window gets the next id: a draft chain was ordered for it, and is over.
    void skip_id() { ++last_id_; }
    /// Forgets everything in flight, after an error. Ids go on.
    void abandon();

  private:
    struct Place {  // programs outstanding on one (stage, slot)
        int runs = 0;
        int commits = 0;
        bool idle() const { return runs == 0 && commits == 0; }
    };
    Place& place(int stage, int slot) { return places_[stage * (n_slots_ + CHUNK_SLOTS) + slot]; }
    bool hand_off_free(size_t index, int stage);
    bool may_launch(size_t index, int stage, const Limits& limits);
    /// Has the window ahead left `stage`, or does none stand before this one?
    bool follows(size_t index, int stage) const;

    const int n_stages_;
    const int n_slots_;
    uint32_t& last_id_;
    int last_slot_ = 0;
    int last_chunk_slot_ = 0;
    std::vector<Window> windows_;  // MAX_IN_FLIGHT reserved: references stay valid
    std::vector<Place> places_;
};

}  // namespace strata
