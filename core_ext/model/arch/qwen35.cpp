#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/delta_net.h"
#include "model/parts/experts.h"

namespace strata {
namespace {

/// qwen35 and qwen35moe: Gated DeltaNet layers with a gated attention layer every `full_attention_interval`;
/// SwiGLU, or experts beside a shared one; a NextN draft block of attention (gguf-models: sections 4 and 5).
class Qwen35 final : public Decoder {
  public:
    explicit Qwen35(ModelFiles files) : Decoder(std::move(files)) {
        dims_.delta = read_delta_shape(*file_, name_, true);
        require_text_sections();
        const auto kinds = read_layer_kinds(*file_, name_, dims_.n_layers);
        load_blocks([&, moe = name_ == "qwen35moe"](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            if (in.index < dims_.n_layers && kinds[in.index] == LayerKind::delta)
                block.mixer = std::make_unique<DeltaNet>(in, delta_inputs(in));
            else
                block.mixer =
                    std::make_unique<Attention>(in, AttentionForm{.head_norms = true, .gated = true});
            block.ffn_norm = in.norm("post_attention_norm");
            if (moe)
                block.ffn = std::make_unique<Experts>(in, true);
            else
                block.ffn = std::make_unique<SwiGlu>(in);
            return block;
        });
    }

  private:
    static DeltaInputs delta_inputs(const BlockTensors& in) {
        const DeltaShape& d = in.dims.delta;
        const int n = in.dims.n_embd;
        DeltaInputs inputs;
        inputs.qkv = in.weight("attn_qkv.weight", n, d.channels());
        inputs.z = in.weight("attn_gate.weight", n, d.n_v_heads * d.v_dim);
        inputs.beta = in.weight("ssm_beta.weight", n, d.n_v_heads);
        inputs.alpha = in.weight("ssm_alpha.weight", n, d.n_v_heads);
        return inputs;
    }

    /// Of a text's four position components the first three are the position, so pairs of these sections
    /// rotate as ever; the fourth is 0, and pairs of it would stand still.
    void require_text_sections() const {
        const std::string name = key("rope.dimension_sections");
        const auto sections = file_->integers(name, 4);
        if (sections.size() > 3 && sections[3] != 0)
            file_->fail("key " + name + " has a fourth section of " + std::to_string(sections[3]) +
                        " pairs, expected 0");
    }
};

}  // namespace

std::unique_ptr<Architecture> load_qwen35(ModelFiles files) {
    return std::make_unique<Qwen35>(std::move(files));
}

}  // namespace strata
