"""The shape of Strata Pebble."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """Names as in the GGUF keys of `qwen35`, shorter."""

    n_vocab: int = 8192
    d_model: int = 512
    d_ff: int = 768
    n_layers: int = 12  # of the trunk; the draft layer comes after them
    attention_interval: int = 4  # every fourth layer is gated attention, the others Gated DeltaNet
    # Gated DeltaNet
    n_k_heads: int = 4
    n_v_heads: int = 8
    delta_head_dim: int = 64
    conv_width: int = 4
    # attention
    n_heads: int = 8
    n_kv_heads: int = 2
    head_dim: int = 64
    rope_dims: int = 16  # of head_dim
    rope_base: float = 10000.0
    eps: float = 1e-6

    def is_attention(self, layer: int) -> bool:
        return (layer + 1) % self.attention_interval == 0

    @property
    def k_width(self) -> int:
        """Width of all queries, or of all keys, of a Gated DeltaNet layer."""
        return self.n_k_heads * self.delta_head_dim

    @property
    def v_width(self) -> int:
        return self.n_v_heads * self.delta_head_dim


PEBBLE = Config()
