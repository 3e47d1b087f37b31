"""convert.py MODEL.safetensors TOKENIZER.json OUT.gguf [bf16|f16|f32]

Names and layout are those of llama.cpp's converter.

Needs the PyPI packages gguf, numpy, torch and safetensors.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from config import PEBBLE
from names import to_gguf
from safetensors.torch import load_file
from transforms import to_file

CONTEXT = 4096
DESCRIPTION = (
    "Small hybrid (9 Gated DeltaNet + 3 gated attention layers, one MTP block) completion model for trying "
    "split speculative decoding; trained from scratch on public-domain English prose and permissively "
    "licensed code; not an assistant."
)
FILE_TYPES = {
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "f32": gguf.LlamaFileType.ALL_F32,
}


def add_metadata(writer: gguf.GGUFWriter, kind: str) -> None:
    c = PEBBLE
    writer.add_name("Strata Pebble")
    writer.add_basename("Strata-Pebble")
    writer.add_size_label("33M")
    writer.add_type("model")
    writer.add_license("mit")
    writer.add_description(DESCRIPTION)
    writer.add_author("the strata-tui project")
    writer.add_tags(["text-generation", "speculative-decoding", "mtp"])
    writer.add_languages(["en"])
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_block_count(c.n_layers + 1)  # the draft block is counted
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(c.d_model)
    writer.add_feed_forward_length(c.d_ff)
    writer.add_vocab_size(c.n_vocab)
    writer.add_head_count(c.n_heads)
    writer.add_head_count_kv(c.n_kv_heads)
    writer.add_key_length(c.head_dim)
    writer.add_value_length(c.head_dim)
    writer.add_layer_norm_rms_eps(c.eps)
    writer.add_rope_freq_base(c.rope_base)
    writer.add_rope_dimension_count(c.rope_dims)
    writer.add_rope_dimension_sections([3, 3, 2, 0])
    writer.add_ssm_conv_kernel(c.conv_width)
    writer.add_ssm_state_size(c.delta_head_dim)
    writer.add_ssm_group_count(c.n_k_heads)
    writer.add_ssm_time_step_rank(c.n_v_heads)
    writer.add_ssm_inner_size(c.v_width)
    writer.add_full_attention_interval(c.attention_interval)
    writer.add_nextn_predict_layers(1)


def add_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict) -> None:
    """Byte-level BPE; token 0 ends a document and is never added by itself."""
    by_id = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    special = {token["id"] for token in tokenizer["added_tokens"]}
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    types = [gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL for _, i in by_id]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list([token for token, _ in by_id])
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)


def add_tensors(writer: gguf.GGUFWriter, weights: dict[str, torch.Tensor], kind: str) -> None:
    for name, ours in sorted(((to_gguf(ours), ours) for ours in weights), key=lambda pair: _order(pair[0])):
        x = to_file(ours, weights[ours]).contiguous()
        is_matrix = x.ndim == 2 and "conv1d" not in name
        if is_matrix and kind == "bf16":
            raw = x.to(torch.bfloat16).view(torch.uint8).numpy()
            writer.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.BF16)
        elif is_matrix and kind == "f16":
            writer.add_tensor(name, x.float().numpy().astype(np.float16))
        else:
            writer.add_tensor(name, x.float().numpy())


def _order(name: str) -> tuple[int, str]:
    """The embedding, the blocks, the output norm."""
    if name.startswith("token_embd"):
        return -1, name
    return (10**6, name) if name.startswith("output") else (int(name.split(".")[1]), name)


def main() -> None:
    source, tokenizer, out = sys.argv[1:4]
    kind = sys.argv[4] if len(sys.argv) > 4 else "bf16"
    writer = gguf.GGUFWriter(out, "qwen35")
    add_metadata(writer, kind)
    add_tokenizer(writer, json.loads(Path(tokenizer).read_text()))
    add_tensors(writer, load_file(source), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print("wrote", out)


if __name__ == "__main__":
    main()
