#pragma once

#include <cstdint>
#include <initializer_list>

#include "kernels/cpu/kernels.h"

namespace strata {

using cpu::KvType;
using cpu::Weight;

/// K/V cells of one attention layer: k and v [n_kv_heads, context, head_dim], the cells of a head contiguous.
struct KvCache {
    void* k = nullptr;
    void* v = nullptr;
    KvType type = KvType::F16;
    int context = 0;
};

/// Recurrent state of one Gated DeltaNet layer. A forward pass reads it; only a commit writes one.
struct DeltaState {
    float* s = nullptr;        // [n_v_heads, k_dim, v_dim]
    float* history = nullptr;  // [taps - 1, channels]: the newest inputs of the convolution, oldest first
};

/// What a window leaves behind in one Gated DeltaNet layer, so that its first n rows can be committed later.
struct DeltaRecord {
    float* u = nullptr;      // [rows, channels]: inputs of the convolution
    float* k = nullptr;      // [rows, n_k_heads, k_dim], normalised
    float* v = nullptr;      // [rows, n_v_heads, v_dim]
    float* decay = nullptr;  // [rows, n_v_heads]: exp(g)
    float* beta = nullptr;   // [rows, n_v_heads]
};

struct DeltaShape {
    int n_k_heads = 0, n_v_heads = 0, k_dim = 0, v_dim = 0, taps = 0;
    bool interleaved = true;  // v head h reads k head h % n_k_heads; else h / (n_v_heads / n_k_heads)
    int channels() const { return 2 * n_k_heads * k_dim + n_v_heads * v_dim; }
    int64_t state_floats() const { return int64_t{1} * n_v_heads * k_dim * v_dim; }
    int64_t history_floats() const { return int64_t{1} * (taps - 1) * channels(); }
    /// Floats of a DeltaRecord of `rows` rows.
    int64_t record_floats(int rows) const {
        return int64_t{1} * rows * (channels() + n_k_heads * k_dim + n_v_heads * (v_dim + 2));
    }
    DeltaRecord record_at(float* base, int rows) const;
};

/// y = w x for the rows of a batch.
struct Projection {
    const Weight* weight;
    float* out;  // [rows, n_out]
    int out_stride;
    /// Quantised weights multiply activations in int8. Where the inputs have heavy tails, or the products go
    /// straight into the residual rows or the logits, the inputs are kept in two int8 terms instead (about 15
    /// bits).
    bool fine = false;
};

/// One attention mixer, from projected q, k, v to its heads' outputs.
struct AttentionOp {
    const float* q = nullptr;       // [rows, n_heads], q_stride floats apart a head
    int q_stride = 0;               // head_dim, or 2 * head_dim where a gate follows each head's query
    bool gated = false;             // out *= sigmoid(gate), gate = q + head_dim
    const float* k = nullptr;       // [rows, n_kv_heads, head_dim]
    const float* v = nullptr;       // [rows, n_kv_heads, head_dim]
    const float* q_norm = nullptr;  // [head_dim] or null
    const float* k_norm = nullptr;
    float norm_eps = 0;
    int n_heads = 0, n_kv_heads = 0, head_dim = 0, n_rot = 0;
    bool adjacent_pairs = false;
    const float* cos = nullptr;  // [rows, n_rot / 2]
    const float* sin = nullptr;
    KvCache cache;
    int position = 0;  // of row 0: row r writes cell position + r and sees cells 0 .. position + r
    float scale = 1;
    float* out = nullptr;  // [rows, n_heads, head_dim]
};

/// One Gated DeltaNet mixer over projected inputs (gguf-models: u, z, b, a of the same normed row).
struct DeltaOp {
    DeltaShape shape;
    const float* z = nullptr;        // [rows, n_v_heads, v_dim]
    const float* b = nullptr;        // [rows, n_v_heads]
    const float* a = nullptr;        // [rows, n_v_heads]
    const float* conv = nullptr;     // [taps, channels]
    const float* dt_bias = nullptr;  // [n_v_heads]
    const float* ssm_a = nullptr;    // [n_v_heads]
    const float* norm = nullptr;     // [v_dim]
    float norm_eps = 0;
    DeltaState state;      // read
    DeltaRecord record;    // u is given; the rest is written
    DeltaState advance;    // where the state after all rows is written (a chunk), or nulls (a window: commit
                           // comes later)
    float* out = nullptr;  // [rows, n_v_heads, v_dim]
};

/// How a router's logits become weights of experts.
enum class Gating : uint8_t {
    softmax = 1,            // over all experts
    sigmoid = 2,            // of each
    softmax_of_chosen = 3,  // over those that were chosen
};

/// A mixture of experts: every row goes to the n_used of n experts with the largest logits.
struct ExpertShape {
    int n = 0;  // 0: the model is dense
    int n_used = 0;
    int n_ff = 0;         // of one expert
    int n_ff_shared = 0;  // of the expert that sees every row; 0: there is none
    Gating gating = Gating::softmax;
    bool normalised = true;  // the weights of the chosen are divided by their sum
    float scale = 1;         // of the weights
};

/// The same matrix of every expert, stride_bytes apart.
struct ExpertStack {
    Weight first;
    size_t stride_bytes = 0;
    Weight of(int expert) const {
        Weight weight = first;
        weight.data = static_cast<const uint8_t*>(first.data) + expert * stride_bytes;
        return weight;
    }
};

/// out = sum of weight_e * down_e (silu(gate_e x) * up_e x) over the chosen experts e, best first. Of equal
/// logits the lower expert is the better.
struct ExpertsOp {
    ExpertShape shape;
    const ExpertStack* gate = nullptr;  // [n_ff, n_embd] each
    const ExpertStack* up = nullptr;
    const ExpertStack* down = nullptr;  // [n_embd, n_ff]
    float* logits = nullptr;            // [rows, n], of the router; spoilt
    const float* x = nullptr;           // [rows, n_embd]
    float* out = nullptr;               // [rows, n_embd]
};

/// The operations that an architecture is written in. An implementation runs them on its device, in order;
/// each is row-invariant (kernels/cpu/kernels.h). On the CPU every thread of a team walks through the same
/// list of calls.
class Ops {
  public:
    virtual ~Ops() = default;
    virtual void embed(const Weight& table, const int32_t* tokens, int rows, float* out) = 0;
    virtual void copy(const float* x, float* out, int64_t n) = 0;
    virtual void add(float* x, const float* y, int64_t n) = 0;
    /// x [rows, n] += y [n] in every row.
    virtual void add_row(float* x, const float* y, int rows, int n) = 0;
    /// x [rows, n] += sigmoid(gate [rows]) * y [rows, n].
    virtual void add_gated(float* x, const float* gate, const float* y, int rows, int n) = 0;
    virtual void norm(const float* x, const float* weight, int rows, int n, float eps, float* out,
                      int out_stride = 0) = 0;
    /// All projections of one input [rows, n_in].
    virtual void project(std::initializer_list<Projection> projections, const float* x, int rows) = 0;
    virtual void silu_mul(const float* gate, const float* up, float* out, int64_t n) = 0;
    virtual void experts(const ExpertsOp& op, int rows) = 0;
    virtual void attention(const AttentionOp& op, int rows) = 0;
    virtual void delta(const DeltaOp& op, int rows) = 0;
    /// to = from advanced by the first n rows of the record.
    virtual void delta_commit(const DeltaShape& shape, const DeltaState& from, const DeltaState& to,
                              const DeltaRecord& record, int n) = 0;
};

/// A bump allocator over a stage's scratch. Copied by value, so each thread of a team carves the same
/// pointers.
class Workspace {
  public:
    Workspace() = default;
    Workspace(float* base, int64_t floats) : next_(base), left_(floats) {}
    /// n floats, 64-byte aligned.
    float* take(int64_t n) {
        const int64_t rounded = round(n);
        float* taken = next_;
        next_ += rounded;
        left_ -= rounded;
        return left_ >= 0 ? taken : overflow();
    }
    static int64_t round(int64_t n) { return (n + 15) & ~int64_t{15}; }

  private:
    [[noreturn]] static float* overflow();
    float* next_ = nullptr;
    int64_t left_ = 0;
};

}  // namespace strata
