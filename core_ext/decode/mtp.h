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
/// writes over them before anything reads them.
class Mtp {
  public:
    Mtp(const Architecture& model, int context, int max_rows, KvType kv_type, const CpuSpec& spec,
        const cpu::Kernels& kernels, Word& done, Recorder& recorder);

    /// [context, n_embd]: where the last stage leaves its rows after the output norm.
    float* hidden_by_position() { return hidden_.data(); }
    CpuDevice& device() { return *device_; }
    int caught_up() const { return caught_up_; }  // cells 0 .. caught_up - 1 hold true rows
    void forget_from(int position) { caught_up_ = std::min(caught_up_, position); }
    void set_sampling(const Sampling& sampling, const TokenLine* line) {
        sampling_ = sampling;
        line_ = line;
    }

    /// Queues the cells below `length`, whose hidden rows and next tokens are known.
    void catch_up(int length, uint32_t window);
    /// Queues a catch-up below `length` and a chain of `outputs` drafts for the positions from length + 1 on;
    /// the chain stops itself behind the first draft below `min_p`. One chain at a time.
    void chain(int length, int outputs, float min_p, uint32_t window);
    /// Are all outputs of the chain there (or skipped)?
    bool landed() const { return device_->finished() >= last_ticket_; }
    /// Drafts of a chain that has landed.
    int count() const { return count_.load(std::memory_order_acquire); }
    const Pick& output(int index) const { return outputs_[index]; }

    /// Eval: the draft logits [n_vocab] of one cell; nothing else may be queued.
    const float* eval_cell(int cell);

    uint64_t kv_bytes() const { return cells_k_.size_bytes() + cells_v_.size_bytes(); }
    uint64_t buffer_bytes() const;
    /// FNV-1a over the cells below `length`.
    uint64_t fingerprint(int length) const;

  private:
    /// One pass of the layer: a catch-up over true rows, or one step of a chain over the row it made itself.
    struct Pass final : CpuProgram {
        Mtp* mtp = nullptr;
        int step = 0;  // 0: catch-up
        int cell = 0;  // first cell
        int rows = 0;
        int output = -1;  // which draft the last row gives; -1: none
        float min_p = 0;
        uint32_t window = 0;
        void run(Team& team) override { mtp->run(team, *this); }
    };
    Pass& next_pass();
    void queue_catch_up(int length, bool drafts, float min_p, uint32_t window);
    void run(Team& team, const Pass& pass);
    void run_layer(const Member& me, const Pass& pass);
    void pick(const Pass& pass);

    const Architecture& model_;
    const KvType kv_type_;
    const int context_, max_rows_;
    EventLane& events_;
    CpuScratch scratch_;
    Buffer<float> hidden_, out_, workspace_, cos_, sin_, logits_;
    Buffer<uint8_t> cells_k_, cells_v_;
    Sampler sampler_;
    Sampling sampling_;
    const TokenLine* line_ = nullptr;
    int caught_up_ = 0;       // control thread's
    Ticket last_ticket_ = 0;  // control thread's
    // A pass is written before it is submitted and read by the worker; 64 may be queued, so a place is free
    // again by then.
    std::array<Pass, 64> passes_;
    uint64_t n_passes_ = 0;
    int32_t token_ = 0;     // worker's: the newest draft, which the next step reads
    bool stopped_ = false;  // worker's: a draft fell below min_p
    std::array<Pick, MAX_WINDOW_ROWS>
        outputs_{};  // written by the worker; read once landed() (release / acquire of Word)
    std::atomic<int> count_{0};
    std::unique_ptr<CpuDevice> device_;
};

}  // namespace strata
