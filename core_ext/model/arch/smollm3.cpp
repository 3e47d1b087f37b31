#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/swiglu.h"

namespace strata {
namespace {

/// smollm3: llama's block, but every fourth layer does not rotate ("NoPE", Yang et al. 2025, arXiv
/// 2501.18795).
class SmolLm3 final : public Decoder {
  public:
    explicit SmolLm3(ModelFiles files) : Decoder(std::move(files)) {
        load_blocks([](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            block.mixer = std::make_unique<Attention>(
                in, AttentionForm{.adjacent_pairs = true, .rotates = (in.index + 1) % 4 != 0});
            block.ffn_norm = in.norm("ffn_norm");
            block.ffn = std::make_unique<SwiGlu>(in);
            return block;
        });
    }
};

}  // namespace

std::unique_ptr<Architecture> load_smollm3(ModelFiles files) {
    return std::make_unique<SmolLm3>(std::move(files));
}

}  // namespace strata
