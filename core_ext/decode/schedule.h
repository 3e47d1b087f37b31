#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/window.h"

namespace strata {

/// One step that the schedule has decided. Prints as "s1 launch w7", "s0 commit w6 rows=3".
struct Action {
    enum class Kind : uint8_t { launch, commit };
    Kind kind = Kind::launch;
    int stage = 0;
    uint32_t window = 0;
    int slot = 0;
    int rows = 0;        // commit: rows committed
    bool ahead = false;  // launch: before its input is there (overlapped)
    std::string str() const;
};

/// What a stage reports back.
struct Done {
    enum class Kind : uint8_t { run, commit };
    Kind kind = Kind::run;
    int stage = 0;
    uint32_t window = 0;
    int slot = 0;
};

/// Is a window's input on `stage` promised? The one fact that the overlap changes: serial = the writer has
/// finished, overlapped = the writer is queued, one stage ahead only (the writer itself waits for nobody).
/// Chunks of a prompt are always serial: their programs may take longer than a wait's bound.
bool input_promised(const Window& window, int stage, HandOffMode mode);

/// Decides what runs next: a state machine over windows, stages and slots that knows no device, no clock and
/// no memory. Facts come in through open(), done(), close(); decisions leave through next() and commit().
///
/// Guards (split-decoding: section 5): inputs are staged into a (stage, slot) only when every program queued
/// on it has finished, and a window is launched on stage k only when no run that reads that slot's hand-off
/// is outstanding on k+1.
class Schedule {
  public:
    static constexpr size_t MAX_IN_FLIGHT = 64;

    /// `last_id`: the newest window id that the stages have seen; it outlives the schedule, so that no epoch
    /// is used twice.
    Schedule(int n_stages, int n_slots, uint32_t& last_id);

    /// A new window behind those in flight, in the next slot of its ring.
    Window& open(WindowKind kind, int position, int rows);
    /// The next launch that is permitted now, oldest window and front stage first; it counts as carried out.
    std::optional<Action> next(HandOffMode mode);
    /// The commit of a window's first rows on one stage; it counts as carried out.
    Action commit(const Window& window, int stage, int rows);
    void done(const Done& done);
    /// The oldest window has had its verdict (or its last row read) and leaves; its commits may still run.
    void close();

    /// Oldest first.
    std::vector<Window>& windows() { return windows_; }
    const std::vector<Window>& windows() const { return windows_; }
    bool in_flight() const;
    int n_stages() const { return n_stages_; }
    uint32_t last_id() const { return last_id_; }
    /// Forgets everything in flight, after an error. Ids go on.
    void abandon();

  private:
    struct Place {  // programs outstanding on one (stage, slot)
        int runs = 0;
        int commits = 0;
    };
    Place& place(int stage, int slot) { return places_[stage * (n_slots_ + CHUNK_SLOTS) + slot]; }
    bool may_launch(size_t index, int stage, HandOffMode mode);

    const int n_stages_;
    const int n_slots_;
    uint32_t& last_id_;
    int last_slot_ = 0;
    int last_chunk_slot_ = 0;
    std::vector<Window> windows_;  // MAX_IN_FLIGHT reserved: references stay valid
    std::vector<Place> places_;
};

}  // namespace strata
