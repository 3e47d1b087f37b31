#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/gguf.h"
#include "model/ops.h"

namespace strata {

enum class LayerKind : uint8_t { attention, delta };

struct Dims {
    int n_layers = 0;  // of the trunk
    int n_embd = 0;
    int n_vocab = 0;
    int context = 0;  // trained
    int n_heads = 0, n_kv_heads = 0, head_dim = 0, n_rot = 0;
    int n_ff = 0;
    float norm_eps = 0;
    float rope_base = 10000;
    DeltaShape delta;  // all zero without Gated DeltaNet layers
};

/// The rows that a program runs, as every layer needs them.
struct Batch {
    int rows = 0;
    int position = 0;            // of row 0
    const float* cos = nullptr;  // [rows, n_rot / 2]
    const float* sin = nullptr;
};

/// What one layer keeps of a sequence; which part is used depends on its kind.
struct LayerState {
    KvCache kv;
    DeltaState delta;
    DeltaRecord record;
    DeltaState advance;
};

/// A model's mathematics and weights: one file an architecture, written in Ops, ignorant of stages, threads
/// and windows. Weights are views into the mapped file.
class Architecture {
  public:
    /// Throws Error naming an architecture that is not supported, or the key or tensor that is missing or
    /// wrong.
    static std::unique_ptr<Architecture> load(std::shared_ptr<const GgufFile> file);
    virtual ~Architecture() = default;

    const Dims& dims() const { return dims_; }
    virtual LayerKind kind(int layer) const = 0;
    /// x [rows, n_embd] becomes the layer's output, in place.
    virtual void layer(int layer, LayerState& state, const Batch& batch, float* x, Workspace scratch,
                       Ops& ops) const = 0;
    /// Floats of scratch that a layer (the draft layer too) needs for `rows` rows.
    virtual int64_t scratch_floats(int rows) const = 0;
    /// Bytes of weights that one row reads in a layer.
    virtual uint64_t layer_bytes(int layer) const = 0;

    /// 1 / theta_i, [n_rot / 2]: cos and sin of position * inv_freq rotate pair i.
    const std::vector<double>& inv_freq() const { return inv_freq_; }

    /// The file that the weights are views of.
    const GgufFile& file() const { return *file_; }

    const Weight& embedding() const { return embedding_; }
    const Weight& head() const { return head_; }
    const float* output_norm() const { return output_norm_.data(); }

    virtual bool has_draft_layer() const { return false; }
    virtual uint64_t draft_bytes() const { return 0; }
    /// One pass of the draft layer: hidden [rows, n_embd] are the rows h_p (after the output norm), tokens
    /// those at p + 1; out [rows, n_embd] is the layer's normed output: its own next hidden rows, and what
    /// the head reads. batch.position is the rotary position p + 1 of row 0; kv cells are written at `cell` +
    /// r.
    virtual void draft(const float*, const int32_t*, LayerState&, const Batch&, int, float*, Workspace,
                       Ops&) const {}
    virtual const Weight& draft_head() const { return head_; }

  protected:
    explicit Architecture(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}
    /// Reads the keys and the tensors that every architecture has.
    void load_common(const std::string& prefix);

    std::shared_ptr<const GgufFile> file_;
    Dims dims_;
    Weight embedding_, head_;
    std::vector<float> output_norm_;
    std::vector<double> inv_freq_;
};

std::unique_ptr<Architecture> load_llama(std::shared_ptr<const GgufFile> file);
std::unique_ptr<Architecture> load_qwen35(std::shared_ptr<const GgufFile> file);

}  // namespace strata
