#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "device/cpu_device.h"
#include "device/cpu_ops.h"
#include "split/hand_off.h"
#include "split/sampler.h"
#include "trace/recorder.h"

namespace strata {

/// The most rows of a window; a chunk of a prompt may have more.
constexpr int MAX_WINDOW_ROWS = 8;
static_assert(KernelTimes::MOST_ROWS == MAX_WINDOW_ROWS);

/// One line of tokens, at one address for its whole life: tokens[i] stands at position i. The control thread
/// appends at verdicts; programs read only positions that were there before they were submitted (the queue
/// orders that).
struct TokenLine {
    explicit TokenLine(int capacity) : tokens(capacity) {}
    Buffer<int32_t> tokens;
    int count = 0;  // control thread's
};

/// What a forward program runs on: staged before it is submitted.
struct ForwardInputs {
    uint32_t window = 0;  // its epoch on every boundary
    int rows = 0;
    int position = 0;                               // of row 0
    std::array<int32_t, MAX_WINDOW_ROWS> tokens{};  // of a window
    const int32_t* chunk_tokens = nullptr;          // of a chunk, instead
    bool prompt = false;                            // no picks: a chunk or a prompt window
    bool all_logits = false;                        // eval: logits of every row, no picks
    bool guess = false;  // may be dropped while it runs: it looks between two layers
    Arrival arrival = Arrival::staged;
    uint64_t launched_ns = 0;
    int state = 0;        // index of the recurrent state read
    int advance_to = -1;  // chunk: index of the recurrent state written; a window is committed later
};

/// What a commit or an undo replays: the first `rows` rows of the window that its slot holds. An undo has
/// inputs of its own, so that it can be queued while the speculative commit that it follows still is.
struct CommitInputs {
    uint32_t window = 0;
    int rows = 0;
    int from = 0;
    int to = 0;
    bool speculative = false;
};

struct StageShape {
    int index = 0;
    int n_stages = 1;
    int first_layer = 0;
    int last_layer = 0;  // inclusive
    int context = 0;
    int chunk = 0;     // rows of a chunk slot
    int n_slots = 0;   // of windows; see Stage::allocate_windows
    int n_states = 0;  // recurrent states kept
    KvType kv_type = KvType::F16;
    bool last() const { return index == n_stages - 1; }
};

/// Chunks of a prompt have slots of their own behind the windows': one is read while the next is written.
constexpr int CHUNK_SLOTS = 2;

/// A contiguous range of layers on one device: weights, K/V cells, recurrent states, and a verifier per slot.
/// Its programs run in the order they are submitted; the forward pass never writes recurrent state, only a
/// commit does (a chunk's commit is part of its program).
class Stage {
  public:
    Stage(const Architecture& model, const StageShape& shape, const CpuSpec& spec,
          const cpu::Kernels& kernels, Word& done, Recorder& recorder);

    /// Once, before anything runs: a verifier for each slot, chunks' included, and recurrent states.
    void allocate_windows(int n_slots, int n_states);
    /// What that would take, with the hand-offs behind this stage.
    uint64_t window_bytes(int n_slots, int n_states) const;

    const StageShape& shape() const { return shape_; }
    Device& device() { return *device_; }

    /// Boundaries, by slot: set once at load.
    void connect(std::vector<std::unique_ptr<HandOff>>* in, std::vector<std::unique_ptr<HandOff>>* out) {
        in_ = in;
        out_ = out;
    }
    /// Last stage: where hidden rows (after the output norm) are kept by position, [context, n_embd]; null
    /// for nobody.
    void keep_hidden(float* by_position) { hidden_by_position_ = by_position; }
    /// Last stage: how picks are made, and the tokens that penalties look back on. Set while nothing runs.
    void set_sampling(const Sampling& sampling, const TokenLine* line) {
        sampling_ = sampling;
        line_ = line;
    }

    ForwardInputs& forward_inputs(int slot) { return verifiers_[slot].forward; }
    CommitInputs& commit_inputs(int slot) { return verifiers_[slot].commit; }
    CommitInputs& undo_inputs(int slot) { return verifiers_[slot].undo; }
    Program& forward_program(int slot) { return verifiers_[slot].run_forward; }
    Program& commit_program(int slot) { return verifiers_[slot].run_commit; }
    Program& undo_program(int slot) { return verifiers_[slot].run_undo; }

    /// Nobody wants the rows of windows up to `window` any more: programs of theirs that still run or are
    /// queued skip what they can. Any thread. Relaxed: it only saves work, whatever is seen of it and when.
    void drop_up_to(uint32_t window) { dropped_.store(window, std::memory_order_relaxed); }

    /// The last stage's picks after each row of a finished window, and eval's [rows, n_vocab] / [rows,
    /// n_embd].
    const std::array<int32_t, MAX_WINDOW_ROWS>& picks(int slot) const { return verifiers_[slot].picks; }
    const float* logits(int slot) const { return verifiers_[slot].logits.data(); }
    const float* hidden(int slot) const { return verifiers_[slot].hidden; }

    /// The state before any token. Nothing may be in flight.
    void clear_state(int state);
    /// FNV-1a over each layer's recurrent state, or its K/V cells below `length`.
    std::vector<uint64_t> fingerprint(int state, int length) const;

    uint64_t weight_bytes() const { return weight_bytes_; }
    uint64_t kv_bytes() const;
    uint64_t state_bytes() const;
    uint64_t buffer_bytes() const;
    /// Of these: what the recurrent states beyond one cost (snapshots), and the verifiers and hand-offs of
    /// all slots.
    uint64_t snapshot_bytes() const { return states_.empty() ? 0 : state_bytes() - states_[0].size_bytes(); }
    uint64_t slot_bytes() const;

    /// Kernels are timed, or not, from now on; what was measured is forgotten. Nothing may be in flight.
    void time_kernels(bool on) {
        times_kernels_ = on;
        kernel_times_.clear();
    }
    /// Nothing may be in flight.
    const KernelTimes& kernel_times() const { return kernel_times_; }

    /// Tests: the program of that window (0: of the next one) throws.
    void inject_error(int64_t window) { injected_.store(window, std::memory_order_relaxed); }
    /// Tests: the next window's program stands still until it is dropped.
    void inject_stall() { stalls_.store(true, std::memory_order_relaxed); }

  private:
    struct Verifier;
    struct ForwardProgram final : CpuProgram {
        Stage* stage = nullptr;
        int slot = 0;
        void run(Team& team) override { stage->forward(team, slot); }
    };
    struct CommitProgram final : CpuProgram {
        Stage* stage = nullptr;
        int slot = 0;
        bool undo = false;
        void run(Team& team) override { stage->commit(team, slot, undo); }
    };
    struct Verifier {
        ForwardInputs forward;
        CommitInputs commit, undo;
        ForwardProgram run_forward;
        CommitProgram run_commit, run_undo;
        Buffer<float> records;  // one after the other, by Gated DeltaNet layer
        Buffer<float> logits;   // last stage: [MAX_WINDOW_ROWS, n_vocab]
        Buffer<float> own_hidden;
        float* hidden = nullptr;
        std::array<int32_t, MAX_WINDOW_ROWS> picks{};
    };
    struct Cells {
        Buffer<uint8_t> k, v;
    };

    bool is_chunk(int slot) const { return slot >= shape_.n_slots; }
    int slot_rows(int slot) const { return is_chunk(slot) ? shape_.chunk : MAX_WINDOW_ROWS; }
    /// Of a verifier of so many rows.
    int64_t record_floats(int rows) const { return n_delta_ * model_.dims().delta.record_floats(rows); }
    int64_t state_floats() const {
        const DeltaShape& d = model_.dims().delta;
        return n_delta_ * (d.state_floats() + d.history_floats());
    }
    KernelTimes* times_of(const Member& me) {
        return times_kernels_ && me.index == 0 ? &kernel_times_ : nullptr;
    }
    DeltaState delta_state(int state, int delta_index);
    LayerState layer_state(int layer, const Verifier& verifier, int slot);
    bool wait_for_input(int slot);
    std::optional<uint64_t> arrive(int slot, uint64_t begun_ns);
    void finish(int slot, uint64_t arrived_ns, uint64_t begun_ns);
    void forward(Team& team, int slot);
    void note_progress(int slot);
    void run_layers(const Member& me, int slot);
    void run_head(const Member& me, Verifier& verifier, const float* x, CpuOps& ops);
    void pick_rows(const Member& me, Verifier& verifier);
    void commit(Team& team, int slot, bool undo);
    bool dropped(const ForwardInputs& inputs) const {
        return inputs.window <= dropped_.load(std::memory_order_relaxed);
    }
    bool stop_here(const Member& me, const ForwardInputs& inputs);
    void meet_injections(const ForwardInputs& inputs);

    const Architecture& model_;
    StageShape shape_;
    EventLane& events_;
    CpuScratch scratch_;
    Buffer<float> workspace_, x_, cos_, sin_;
    std::vector<Cells> cells_;           // by attention layer of the stage
    std::vector<Buffer<float>> states_;  // [n_states]: by Gated DeltaNet layer, s then history
    std::vector<int> index_in_kind_;     // by layer - first_layer
    int n_delta_ = 0;
    uint64_t weight_bytes_ = 0;
    std::vector<Verifier> verifiers_;
    std::vector<std::unique_ptr<HandOff>>*in_ = nullptr, *out_ = nullptr;
    float* hidden_by_position_ = nullptr;
    Sampling sampling_;
    const TokenLine* line_ = nullptr;
    std::vector<Sampler> samplers_;  // one a thread
    bool times_kernels_ = false;
    KernelTimes kernel_times_;
    std::atomic<uint32_t> dropped_{0};
    bool stops_ = false;  // the team's: member 0 saw that the window was dropped
    std::atomic<int64_t> injected_{-1};
    std::atomic<bool> stalls_{false};
    std::unique_ptr<CpuDevice> device_;  // last: its worker goes first
};

/// cos and sin [rows, n_rot / 2] of the positions from `position` on, this member's share of the rows.
void rotary_angles(const Rope& rope, int position, int rows, const Member& me, float* cos, float* sin);

}  // namespace strata
