#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/experts.h"

namespace strata {
namespace {

/// qwen3 and qwen3moe (Yang et al. 2025, arXiv 2505.09388): each head's queries and keys are normalised
/// before they are rotated, and there are no biases; qwen3moe has experts in every layer (gguf-models:
/// sections 2 and 3).
class Qwen3 final : public Decoder {
  public:
    explicit Qwen3(ModelFiles files) : Decoder(std::move(files)) {
        load_blocks([moe = name_ == "qwen3moe"](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            block.mixer = std::make_unique<Attention>(in, AttentionForm{.head_norms = true});
            block.ffn_norm = in.norm("ffn_norm");
            if (moe)
                block.ffn = std::make_unique<Experts>(in, false);
            else
                block.ffn = std::make_unique<SwiGlu>(in);
            return block;
        });
    }
};

}  // namespace

std::unique_ptr<Architecture> load_qwen3(ModelFiles files) {
    return std::make_unique<Qwen3>(std::move(files));
}

}  // namespace strata
