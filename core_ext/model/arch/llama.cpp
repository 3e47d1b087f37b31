#include "model/parts/attention.h"
#include "model/parts/decoder.h"
#include "model/parts/experts.h"

namespace strata {
namespace {

/// llama (Touvron et al. 2023, arXiv 2302.13971), Mistral and Mixtral too: grouped-query attention whose
/// rotary pairs are neighbours, SwiGLU; optional biases, rope_freqs and experts (gguf-models: section 2).
/// internlm2 and ernie4_5 are the same block under names of their own.
class Llama final : public Decoder {
  public:
    explicit Llama(ModelFiles files) : Decoder(std::move(files)) {
        load_blocks([this](const BlockTensors& in) {
            Block block;
            block.mixer_norm = in.norm("attn_norm");
            block.mixer = std::make_unique<Attention>(in, AttentionForm{.adjacent_pairs = true});
            block.ffn_norm = in.norm("ffn_norm");
            if (dims_.experts.n > 0)
                block.ffn = std::make_unique<Experts>(in, false);
            else
                block.ffn = std::make_unique<SwiGlu>(in);
            return block;
        });
    }
};

}  // namespace

std::unique_ptr<Architecture> load_llama(ModelFiles files) {
    return std::make_unique<Llama>(std::move(files));
}

}  // namespace strata
