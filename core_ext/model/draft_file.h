#pragma once

#include "model/gguf.h"

namespace strata {

/// Throws Error, naming both files and what differs, unless `draft` can hold the draft layer (NextN) of
/// `model`: the same architecture, a draft layer behind as many layers, the same sizes, rotation and norm (by
/// their keys, or by what the lack of a key stands for), the same tokens. The shapes of its tensors are checked when they are loaded. It may hold more than that
/// layer, the whole model even; embedding and head are the model's own where the layer brings none
/// (nextn.embed_tokens, nextn.shared_head_head).
void require_draft_of(const GgufFile& model, const GgufFile& draft);

}  // namespace strata
