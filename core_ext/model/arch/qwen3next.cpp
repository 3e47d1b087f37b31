#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/delta_net.h"
#include "model/parts/experts.h"

namespace strata {
namespace {

/// qwen3next: the ancestor of qwen35moe. Its v heads share a k head in groups of neighbours, and a matrix
/// that feeds them holds its rows by k head: ssm_ba in every file, ssm_in in older ones (gguf-models: section
/// 4).
class Qwen3Next final : public Decoder {
  public:
    explicit Qwen3Next(ModelFiles files) : Decoder(std::move(files)) {
        dims_.delta = read_delta_shape(*file_, name_, false);
        const auto kinds = read_layer_kinds(*file_, name_, dims_.n_layers);
        load_blocks([&](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            if (in.index < dims_.n_layers && kinds[in.index] == LayerKind::delta)
                block.mixer = std::make_unique<DeltaNet>(in, delta_inputs(in));
            else
                block.mixer =
                    std::make_unique<Attention>(in, AttentionForm{.head_norms = true, .gated = true});
            block.ffn_norm = in.norm("post_attention_norm");
            block.ffn = std::make_unique<Experts>(in, true);
            return block;
        });
    }

  private:
    static DeltaInputs delta_inputs(const BlockTensors& in) {
        const DeltaShape& d = in.dims.delta;
        const int n = in.dims.n_embd, n_k = d.n_k_heads, r = d.n_v_heads / n_k;
        DeltaInputs inputs;
        if (in.has("ssm_in.weight")) {
            // Rows of k head g: its q and k, then v and z of its r v heads.
            const int k = d.k_dim, v = r * d.v_dim, group = 2 * k + 2 * v;
            std::vector<int> order;
            add_slices(order, n_k, group, 0, k);
            add_slices(order, n_k, group, k, k);
            add_slices(order, n_k, group, 2 * k, v);
            add_slices(order, n_k, group, 2 * k + v, v);
            const Weight all = in.reordered("ssm_in.weight", n, std::move(order));
            inputs.qkv = rows_from(all, 0, d.channels());
            inputs.z = rows_from(all, d.channels(), d.n_v_heads * d.v_dim);
        } else {
            inputs.qkv = in.weight("attn_qkv.weight", n, d.channels());
            inputs.z = in.weight("attn_gate.weight", n, d.n_v_heads * d.v_dim);
        }
        // Rows of k head g: beta of its r v heads, then alpha of them.
        std::vector<int> order;
        add_slices(order, n_k, 2 * r, 0, r);
        add_slices(order, n_k, 2 * r, r, r);
        const Weight both = in.reordered("ssm_ba.weight", n, std::move(order));
        inputs.beta = rows_from(both, 0, d.n_v_heads);
        inputs.alpha = rows_from(both, d.n_v_heads, d.n_v_heads);
        return inputs;
    }

    /// `count` rows from `first` on of each of n groups.
    static void add_slices(std::vector<int>& rows, int n, int group, int first, int count) {
        for (int g = 0; g < n; ++g)
            for (int i = 0; i < count; ++i) rows.push_back(g * group + first + i);
    }
};

}  // namespace

std::unique_ptr<Architecture> load_qwen3next(ModelFiles files) {
    return std::make_unique<Qwen3Next>(std::move(files));
}

}  // namespace strata
