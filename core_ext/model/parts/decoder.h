#pragma once

#include <functional>
#include <optional>

#include "model/parts/part.h"

namespace strata {

/// A pre-norm decoder: every block is h = x + mixer(norm(x)); out = h + feed_forward(norm(h)). An
/// architecture says what its blocks are made of; the NextN draft layer, where the file has one, is one more
/// of them behind a projection of the next token and the last hidden row.
class Decoder : public Architecture {
  public:
    LayerKind kind(int layer) const override { return blocks_[layer].mixer->kind(); }
    void layer(int layer, LayerState& state, const Batch& batch, float* x, Workspace scratch,
               Ops& ops) const override {
        run(blocks_[layer], state, batch, batch.position, x, scratch, ops);
    }
    int64_t scratch_floats(int rows) const override;
    uint64_t layer_bytes(int layer) const override { return row_bytes(blocks_[layer]); }

    bool has_draft_layer() const override { return draft_.has_value(); }
    uint64_t draft_bytes() const override;
    const Weight& draft_head() const override { return draft_ ? draft_->head : head_; }
    void draft(const float* hidden, const int32_t* tokens, LayerState& state, const Batch& batch, int cell,
               float* out, Workspace scratch, Ops& ops) const override;

  protected:
    struct Block {
        std::vector<float> mixer_norm;
        std::unique_ptr<Mixer> mixer;
        std::vector<float> ffn_norm;
        std::unique_ptr<FeedForward> ffn;
    };
    using MakeBlock = std::function<Block(const BlockTensors&)>;

    using Architecture::Architecture;
    /// Every block of the trunk, and the draft layer's where a file has one.
    void load_blocks(const MakeBlock& make);

  private:
    /// NextN: y = eh_proj [norm(embedding of token p + 1) ; norm(hidden row p)], one block, a norm, a head.
    struct Draft {
        Block block;
        Weight eh_proj, embedding, head;
        std::vector<float> enorm, hnorm, head_norm;
    };

    static uint64_t row_bytes(const Block& block) {
        return block.mixer->row_bytes() + block.ffn->row_bytes();
    }
    void load_draft(const MakeBlock& make);
    void run(const Block& block, LayerState& state, const Batch& batch, int cell, float* x, Workspace scratch,
             Ops& ops) const;

    std::vector<Block> blocks_;
    std::optional<Draft> draft_;
};

}  // namespace strata
