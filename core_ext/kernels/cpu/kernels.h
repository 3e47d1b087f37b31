#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/types.h"

namespace strata::cpu {

/// The row-invariance contract, on which the one invariant rests: the result for one row depends on that row,
/// the weights and absolute positions alone; never on how many rows are computed beside it, on its place
/// among them, on the thread count or on the range [begin, end) that a call covers. Every float reduction has
/// one order, fixed by the shape: PARTIAL_SUMS running sums (element or block i goes to sum i % PARTIAL_SUMS
/// .. as each kernel says), then a fixed tree. "avx2" and "avx512" give equal bits; "portable" has no fused
/// multiply-add and is a backend of its own.

constexpr int PARTIAL_SUMS = 16, ATTENTION_BLOCK = 64;

/// How a matrix product wants its activations.
enum class ActFormat : uint8_t {
    F32,     // as they are: F32, F16, BF16 weights
    Q8_32,   // int8 in blocks of 32, one float32 scale each (and the block's sum): Q4_0, Q4_1, Q5_0, Q5_1,
             // Q8_0, IQ4_NL weights
    Q8_256,  // int8 in blocks of 256: Q2_K .. Q6_K, IQ3_XXS, IQ3_S, IQ4_XS weights
};
ActFormat act_format(Type weight_type);
/// Bytes of one row of n_in activations; a multiple of 64.
size_t act_row_bytes(ActFormat format, int n_in);

/// A weight matrix [n_out, n_in], row-major blocks as the file holds them (no alignment beyond 1 byte
/// assumed).
struct Weight {
    Type type = Type::F32;
    const void* data = nullptr;
    int n_in = 0;
    int n_out = 0;
    size_t row_bytes = 0;
    explicit operator bool() const { return data != nullptr; }
};

enum class KvType : uint8_t { F32, F16 };

/// Attention of some queries over the cells of one kv head: softmax(scale * q k^T) v, with the queries' own
/// limits. Cells are taken in blocks of ATTENTION_BLOCK from position 0 with a running maximum and sum
/// (online softmax), so a query's result depends on its own n_visible only.
struct Attention {
    const float* q = nullptr;        // [n_queries, head_dim], rows q_stride apart
    size_t q_stride = 0;             // in floats
    const int* n_visible = nullptr;  // [n_queries], >= 1: cells 0 .. n_visible-1 are read
    int n_queries = 0;
    const void* k = nullptr;  // [cells, head_dim]
    const void* v = nullptr;  // [cells, v_dim]
    KvType kv_type = KvType::F16;
    int head_dim = 0;
    int v_dim = 0;
    float scale = 1;
    float* out = nullptr;  // [n_queries, v_dim], rows out_stride apart
    size_t out_stride = 0;
    float* scratch = nullptr;  // attention_scratch(n_queries, v_dim) floats
};
size_t attention_scratch(int n_queries, int head_dim, int v_dim);

/// One token through one head of the gated delta rule (Gated DeltaNet), state s [k_dim, v_dim] row-major:
///   s' = decay * s;  d = beta * (v - s'^T k);  s_out = s' + k d^T;  o = s_out^T q
/// s_in and s_out may be the same buffer. Sums over k_dim run in ascending order, one fused multiply-add
/// each.
struct DeltaStep {
    const float* s_in = nullptr;
    float* s_out = nullptr;
    const float* q = nullptr;  // [k_dim]; may be null when o is null (a commit needs no output)
    const float* k = nullptr;  // [k_dim]
    const float* v = nullptr;  // [v_dim]
    float decay = 1;           // exp(g)
    float beta = 0;
    float* o = nullptr;  // [v_dim] or null
    int k_dim = 0;
    int v_dim = 0;
};

/// One instruction set's kernels. All are pure, allocate nothing and throw nothing.
struct Kernels {
    const char* name;      // "avx512", "avx2", "portable": the instruction set
    const char* numerics;  // kernels with the same word here give equal bits: "fma16" or "portable"

    /// n values (a multiple of the block size) from blocks of any Type, also of those that have no product.
    void (*dequantize)(Type type, const void* blocks, int64_t n, float* out);
    /// One row of n_in activations into `format`. n_in is a multiple of the format's block, or padded with
    /// zeros.
    void (*quantize)(ActFormat format, const float* x, int n_in, void* out);
    /// out = x less what quantize(format, x) stands for, for a format in int8; out holds n_in rounded up to
    /// 256. Quantised in its turn it is the second term of x, which then has about 15 bits.
    void (*remainder)(ActFormat format, const float* x, int n_in, float* out);
    /// y[r, o] = sum_i w[o, i] x[r, i] for o in [out_begin, out_end), r in [0, rows): each weight is read
    /// once for up to 8 rows. x: rows of act_format(w.type), x_stride bytes apart; y[r * y_stride + o]
    /// (absolute o).
    void (*matmul)(const Weight& w, const void* x, size_t x_stride, int rows, int out_begin, int out_end,
                   float* y, size_t y_stride);

    /// out = x / sqrt(mean(x^2) + eps) * w; out may be x; w may be null (no weight).
    void (*rms_norm)(const float* x, const float* w, int n, float eps, float* out);
    /// out = x / sqrt(sum(x^2) + eps) * scale; out may be x.
    void (*l2_norm)(const float* x, int n, float eps, float scale, float* out);
    void (*add)(float* x, const float* y, int64_t n);                               // x += y
    void (*silu_mul)(const float* gate, const float* up, float* out, int64_t n);    // silu(gate) * up
    void (*sigmoid_mul)(const float* gate, const float* x, float* out, int64_t n);  // sigmoid(gate) * x
    /// Rotates n_rot values of x in place. adjacent: pairs (2i, 2i+1); else pairs (i, i + n_rot/2). cos, sin
    /// [n_rot/2].
    void (*rope)(float* x, int n_rot, bool adjacent, const float* cos, const float* sin);
    /// out[c] = silu(sum_j w[j, c] * u[j][c]) for channels [begin, end); u: `taps` row pointers, oldest
    /// first; w [taps, channels].
    void (*conv_silu)(const float* const* u, const float* w, int taps, int channels, int begin, int end,
                      float* out);
    void (*attention)(const Attention& a);
    void (*delta_step)(const DeltaStep& s);
    void (*store_f16)(const float* x, int n, uint16_t* out);  // round to nearest even, as F16C does

    /// The largest value's index, lowest index on ties; NaN never wins. n >= 1.
    int (*argmax)(const float* x, int n);
    /// out[i] = exp(scale * (x[i] - shift)); returns the sum in the fixed order. out may be x or null.
    float (*exp_sum)(const float* x, int n, float shift, float scale, float* out);

    /// Every 64-bit word added up: plain reading, to measure memory with. bytes: a multiple of 64.
    uint64_t (*read_all)(const void* data, size_t bytes);
};

/// The kernels of an instruction set by name, or the best one here for nullptr or "". Throws Error for a name
/// that is unknown or that this machine lacks. Read once per device; the environment is not consulted here.
const Kernels& kernels(const char* name = nullptr);
/// All that this machine can run, best first; "portable" is always among them.
std::vector<const Kernels*> kernels_here();

}  // namespace strata::cpu
