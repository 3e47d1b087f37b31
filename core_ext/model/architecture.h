#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/dims.h"
#include "model/gguf.h"
#include "model/ops.h"
#include "model/rope.h"

namespace strata {

enum class LayerKind : uint8_t { attention, delta };

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

/// The file of a model, and the one that holds its draft layer where that is a file of its own (else null).
struct ModelFiles {
    std::shared_ptr<const GgufFile> model, draft;
};

/// A model's mathematics and weights: one file an architecture, written in Ops, ignorant of stages, threads
/// and windows. Weights are views into the mapped files.
class Architecture {
  public:
    /// Throws Error naming an architecture that is not supported, the key or tensor that is missing or wrong,
    /// or what a draft layer's own file has otherwise than the model's (draft_file.h).
    static std::unique_ptr<Architecture> load(ModelFiles files);
    /// The names that `load` knows.
    static std::vector<std::string> known();
    /// Whether `load` copies a tensor since it wants its rows in another order than the file has.
    static bool reorders(const GgufFile& file, const Tensor& tensor);
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

    const Rope& rope() const { return rope_; }

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
    /// Reads the keys and the tensors that every architecture has.
    explicit Architecture(ModelFiles files);
    /// The file's key of that name: "block_count" -> "llama.block_count".
    std::string key(const std::string& name) const { return name_ + "." + name; }

    const std::shared_ptr<const GgufFile> file_, draft_file_;  // draft_file_: null where it is the same
    const std::string name_;                                   // general.architecture
    Dims dims_;
    Weight embedding_, head_;
    std::vector<float> output_norm_;
    Rope rope_;

  private:
    void read_tensors();
};

// One file each in model/arch; a name that a file carries, and the loader that answers to it, stand in the
// table of architecture.cpp.
std::unique_ptr<Architecture> load_llama(ModelFiles files);
std::unique_ptr<Architecture> load_qwen2(ModelFiles files);
std::unique_ptr<Architecture> load_qwen3(ModelFiles files);
std::unique_ptr<Architecture> load_qwen3next(ModelFiles files);
std::unique_ptr<Architecture> load_qwen35(ModelFiles files);
std::unique_ptr<Architecture> load_smollm3(ModelFiles files);

}  // namespace strata
