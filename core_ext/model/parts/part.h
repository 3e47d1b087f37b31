#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/architecture.h"

namespace strata {

/// The tensors of one block by their names without "blk.N."; shapes are checked as in GgufFile.
class BlockTensors {
  public:
    BlockTensors(const GgufFile& file, const std::string& architecture, const Dims& dims, int index)
        : file(file),
          dims(dims),
          index(index),
          prefix_("blk." + std::to_string(index) + "."),
          architecture_(architecture) {}

    const GgufFile& file;
    const Dims& dims;
    const int index;

    bool has(const std::string& name) const { return file.tensor(prefix_ + name); }
    Weight weight(const std::string& name, int64_t n_in, int64_t n_out, bool optional = false) const {
        return file.weight(prefix_ + name, n_in, n_out, optional);
    }
    Weight reordered(const std::string& name, int64_t n_in, std::vector<int> rows) const {
        return file.reordered(prefix_ + name, n_in, std::move(rows));
    }
    Weight stack(const std::string& name, int64_t n_in, int64_t n_out, int64_t n,
                 bool optional = false) const {
        return file.stack(prefix_ + name, n_in, n_out, n, optional);
    }
    std::vector<float> vector(const std::string& name, int64_t n, bool optional = false) const {
        return file.vector(prefix_ + name, n, optional);
    }
    std::vector<float> matrix(const std::string& name, int64_t n_in, int64_t n_rows) const {
        return file.matrix(prefix_ + name, n_in, n_rows);
    }
    std::vector<float> norm(const std::string& name) const { return vector(name + ".weight", dims.n_embd); }
    /// A bias that a model has in all blocks or in none: what the first block has, the others must have.
    std::vector<float> bias(const std::string& name, int64_t n) const {
        return vector(name + ".bias", n, !file.tensor("blk.0." + name + ".bias"));
    }
    std::string key(const std::string& name) const { return architecture_ + "." + name; }

  private:
    const std::string prefix_, architecture_;
};

/// What mixes positions: the first half of a block. `y` and `out` are [rows, n_embd].
class Mixer {
  public:
    virtual ~Mixer() = default;
    virtual LayerKind kind() const = 0;
    /// batch.position is what rotates row 0; attention's cells are written at `cell` + row.
    virtual void run(LayerState& state, const Batch& batch, int cell, const float* y, float* out,
                     Workspace scratch, Ops& ops) const = 0;
    virtual int64_t scratch_floats(int rows) const = 0;
    /// Bytes of weights that one row reads.
    virtual uint64_t row_bytes() const = 0;
};

/// What works on each position alone: the second half of a block. `y` and `out` are [rows, n_embd].
class FeedForward {
  public:
    virtual ~FeedForward() = default;
    virtual void run(const float* y, float* out, int rows, Workspace scratch, Ops& ops) const = 0;
    virtual int64_t scratch_floats(int rows) const = 0;
    virtual uint64_t row_bytes() const = 0;
};

/// Rows [first, first + n) of a weight.
inline Weight rows_from(Weight w, int first, int n) {
    w.data = static_cast<const uint8_t*>(w.data) + first * w.row_bytes;
    w.n_out = n;
    return w;
}

inline uint64_t weight_bytes(const Weight& w) { return w ? uint64_t{w.row_bytes} * w.n_out : 0; }

/// Floats that Workspace::take(n) may use up.
inline int64_t taken(int64_t n) { return Workspace::round(n); }

}  // namespace strata
