#include <cmath>

#include "base/error.h"
#include "model/architecture.h"

namespace strata {
namespace {

/// llama: pre-norm transformer, grouped-query attention with rotary pairs (2i, 2i+1), SwiGLU. Optional biases
/// and rope_freqs (gguf-models: section 2). Experts are refused until their issue.
class Llama final : public Architecture {
  public:
    explicit Llama(std::shared_ptr<const GgufFile> file) : Architecture(std::move(file)) {
        load_common("llama");
        if (file_->integer_or("llama.expert_count", 0, 0, 1 << 16) > 0)
            throw Error("[model] " + file_->name() +
                        ": llama with experts is not supported yet; dense layers are");
        const int n_q = dims_.n_heads * dims_.head_dim, n_kv = dims_.n_kv_heads * dims_.head_dim;
        for (int i = 0; i < dims_.n_layers; ++i) {
            const std::string blk = "blk." + std::to_string(i) + ".";
            Layer& l = layers_.emplace_back();
            l.attn_norm = file_->vector(blk + "attn_norm.weight", dims_.n_embd);
            l.q = file_->weight(blk + "attn_q.weight", dims_.n_embd, n_q);
            l.k = file_->weight(blk + "attn_k.weight", dims_.n_embd, n_kv);
            l.v = file_->weight(blk + "attn_v.weight", dims_.n_embd, n_kv);
            l.q_bias = file_->vector(blk + "attn_q.bias", n_q, true);
            l.k_bias = file_->vector(blk + "attn_k.bias", n_kv, true);
            l.v_bias = file_->vector(blk + "attn_v.bias", n_kv, true);
            l.output = file_->weight(blk + "attn_output.weight", n_q, dims_.n_embd);
            l.output_bias = file_->vector(blk + "attn_output.bias", dims_.n_embd, true);
            l.ffn_norm = file_->vector(blk + "ffn_norm.weight", dims_.n_embd);
            l.gate = file_->weight(blk + "ffn_gate.weight", dims_.n_embd, dims_.n_ff);
            l.up = file_->weight(blk + "ffn_up.weight", dims_.n_embd, dims_.n_ff);
            l.down = file_->weight(blk + "ffn_down.weight", dims_.n_ff, dims_.n_embd);
        }
        const auto factors = file_->vector("rope_freqs.weight", dims_.n_rot / 2, true);
        for (size_t i = 0; i < factors.size(); ++i) {
            if (!(factors[i] > 0))
                throw Error("[model] " + file_->name() + ": rope_freqs.weight should hold values above 0");
            inv_freq_[i] /= factors[i];
        }
    }

    LayerKind kind(int) const override { return LayerKind::attention; }

    int64_t scratch_floats(int rows) const override {
        const int64_t heads = int64_t{1} * (2 * dims_.n_heads + 2 * dims_.n_kv_heads) * dims_.head_dim;
        return rows * (2 * Workspace::round(dims_.n_embd) + std::max(heads, int64_t{2} * dims_.n_ff)) +
               8 * 16;
    }

    uint64_t layer_bytes(int layer) const override {
        const Layer& l = layers_[layer];
        uint64_t bytes = 0;
        for (const Weight* w : {&l.q, &l.k, &l.v, &l.output, &l.gate, &l.up, &l.down})
            bytes += w->row_bytes * w->n_out;
        return bytes;
    }

    void layer(int layer, LayerState& state, const Batch& batch, float* x, Workspace scratch,
               Ops& ops) const override {
        const Layer& l = layers_[layer];
        const int rows = batch.rows;
        const int64_t n = int64_t{rows} * dims_.n_embd;
        float* y = scratch.take(n);
        float* mixed = scratch.take(n);

        // h = x + attention(norm(x))
        ops.norm(x, l.attn_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
        attention(l, state, batch, y, mixed, scratch, ops);
        ops.add(x, mixed, n);

        // out = h + ffn(norm(h))
        ops.norm(x, l.ffn_norm.data(), rows, dims_.n_embd, dims_.norm_eps, y);
        float* gate = scratch.take(int64_t{rows} * dims_.n_ff);
        float* up = scratch.take(int64_t{rows} * dims_.n_ff);
        ops.project({{&l.gate, gate, dims_.n_ff}, {&l.up, up, dims_.n_ff}}, y, rows);
        ops.silu_mul(gate, up, gate, int64_t{rows} * dims_.n_ff);
        ops.project({{&l.down, mixed, dims_.n_embd, true}}, gate, rows);
        ops.add(x, mixed, n);
    }

  private:
    struct Layer {
        std::vector<float> attn_norm, ffn_norm, q_bias, k_bias, v_bias, output_bias;
        Weight q, k, v, output, gate, up, down;
    };

    static void add_bias(float* x, const std::vector<float>& bias, int rows, Ops& ops) {
        if (bias.empty()) return;
        for (int r = 0; r < rows; ++r) ops.add(x + int64_t(r) * bias.size(), bias.data(), bias.size());
    }

    void attention(const Layer& l, LayerState& state, const Batch& batch, const float* y, float* out,
                   Workspace scratch, Ops& ops) const {
        const int rows = batch.rows, n_q = dims_.n_heads * dims_.head_dim,
                  n_kv = dims_.n_kv_heads * dims_.head_dim;
        float* q = scratch.take(int64_t{rows} * n_q);
        float* k = scratch.take(int64_t{rows} * n_kv);
        float* v = scratch.take(int64_t{rows} * n_kv);
        float* heads = scratch.take(int64_t{rows} * n_q);
        ops.project({{&l.q, q, n_q}, {&l.k, k, n_kv}, {&l.v, v, n_kv}}, y, rows);
        add_bias(q, l.q_bias, rows, ops);
        add_bias(k, l.k_bias, rows, ops);
        add_bias(v, l.v_bias, rows, ops);

        AttentionOp op;
        op.q = q;
        op.q_stride = dims_.head_dim;
        op.k = k;
        op.v = v;
        op.n_heads = dims_.n_heads;
        op.n_kv_heads = dims_.n_kv_heads;
        op.head_dim = dims_.head_dim;
        op.n_rot = dims_.n_rot;
        op.adjacent_pairs = true;
        op.cos = batch.cos;
        op.sin = batch.sin;
        op.cache = state.kv;
        op.position = batch.position;
        op.scale = 1.0f / std::sqrt(static_cast<float>(dims_.head_dim));
        op.out = heads;
        ops.attention(op, rows);
        ops.project({{&l.output, out, dims_.n_embd, true}}, heads, rows);
        add_bias(out, l.output_bias, rows, ops);
    }

    std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> load_llama(std::shared_ptr<const GgufFile> file) {
    return std::make_unique<Llama>(std::move(file));
}

}  // namespace strata
