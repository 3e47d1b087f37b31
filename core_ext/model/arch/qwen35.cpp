#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/architecture.h"

namespace strata {
namespace {

/// qwen35: Gated DeltaNet layers with a gated attention layer every `full_attention_interval`, SwiGLU, and a
/// NextN draft block (gguf-models: sections 4 and 5).
class Qwen35 final : public Architecture {
  public:
    explicit Qwen35(std::shared_ptr<const GgufFile> file) : Architecture(std::move(file)) {
        load_common("qwen35");
        load_delta_shape();
        load_kinds();
        const int n_blocks = static_cast<int>(file_->integer("qwen35.block_count", 1, 4096));
        for (int i = 0; i < dims_.n_layers; ++i) blocks_.push_back(load_block(i, kinds_[i]));
        if (n_blocks > dims_.n_layers) load_draft();
    }

    LayerKind kind(int layer) const override { return kinds_[layer]; }

    int64_t scratch_floats(int rows) const override {
        const DeltaShape& d = dims_.delta;
        const int64_t q = int64_t{1} * dims_.n_heads * dims_.head_dim,
                      kv = int64_t{1} * dims_.n_kv_heads * dims_.head_dim;
        const int64_t inner = int64_t{1} * d.n_v_heads * d.v_dim;
        const int64_t attention = 3 * q + 2 * kv, delta = 2 * inner + 2 * d.n_v_heads,
                      ffn = 2 * int64_t{dims_.n_ff};
        // two rows of n_embd for the mixer; the draft block holds three more (embedding | hidden, and its own
        // residual)
        return rows * (5 * Workspace::round(dims_.n_embd) + std::max({attention, delta, ffn})) + 16 * 16;
    }

    uint64_t layer_bytes(int layer) const override { return block_bytes(blocks_[layer]); }

    void layer(int layer, LayerState& state, const Batch& batch, float* x, Workspace scratch,
               Ops& ops) const override {
        block(blocks_[layer], kinds_[layer], state, batch, batch.position, x, scratch, ops);
    }

    bool has_draft_layer() const override { return draft_.has_value(); }
    uint64_t draft_bytes() const override {
        return block_bytes(draft_->block) + bytes(draft_->eh_proj) + bytes(draft_->head);
    }
    const Weight& draft_head() const override { return draft_->head; }

    void draft(const float* hidden, const int32_t* tokens, LayerState& state, const Batch& batch, int cell,
               float* out, Workspace scratch, Ops& ops) const override {
        const int rows = batch.rows, n = dims_.n_embd;
        // y = eh_proj [norm(embedding of token p+1) ; norm(h_p)]
        float* pair = scratch.take(int64_t{rows} * 2 * n);
        float* y = scratch.take(int64_t{rows} * n);
        ops.embed(draft_->embedding, tokens, rows, y);
        ops.norm(y, draft_->enorm.data(), rows, n, dims_.norm_eps, pair, 2 * n);
        ops.norm(hidden, draft_->hnorm.data(), rows, n, dims_.norm_eps, pair + n, 2 * n);
        ops.project({{&draft_->eh_proj, y, n}}, pair, rows);
        block(draft_->block, LayerKind::attention, state, batch, cell, y, scratch, ops);
        ops.norm(y, draft_->head_norm.data(), rows, n, dims_.norm_eps, out);
    }

  private:
    struct Block {
        std::vector<float> attn_norm, post_norm;
        Weight gate, up, down;
        // gated attention
        Weight q, k, v, output;
        std::vector<float> q_norm, k_norm;
        // Gated DeltaNet
        Weight qkv, z, beta, alpha, ssm_out;
        std::vector<float> conv, dt_bias, ssm_a, ssm_norm;  // conv [taps, channels]
    };
    struct Draft {
        Block block;
        Weight eh_proj, embedding, head;
        std::vector<float> enorm, hnorm, head_norm;
    };

    static uint64_t bytes(const Weight& w) { return w ? w.row_bytes * w.n_out : 0; }
    static uint64_t block_bytes(const Block& b) {
        uint64_t total = 0;
        for (const Weight* w : {&b.gate, &b.up, &b.down, &b.q, &b.k, &b.v, &b.output, &b.qkv, &b.z, &b.beta,
                                &b.alpha, &b.ssm_out})
            total += bytes(*w);
        return total;
    }

    void load_delta_shape() {
        const auto count = [&](const char* key, int64_t high) {
            return static_cast<int>(file_->integer(std::string("qwen35.ssm.") + key, 1, high));
        };
        DeltaShape& d = dims_.delta;
        d.taps = count("conv_kernel", 16);
        d.k_dim = d.v_dim = count("state_size", 1024);
        d.n_k_heads = count("group_count", 1 << 12);
        d.n_v_heads = count("time_step_rank", 1 << 12);
        d.interleaved = true;
        const int inner = count("inner_size", 1 << 22);
        if (inner != d.v_dim * d.n_v_heads)
            throw Error("[model] " + file_->name() +
                        ": qwen35.ssm.inner_size should be state_size * time_step_rank = " +
                        std::to_string(d.v_dim * d.n_v_heads) + ", got " + std::to_string(inner));
        if (d.n_v_heads % d.n_k_heads)
            throw Error("[model] " + file_->name() + ": qwen35.ssm.time_step_rank " +
                        std::to_string(d.n_v_heads) + " should be a multiple of group_count " +
                        std::to_string(d.n_k_heads));
        if (d.taps < 2)
            throw Error("[model] " + file_->name() + ": qwen35.ssm.conv_kernel should be at least 2");
    }

    void load_kinds() {
        const auto flags = file_->integers("qwen35.attention.recurrent_layers", 4096);
        const int interval =
            static_cast<int>(file_->integer_or("qwen35.full_attention_interval", 4, 1, 4096));
        if (!flags.empty() && flags.size() < static_cast<size_t>(dims_.n_layers))
            throw Error("[model] " + file_->name() + ": qwen35.attention.recurrent_layers should have " +
                        std::to_string(dims_.n_layers) + " entries, got " + std::to_string(flags.size()));
        for (int i = 0; i < dims_.n_layers; ++i) {
            const bool delta = flags.empty() ? (i + 1) % interval != 0 : flags[i] != 0;
            kinds_.push_back(delta ? LayerKind::delta : LayerKind::attention);
        }
    }

    Block load_block(int index, LayerKind kind) const {
        const std::string blk = "blk." + std::to_string(index) + ".";
        const int n = dims_.n_embd, n_q = dims_.n_heads * dims_.head_dim,
                  n_kv = dims_.n_kv_heads * dims_.head_dim;
        Block b;
        b.attn_norm = file_->vector(blk + "attn_norm.weight", n);
        b.post_norm = file_->vector(blk + "post_attention_norm.weight", n);
        b.gate = file_->weight(blk + "ffn_gate.weight", n, dims_.n_ff);
        b.up = file_->weight(blk + "ffn_up.weight", n, dims_.n_ff);
        b.down = file_->weight(blk + "ffn_down.weight", dims_.n_ff, n);
        if (kind == LayerKind::attention) {
            b.q = file_->weight(blk + "attn_q.weight", n, 2 * n_q);
            b.k = file_->weight(blk + "attn_k.weight", n, n_kv);
            b.v = file_->weight(blk + "attn_v.weight", n, n_kv);
            b.output = file_->weight(blk + "attn_output.weight", n_q, n);
            b.q_norm = file_->vector(blk + "attn_q_norm.weight", dims_.head_dim);
            b.k_norm = file_->vector(blk + "attn_k_norm.weight", dims_.head_dim);
            return b;
        }
        const DeltaShape& d = dims_.delta;
        const int inner = d.n_v_heads * d.v_dim;
        b.qkv = file_->weight(blk + "attn_qkv.weight", n, d.channels());
        b.z = file_->weight(blk + "attn_gate.weight", n, inner);
        b.beta = file_->weight(blk + "ssm_beta.weight", n, d.n_v_heads);
        b.alpha = file_->weight(blk + "ssm_alpha.weight", n, d.n_v_heads);
        b.ssm_out = file_->weight(blk + "ssm_out.weight", inner, n);
        b.dt_bias = file_->vector(blk + "ssm_dt.bias", d.n_v_heads);
        b.ssm_a = file_->vector(blk + "ssm_a", d.n_v_heads);
        b.ssm_norm = file_->vector(blk + "ssm_norm.weight", d.v_dim);
        // The file holds [channels, taps]; the convolution walks over channels, so the taps become rows.
        const auto taps_last = file_->matrix(blk + "ssm_conv1d.weight", d.taps, d.channels());
        b.conv.resize(taps_last.size());
        for (int c = 0; c < d.channels(); ++c)
            for (int j = 0; j < d.taps; ++j)
                b.conv[int64_t{j} * d.channels() + c] = taps_last[int64_t{c} * d.taps + j];
        return b;
    }

    void load_draft() {
        const std::string nextn = "blk." + std::to_string(dims_.n_layers) + ".nextn.";
        if (!file_->tensor(nextn + "eh_proj.weight")) return;  // converted without its draft layer
        const int n = dims_.n_embd;
        Draft d;
        d.block = load_block(dims_.n_layers, LayerKind::attention);
        d.eh_proj = file_->weight(nextn + "eh_proj.weight", 2 * n, n);
        d.enorm = file_->vector(nextn + "enorm.weight", n);
        d.hnorm = file_->vector(nextn + "hnorm.weight", n);
        d.head_norm = file_->vector(nextn + "shared_head_norm.weight", n, true);
        if (d.head_norm.empty()) d.head_norm = output_norm_;
        d.embedding = file_->weight(nextn + "embed_tokens.weight", n, dims_.n_vocab, true);
        if (!d.embedding) d.embedding = embedding_;
        d.head = file_->weight(nextn + "shared_head_head.weight", n, dims_.n_vocab, true);
        if (!d.head) d.head = head_;
        draft_ = std::move(d);
    }

    /// h = x + mixer(norm(x)); out = h + ffn(norm(h)); in place.
    void block(const Block& b, LayerKind kind, LayerState& state, const Batch& batch, int cell, float* x,
               Workspace scratch, Ops& ops) const {
        const int rows = batch.rows;
        const int64_t n = int64_t{rows} * dims_.n_embd;
        float* y = scratch.take(n);
        float* mixed = scratch.take(n);
        ops.norm(x, b.attn_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
        if (kind == LayerKind::attention)
            attention(b, state, batch, cell, y, mixed, scratch, ops);
        else
            delta(b, state, batch, y, mixed, scratch, ops);
        ops.add(x, mixed, n);

        ops.norm(x, b.post_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
        float* gate = scratch.take(int64_t{rows} * dims_.n_ff);
        float* up = scratch.take(int64_t{rows} * dims_.n_ff);
        ops.project({{&b.gate, gate, dims_.n_ff}, {&b.up, up, dims_.n_ff}}, y, rows);
        ops.silu_mul(gate, up, gate, int64_t{rows} * dims_.n_ff);
        ops.project({{&b.down, mixed, dims_.n_embd, true}}, gate, rows);
        ops.add(x, mixed, n);
    }

    /// Each head's rows of attn_q are its query, then its output gate.
    void attention(const Block& b, LayerState& state, const Batch& batch, int cell, const float* y,
                   float* out, Workspace scratch, Ops& ops) const {
        const int rows = batch.rows, n_q = dims_.n_heads * dims_.head_dim,
                  n_kv = dims_.n_kv_heads * dims_.head_dim;
        float* q = scratch.take(int64_t{rows} * 2 * n_q);
        float* k = scratch.take(int64_t{rows} * n_kv);
        float* v = scratch.take(int64_t{rows} * n_kv);
        float* heads = scratch.take(int64_t{rows} * n_q);
        ops.project({{&b.q, q, 2 * n_q}, {&b.k, k, n_kv}, {&b.v, v, n_kv}}, y, rows);
        AttentionOp op;
        op.q = q;
        op.q_stride = 2 * dims_.head_dim;
        op.gated = true;
        op.k = k;
        op.v = v;
        op.q_norm = b.q_norm.data();
        op.k_norm = b.k_norm.data();
        op.norm_eps = dims_.norm_eps;
        op.n_heads = dims_.n_heads;
        op.n_kv_heads = dims_.n_kv_heads;
        op.head_dim = dims_.head_dim;
        op.n_rot = dims_.n_rot;
        op.cos = batch.cos;
        op.sin = batch.sin;
        op.cache = state.kv;
        op.position = cell;
        op.scale = 1.0f / std::sqrt(static_cast<float>(dims_.head_dim));
        op.out = heads;
        ops.attention(op, rows);
        ops.project({{&b.output, out, dims_.n_embd, true}}, heads, rows);
    }

    void delta(const Block& b, LayerState& state, const Batch& batch, const float* y, float* out,
               Workspace scratch, Ops& ops) const {
        const DeltaShape& d = dims_.delta;
        const int rows = batch.rows, inner = d.n_v_heads * d.v_dim;
        float* z = scratch.take(int64_t{rows} * inner);
        float* beta = scratch.take(int64_t{rows} * d.n_v_heads);
        float* alpha = scratch.take(int64_t{rows} * d.n_v_heads);
        float* heads = scratch.take(int64_t{rows} * inner);
        ops.project({{&b.qkv, state.record.u, d.channels()},
                     {&b.z, z, inner},
                     {&b.beta, beta, d.n_v_heads},
                     {&b.alpha, alpha, d.n_v_heads}},
                    y, rows);
        DeltaOp op;
        op.shape = d;
        op.z = z;
        op.b = beta;
        op.a = alpha;
        op.conv = b.conv.data();
        op.dt_bias = b.dt_bias.data();
        op.ssm_a = b.ssm_a.data();
        op.norm = b.ssm_norm.data();
        op.norm_eps = dims_.norm_eps;
        op.state = state.delta;
        op.record = state.record;
        op.advance = state.advance;
        op.out = heads;
        ops.delta(op, rows);
        ops.project({{&b.ssm_out, out, dims_.n_embd, true}}, heads, rows);
    }

    std::vector<LayerKind> kinds_;
    std::vector<Block> blocks_;
    std::optional<Draft> draft_;
};

}  // namespace

std::unique_ptr<Architecture> load_qwen35(std::shared_ptr<const GgufFile> file) {
    return std::make_unique<Qwen35>(std::move(file));
}

}  // namespace strata
