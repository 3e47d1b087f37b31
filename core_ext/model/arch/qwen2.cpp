#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/experts.h"

namespace strata {
namespace {

/// qwen2 (Yang et al. 2024, arXiv 2407.10671), Qwen2.5 too: llama's block with biases of queries, keys and
/// values, and rotary pairs half a head apart (gguf-models: section 2). qwen2moe: experts, weighted by the
/// softmax over all as it is, and a shared one. seed_oss: heads of any size, and another name of the second
/// norm.
class Qwen2 final : public Decoder {
  public:
    explicit Qwen2(ModelFiles files) : Decoder(std::move(files)) {
        const bool moe = name_ == "qwen2moe";
        if (moe) dims_.experts.normalised = false;
        load_blocks([&](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            block.mixer = std::make_unique<Attention>(in, AttentionForm{});
            block.ffn_norm = in.norm(name_ == "seed_oss" ? "post_attention_norm" : "ffn_norm");
            if (moe)
                block.ffn = std::make_unique<Experts>(in, true);
            else
                block.ffn = std::make_unique<SwiGlu>(in);
            return block;
        });
    }
};

}  // namespace

std::unique_ptr<Architecture> load_qwen2(ModelFiles files) {
    return std::make_unique<Qwen2>(std::move(files));
}

}  // namespace strata
