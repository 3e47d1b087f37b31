"""Tensor names: Hugging Face's Qwen3.5 <-> GGUF."""

from config import PEBBLE

IN_LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
}
DRAFT_BLOCK = f"blk.{PEBBLE.n_layers}"
OUTSIDE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "mtp.fc.weight": f"{DRAFT_BLOCK}.nextn.eh_proj.weight",
    "mtp.pre_fc_norm_embedding.weight": f"{DRAFT_BLOCK}.nextn.enorm.weight",
    "mtp.pre_fc_norm_hidden.weight": f"{DRAFT_BLOCK}.nextn.hnorm.weight",
    "mtp.norm.weight": f"{DRAFT_BLOCK}.nextn.shared_head_norm.weight",
}
DRAFT_LAYER = "mtp.layers.0."


def to_gguf(name: str) -> str:
    """model.layers.3.mlp.up_proj.weight -> blk.3.ffn_up.weight"""
    if name in OUTSIDE:
        return OUTSIDE[name]
    if name.startswith(DRAFT_LAYER):
        return f"{DRAFT_BLOCK}.{IN_LAYER[name.removeprefix(DRAFT_LAYER)]}"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{IN_LAYER[rest]}"


def from_gguf(name: str) -> str:
    """blk.3.ffn_up.weight -> model.layers.3.mlp.up_proj.weight"""
    outside = {gguf: ours for ours, gguf in OUTSIDE.items()}
    if name in outside:
        return outside[name]
    _, layer, rest = name.split(".", 2)
    in_layer = {gguf: ours for ours, gguf in IN_LAYER.items()}
    prefix = DRAFT_LAYER if int(layer) == PEBBLE.n_layers else f"model.layers.{layer}."
    return prefix + in_layer[rest]
