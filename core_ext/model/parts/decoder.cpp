#include "model/parts/decoder.h"

#include <algorithm>

namespace strata {

void Decoder::load_blocks(const MakeBlock& make) {
    for (int i = 0; i < dims_.n_layers; ++i) blocks_.push_back(make({*file_, name_, dims_, i}));
    if (draft_file_ || file_->integer(key("block_count"), 1, INT32_MAX) > dims_.n_layers) load_draft(make);
}

void Decoder::load_draft(const MakeBlock& make) {
    const BlockTensors in(draft_file_ ? *draft_file_ : *file_, name_, dims_, dims_.n_layers);
    if (!in.has("nextn.eh_proj.weight")) return;  // converted without its draft layer
    const int n = dims_.n_embd;
    Draft d;
    d.block = make(in);
    d.eh_proj = in.weight("nextn.eh_proj.weight", 2 * n, n);
    d.enorm = in.norm("nextn.enorm");
    d.hnorm = in.norm("nextn.hnorm");
    d.head_norm = in.vector("nextn.shared_head_norm.weight", n, true);
    if (d.head_norm.empty()) d.head_norm = output_norm_;
    d.embedding = in.weight("nextn.embed_tokens.weight", n, dims_.n_vocab, true);
    if (!d.embedding) d.embedding = embedding_;
    d.head = in.weight("nextn.shared_head_head.weight", n, dims_.n_vocab, true);
    if (!d.head) d.head = head_;
    draft_ = std::move(d);
}

int64_t Decoder::scratch_floats(int rows) const {
    const auto halves = [&](const Block& block) {
        return std::max(block.mixer->scratch_floats(rows), block.ffn->scratch_floats(rows));
    };
    const int64_t n = taken(int64_t{rows} * dims_.n_embd);
    int64_t most = 0;
    for (const Block& block : blocks_) most = std::max(most, halves(block));
    if (draft_) most = std::max(most, halves(draft_->block) + taken(int64_t{rows} * 2 * dims_.n_embd) + n);
    return 2 * n + most;
}

uint64_t Decoder::draft_bytes() const {
    if (!draft_) return 0;
    return row_bytes(draft_->block) + weight_bytes(draft_->eh_proj) + weight_bytes(draft_->head);
}

void Decoder::run(const Block& block, LayerState& state, const Batch& batch, int cell, float* x,
                  Workspace scratch, Ops& ops) const {
    const int rows = batch.rows;
    const int64_t n = int64_t{rows} * dims_.n_embd;
    float* y = scratch.take(n);
    float* out = scratch.take(n);
    // h = x + mixer(norm(x))
    ops.norm(x, block.mixer_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
    block.mixer->run(state, batch, cell, y, out, scratch, ops);
    ops.add(x, out, n);
    // out = h + feed_forward(norm(h))
    ops.norm(x, block.ffn_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
    block.ffn->run(y, out, rows, scratch, ops);
    ops.add(x, out, n);
}

void Decoder::draft(const float* hidden, const int32_t* tokens, LayerState& state, const Batch& batch,
                    int cell, float* out, Workspace scratch, Ops& ops) const {
    const int rows = batch.rows, n = dims_.n_embd;
    float* pair = scratch.take(int64_t{rows} * 2 * n);
    float* y = scratch.take(int64_t{rows} * n);
    ops.embed(draft_->embedding, tokens, rows, y);
    ops.norm(y, draft_->enorm.data(), rows, n, dims_.norm_eps, pair, 2 * n);
    ops.norm(hidden, draft_->hnorm.data(), rows, n, dims_.norm_eps, pair + n, 2 * n);
    ops.project({{&draft_->eh_proj, y, n}}, pair, rows);
    run(draft_->block, state, batch, cell, y, scratch, ops);
    ops.norm(y, draft_->head_norm.data(), rows, n, dims_.norm_eps, out);
}

}  // namespace strata
