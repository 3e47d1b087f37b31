#pragma once

#include <array>

#include "base/aligned.h"
#include "device/kernel_times.h"
#include "device/team.h"
#include "model/architecture.h"

namespace strata {

/// What the operations of one queue share: sized once for the most rows that a program runs, used by one
/// program at a time.
class CpuScratch {
  public:
    CpuScratch(const Architecture& model, int max_rows, int n_threads, const cpu::Kernels& kernels);
    uint64_t size_bytes() const;

  private:
    friend class CpuOps;
    void make_room_for_experts(const Dims& dims, int max_rows);
    static constexpr int QUERY_ROWS = 8;  // rows whose queries go through the cells of a kv head together
    const cpu::Kernels& kernels_;
    static constexpr int PIECE = 64;  // outputs of a fine projection computed at a time
    std::array<Buffer<uint8_t>, 3>
        activations_;           // by ActFormat: [2 * rows, act_row_bytes], the second terms behind
    Buffer<float> remainders_;  // [threads, remainder_floats_]
    Buffer<float> terms_;       // [threads, 2 * rows, PIECE]
    int remainder_floats_ = 0, max_rows_ = 0;
    Buffer<float> queries_, heads_;  // [n_kv_heads, rows, group, head_dim]
    Buffer<float> attention_;        // [threads, attention_floats_]
    Buffer<int> visible_;            // [threads, QUERY_ROWS * group]
    Buffer<float> convolved_, delta_q_, delta_s_;
    int64_t attention_floats_ = 0;
    int visible_ints_ = 0;
    // Experts: an item is a row at one of its experts; items lie by expert, then by row.
    Buffer<int> chosen_, item_;     // [rows, n_used]: expert, place among the items
    Buffer<int> first_item_;        // [n_experts + 1]
    Buffer<float> expert_weights_;  // [rows, n_used]
    std::array<Buffer<uint8_t>, 3>
        item_inputs_;                    // by ActFormat: [items, act_row_bytes], or two terms an item
    Buffer<float> item_gate_, item_up_;  // [items, n_ff]
    Buffer<float> item_out_;             // [items, n_embd]
};

/// Ops on one member of a CPU team. Each operation is split over the team by output element, row or head, so
/// every value is computed by one thread in the kernels' fixed order, and ends where the team meets.
class CpuOps final : public Ops {
  public:
    /// `times`: where member 0 notes what its kernels took, by `rows` of the program; null: not measured.
    CpuOps(const Member& member, CpuScratch& scratch, KernelTimes* times = nullptr, int rows = 0)
        : me_(member), s_(scratch), k_(scratch.kernels_), times_(times), rows_(rows) {
        if (times_) mark_ = now_ns();
    }
    /// What was done since the last note, or since these ops were made, was of this kind.
    void note(KernelKind kind) {
        if (times_) times_->add(rows_, kind, mark_);
    }

    void embed(const Weight& table, const int32_t* tokens, int rows, float* out) override;
    void copy(const float* x, float* out, int64_t n) override;
    void add(float* x, const float* y, int64_t n) override;
    void add_row(float* x, const float* y, int rows, int n) override;
    void add_gated(float* x, const float* gate, const float* y, int rows, int n) override;
    void norm(const float* x, const float* weight, int rows, int n, float eps, float* out,
              int out_stride) override;
    void project(std::initializer_list<Projection> projections, const float* x, int rows) override;
    void silu_mul(const float* gate, const float* up, float* out, int64_t n) override;
    void experts(const ExpertsOp& op, int rows) override;
    void attention(const AttentionOp& op, int rows) override;
    void delta(const DeltaOp& op, int rows) override;
    void delta_commit(const DeltaShape& shape, const DeltaState& from, const DeltaState& to,
                      const DeltaRecord& record, int n) override;

  private:
    void quantise(cpu::ActFormat format, bool fine, const float* x, int n_in, int rows);
    void multiply(const Projection& projection, const float* x, int rows);
    void multiply_fine(const Projection& projection, const void* input, size_t stride, int rows);
    void route(const ExpertsOp& op, int rows);
    void sort_items(const ExpertShape& shape, int rows);
    void place_inputs(const ExpertsOp& op, int rows);
    void multiply_items(const ExpertStack& stack, int n_experts, float* out);
    void activate_items(const ExpertsOp& op, int rows);
    void multiply_items_fine(const ExpertStack& stack, int n_experts, float* out);
    void mix_items(const ExpertsOp& op, int rows);
    std::pair<int64_t, int64_t> floats_share(int64_t n) const;
    void place_queries(const AttentionOp& op, int rows);
    void store_cells(const AttentionOp& op, int rows);
    void attend(const AttentionOp& op, int rows);
    void convolve(const DeltaOp& op, int rows);

    const Member me_;
    CpuScratch& s_;
    const cpu::Kernels& k_;
    KernelTimes* const times_;
    const int rows_;
    uint64_t mark_ = 0;
};

}  // namespace strata
