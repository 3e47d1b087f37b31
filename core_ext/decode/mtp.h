#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "split/stage.h"

namespace strata {

/// The draft layer (NextN / MTP) on a queue of its own, with buffers of its own for everything that it
/// touches while a stage may run: cells, scratch, logits, sampler. It shares one buffer with the last stage,
/// the hidden rows by position, and there each position is written before the catch-up that reads it is
/// queued, and not again before that is done.
///
/// Cell i pairs the trunk's hidden row at position i with the token at i + 1 and predicts the token at i + 2.
/// Cells are never rolled back: a chain writes guesses behind the last true cell, and the next catch-up
/// writes over them before anything of a later chain reads them.
///
/// A *chain* predicts the tokens behind a row 0, one output a position, each step reading the row and the
/// token of the one before. It has an id; what an older chain still yields is thrown away.
class Mtp {
  public:
    struct Output {
        Pick pick;              // the layer's own
        int32_t token = 0;      // that the chain went on with: the pick, or what it was forced to
        uint64_t there_ns = 0;  // by the clock of a device that has one
    };

    Mtp(const Architecture& model, int context, int max_rows, int max_ahead, KvType kv_type,
        const CpuSpec& spec, const cpu::Kernels& kernels, Word& done, Recorder& recorder);

    /// [context, n_embd]: where the last stage leaves its rows after the output norm.
    float* hidden_by_position() { return hidden_.data(); }
    Device& device() { return *device_; }
    int caught_up() const { return caught_up_; }  // cells 0 .. caught_up - 1 hold true rows
    /// Nothing is queued.
    void forget_from(int position) {
        caught_up_ = std::min(caught_up_, position);
        forget_owed();
    }
    void set_sampling(const Sampling& sampling, const TokenLine* line) {
        sampling_ = sampling;
        line_ = line;
    }

    /// What is ordered from now on is so from then on at the earliest.
    void order_from(uint64_t ns) { order_from_ns_ = ns; }
    /// The cells below `length`, whose hidden rows and next tokens are known. Queued by pump_catch_up().
    void catch_up(int length, uint32_t window);
    /// The same while a chain goes on: as far as its next step will not write.
    void catch_up_behind_chain(int length, uint32_t window) {
        catch_up(std::min(length, length_ - 1 + ordered_), window);
    }
    /// A new chain: the cells below `length`, then outputs for the positions from length + 1 on, as many as
    /// are wanted. Its first tokens are `forced`, whatever the layer picks. It stops itself behind the first
    /// draft below `stop_below`.
    void begin_chain(int length, std::span<const int32_t> forced, float stop_below, uint32_t window);
    /// So many outputs of the chain, or as many as the context holds. Queued by pump().
    void want(int outputs) { wanted_ = std::max(wanted_, std::min(outputs, most_outputs_)); }
    /// Queues what is owed of the cells, a few passes at a time: what is queued can't be cut.
    void pump_catch_up();
    /// The same, and steps that are wanted behind it.
    void pump();
    /// Cells that are not queued yet stay as they are.
    void forget_owed() { owed_ = caught_up_; }
    /// No further step of the chain.
    void cut();

    /// Outputs of the chain that are there.
    int count() const { return landed() & COUNT; }
    /// No more will come.
    bool exhausted() const;
    const Output& output(int index) const { return outputs_[index % outputs_.size()]; }
    uint64_t next_due_ns() const;
    /// Nothing is owed, queued or running.
    bool idle() const { return caught_up_ >= owed_ && device_->finished() >= last_ticket_; }

    /// Eval: the draft logits [n_vocab] of one cell; nothing else may be queued.
    const float* eval_cell(int cell);

    /// Like a stage's; nothing may be queued.
    void time_kernels(bool on) {
        times_kernels_ = on;
        kernel_times_.clear();
    }
    const KernelTimes& kernel_times() const { return kernel_times_; }

    /// Tests: the next pass throws.
    void inject_error() { injected_.store(true, std::memory_order_relaxed); }

    uint64_t kv_bytes() const { return cells_k_.size_bytes() + cells_v_.size_bytes(); }
    uint64_t buffer_bytes() const;
    /// FNV-1a over the cells below `length`.
    uint64_t fingerprint(int length) const;

  private:
    /// One pass of the layer: a catch-up over true rows, or one step of a chain over the row that it made.
    struct Pass final : CpuProgram {
        Mtp* mtp = nullptr;
        bool step = false;
        int cell = 0;  // first cell
        int rows = 0;
        int output = -1;      // which output the last row gives; -1: none
        int32_t forced = -1;  // token of that output; -1: the pick
        float stop_below = 0;
        uint32_t chain = 0;
        uint32_t window = 0;
        uint64_t ordered_ns = 0;
        void run(Team& team) override { mtp->run(team, *this); }
    };
    static constexpr uint64_t STOPPED = 1u << 31, COUNT = STOPPED - 1;
    static constexpr Ticket MOST_QUEUED = 6;

    bool room() const { return last_ticket_ - device_->finished() < MOST_QUEUED; }
    Pass& next_pass(uint32_t window);
    void prepare_output(Pass& pass);
    uint32_t landed() const;
    void run(Team& team, const Pass& pass);
    void run_layer(const Member& me, const Pass& pass, bool wanted);
    void pick(const Pass& pass);
    void keep_pace(const Pass& pass);
    void show_in_time(const Pass& pass);

    const Architecture& model_;
    const KvType kv_type_;
    const int context_, max_rows_;
    EventLane& events_;
    CpuScratch scratch_;
    Buffer<float> hidden_, out_, row_, workspace_, cos_, sin_, logits_;
    Buffer<uint8_t> cells_k_, cells_v_;
    Sampler sampler_;
    Sampling sampling_;
    const TokenLine* line_ = nullptr;

    bool times_kernels_ = false;
    KernelTimes kernel_times_;

    // The control thread's.
    int caught_up_ = 0;  // cells that are queued or done
    int owed_ = 0;       // cells below it are to be
    uint32_t owed_window_ = 0;
    Ticket last_ticket_ = 0;
    int length_ = 0;        // of the chain: true cells when it began
    int wanted_ = 0;        // outputs
    int ordered_ = 0;       // of them queued
    int most_outputs_ = 0;  // that the context has positions for
    float stop_below_ = 0;
    uint32_t chain_window_ = 0;
    uint64_t order_from_ns_ = 0;
    std::vector<int32_t> forced_;
    // A pass is written before it is submitted and read by the worker; MOST_QUEUED may be outstanding.
    std::array<Pass, MOST_QUEUED> passes_;
    uint64_t n_passes_ = 0;

    // The worker's: the end of the chain, which the next step reads.
    int32_t token_ = 0;
    bool stopped_ = false;    // a draft fell below the floor
    uint64_t pass_ns_ = 0;    // what the last pass took to compute
    uint64_t lasted_ns_ = 0;  // and how long it lasted by the device's clock

    // Written by the control thread, read by the worker to skip steps of an older chain. Relaxed: what a late
    // step still yields carries its own chain's id, so the value only saves work.
    std::atomic<uint32_t> chain_{0};
    // (chain << 32) | stopped | outputs that are there: stored with release after the output was written,
    // loaded with acquire before it is read. Steps run in order, so an older chain's value never follows a
    // newer one's.
    std::atomic<uint64_t> landed_{0};
    std::atomic<bool> injected_{false};
    std::vector<Output> outputs_;  // a ring: longer than what is ahead and what penalties look back on
    std::unique_ptr<CpuDevice> device_;
};

}  // namespace strata
