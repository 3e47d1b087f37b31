"""Models of width 256 with random blocks of every type, against float64 on what the blocks stand for.

What remains is the rounding of activations: to int8 before quantised matrices, to float16 in the K/V cache.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from reference.forward import forward
from reference.random_models import Shape, random_tensors, weights_of, write_model
from strata_tui import Engine

# The rms error allowed of logits whose deviation is 3; llama.cpp's own is 0.09 to 0.16.
BARS = {
    **dict.fromkeys(["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL"], 0.12),
    **dict.fromkeys(["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "IQ3_S", "IQ3_XXS"], 0.16),
    **dict.fromkeys(["F32", "F16", "BF16"], 0.002),
    # Dequantised at load: only the K/V cells are rounded.
    **dict.fromkeys(["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M", "TQ1_0", "TQ2_0"], 0.002),
    **dict.fromkeys(["MXFP4", "NVFP4"], 0.002),
}
SHAPES = {
    "llama": Shape(n_layers=4),
    "mixtral": Shape("mixtral"),
    "internlm2": Shape("internlm2"),
    "ernie4_5": Shape("ernie4_5"),
    "smollm3": Shape("smollm3", n_layers=4),
    "qwen2": Shape("qwen2"),
    "qwen2moe": Shape("qwen2moe"),
    "seed_oss": Shape("seed_oss", head_dim=32, n_rot=32),
    "qwen3": Shape("qwen3"),
    "qwen3moe": Shape("qwen3moe"),
    "qwen35": Shape("qwen35", n_layers=4, n_rot=32),
    "qwen35moe": Shape("qwen35moe", n_rot=32),
    "qwen3next": Shape("qwen3next", n_rot=32),
}
# Those that between them have every kind of matrix. All experts are used: rounding could turn a choice.
TYPED = {
    "llama": SHAPES["llama"],
    "qwen35": SHAPES["qwen35"],
    "qwen3moe": Shape("qwen3moe", n_experts=4, n_used=4),
    "qwen3next": Shape("qwen3next", n_rot=32, n_experts=4, n_used=4),
}
TOKENS = np.random.default_rng(3).integers(0, 512, 48).tolist()


def rms(x: npt.NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


@pytest.mark.parametrize("kind", BARS)
@pytest.mark.parametrize("arch", TYPED)
def test_logits_err_by_the_rounding_of_activations(arch: str, kind: str, tmp_path: Path) -> None:
    shape = TYPED[arch]
    tensors = random_tensors(shape, kind)
    write_model(tmp_path / "random.gguf", shape, tensors)
    expected = forward(shape, weights_of(tensors), TOKENS)
    with Engine.open(tmp_path / "random.gguf", stages=2, chunk=20) as engine:
        got = engine.eval(TOKENS)
    for name in [name for name in expected if name.endswith("logits")]:
        error, deviation = rms(got[name] - expected[name]), float(expected[name].std())
        print(f"{arch} {kind:4} {name:12} rms error {error:.4f} of deviation {deviation:.2f}")
        assert got[name].shape == expected[name].shape
        assert 2.5 < deviation < 3.5  # what the bars are for
        assert error <= BARS[kind]


def require_float32_s_digits(shape: Shape, path: Path) -> None:
    tensors = random_tensors(shape, "F32")
    write_model(path, shape, tensors)
    expected = forward(shape, weights_of(tensors), TOKENS)
    with Engine.open(path, stages=2, kv="f32") as engine:
        got = engine.eval(TOKENS)
    for name, values in expected.items():
        assert rms(got[name] - values) < 2e-5, name


@pytest.mark.parametrize("arch", SHAPES)
def test_without_rounding_only_float32_s_last_digits_differ(arch: str, tmp_path: Path) -> None:
    require_float32_s_digits(SHAPES[arch], tmp_path / "random.gguf")


@pytest.mark.parametrize("scaling", ["linear", "yarn", "llama3"])
@pytest.mark.parametrize("arch", ["llama", "qwen3"])
def test_scaled_rotations(arch: str, scaling: str, tmp_path: Path) -> None:
    require_float32_s_digits(Shape(arch, scaling=scaling), tmp_path / "random.gguf")
