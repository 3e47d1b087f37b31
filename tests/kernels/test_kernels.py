"""The CPU kernels against numpy in float64, from their formulas, on every instruction set of this machine."""

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

_core = pytest.importorskip("strata_tui._core")
kernels = _core.kernels

Floats = npt.NDArray[np.float32]

NUMBERS = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8,
    "Q2_K": 10, "Q3_K": 11, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14,
    "IQ3_XXS": 18, "IQ4_NL": 20, "IQ3_S": 21, "IQ4_XS": 23, "BF16": 30,
}  # fmt: skip
QUANTISED = [name for name in NUMBERS if "Q" in name]
COPIED = {  # dequantised at load
    "IQ2_XXS": 16, "IQ2_XS": 17, "IQ1_S": 19, "IQ2_S": 22, "IQ1_M": 29, "TQ1_0": 34, "TQ2_0": 35, "MXFP4": 39,
    "NVFP4": 40,
}  # fmt: skip
ORACLE = Path(__file__).parents[1] / "data" / "quants.npz"

isas = pytest.mark.parametrize("isa", kernels.isa_names())


def normal(*shape: int, seed: int, scale: float = 1.0) -> Floats:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def oracle_blocks(name: str, n_out: int, n_in: int) -> tuple[npt.NDArray[np.uint8], Floats]:
    """ggml's own blocks as a matrix [n_out, n_in], and its values. n_out * n_in <= 2048."""
    with np.load(ORACLE) as data:
        q, y = data[f"{name}_q"].reshape(-1), data[f"{name}_y"].reshape(-1)
    row_bytes = q.size * n_in // y.size
    return q[: n_out * row_bytes].reshape(n_out, row_bytes), y[: n_out * n_in].reshape(n_out, n_in)


@pytest.mark.parametrize("name", [*QUANTISED, *(name for name in COPIED if name != "NVFP4")])
def test_dequantised_values_equal_ggmls(name: str) -> None:
    with np.load(ORACLE) as data:
        blocks, values = data[f"{name}_q"], data[f"{name}_y"]
    number = (NUMBERS | COPIED)[name]
    assert np.array_equal(kernels.dequantize(number, blocks.reshape(-1), values.size), values.reshape(-1))


@pytest.mark.parametrize("name", [*QUANTISED, *COPIED])
def test_any_block_stands_for_the_values_that_the_gguf_package_reads(name: str) -> None:
    """Every entry of every codebook among them."""
    kind = gguf.GGMLQuantizationType((NUMBERS | COPIED)[name])
    size, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(2).integers(0, 256, (3000, n_bytes), np.uint8)
    with np.errstate(all="ignore"):  # scales that are no numbers, or infinite
        values = gguf.quants.dequantize(blocks.reshape(1, -1), kind).reshape(-1)
    np.testing.assert_array_equal(kernels.dequantize(kind, blocks.reshape(-1), 3000 * size), values)


def test_dequantised_halves_equal_numpys() -> None:
    half = normal(77, seed=1, scale=1e-4).astype(np.float16)
    assert np.array_equal(kernels.dequantize(1, half.view(np.uint8), 77), half.astype(np.float32))
    single = normal(77, seed=2)
    brain = single.view(np.uint16)[1::2]
    widened = (brain.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(kernels.dequantize(30, np.ascontiguousarray(brain).view(np.uint8), 77), widened)
    assert np.array_equal(kernels.dequantize(0, single.view(np.uint8), 77), single)


@isas
@pytest.mark.parametrize("name", QUANTISED)
@pytest.mark.parametrize("rows", [1, 4, 9])
def test_quantised_product_errs_by_the_rounding_of_its_activations(isa: str, name: str, rows: int) -> None:
    blocks, values = oracle_blocks(name, 4, 512)
    x = normal(rows, 512, seed=3)
    block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][0]
    step = np.abs(x.reshape(rows, -1, block)).max(axis=2) / 127  # [rows, blocks]
    energy = (values.astype(np.float64) ** 2).reshape(4, -1, block).sum(axis=2)  # [n_out, blocks]
    deviation = np.sqrt((step**2 / 12) @ energy.T)  # of a sum of roundings, each even over one step
    error = kernels.matmul(NUMBERS[name], blocks, x, isa) - x.astype(np.float64) @ values.astype(np.float64).T
    assert np.all(np.abs(error) < 5 * deviation)
    assert np.sqrt(np.mean((error / deviation) ** 2)) < 1.6


@isas
@pytest.mark.parametrize("name", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("n_in", [1, 16, 77, 256])
def test_float_product_is_exact_to_float32(isa: str, name: str, n_in: int) -> None:
    w, x = normal(5, n_in, seed=4), normal(3, n_in, seed=5)
    if name == "BF16":
        w = (w.view(np.uint32) & 0xFFFF0000).view(np.float32)
        stored = (w.view(np.uint32) >> 16).astype(np.uint16)
    else:
        stored = w.astype(np.float16 if name == "F16" else np.float32)
        w = stored.astype(np.float32)
    y = kernels.matmul(NUMBERS[name], stored.view(np.uint8), x, isa)
    np.testing.assert_allclose(y, x.astype(np.float64) @ w.T.astype(np.float64), rtol=0, atol=2e-5)


@isas
@pytest.mark.parametrize("name", NUMBERS)
def test_split_outputs_are_the_whole(isa: str, name: str) -> None:
    if name in QUANTISED:
        blocks, _ = oracle_blocks(name, 4, 256)
    else:
        blocks = normal(4, 256, seed=6).astype(np.float32 if name == "F32" else np.float16).view(np.uint8)
    x = normal(5, 256, seed=7)
    whole = kernels.matmul(NUMBERS[name], blocks, x, isa)
    split = kernels.matmul(NUMBERS[name], blocks, x, isa, splits=[0, 1, 1, 3])
    assert np.array_equal(whole.view(np.uint32), split.view(np.uint32))


@isas
@pytest.mark.parametrize("n", [1, 16, 100])
def test_rms_norm(isa: str, n: int) -> None:
    x, w = normal(n, seed=8, scale=4), normal(n, seed=9)
    x64 = x.astype(np.float64)
    expected = x64 / np.sqrt(np.mean(x64**2) + 1e-6) * w
    np.testing.assert_allclose(kernels.rms_norm(x, w, 1e-6, isa), expected, rtol=2e-6, atol=1e-7)


@isas
@pytest.mark.parametrize("f16", [False, True])
@pytest.mark.parametrize(("head_dim", "v_dim"), [(64, 64), (20, 36)])
def test_attention(isa: str, f16: bool, head_dim: int, v_dim: int) -> None:
    visible = np.array([1, 64, 65, 130, 200], dtype=np.int32)
    q, k, v = normal(5, head_dim, seed=10), normal(200, head_dim, seed=11), normal(200, v_dim, seed=12)
    out = kernels.attention(q, visible, k, v, 0.3, f16, isa)
    if f16:
        k, v = k.astype(np.float16).astype(np.float32), v.astype(np.float16).astype(np.float32)
    scores = 0.3 * (q.astype(np.float64) @ k.T.astype(np.float64))
    scores[np.arange(200) >= visible[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights @ v.astype(np.float64) / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=5e-6)


@isas
@pytest.mark.parametrize(("k_dim", "v_dim"), [(64, 64), (7, 19)])
def test_delta_step(isa: str, k_dim: int, v_dim: int) -> None:
    s, q, k = normal(k_dim, v_dim, seed=13), normal(k_dim, seed=14), normal(k_dim, seed=15, scale=0.1)
    v = normal(v_dim, seed=16)
    decayed = 0.9 * s.astype(np.float64)
    after = decayed + np.outer(k, 0.4 * (v - decayed.T @ k))
    state, o = kernels.delta_step(s, q, k, v, 0.9, 0.4, isa)
    np.testing.assert_allclose(state, after, rtol=0, atol=2e-6)
    np.testing.assert_allclose(o, after.T @ q, rtol=0, atol=2e-5)


@isas
@pytest.mark.parametrize("n", [0, 1, 16, 1003])
def test_exp_sum(isa: str, n: int) -> None:
    x = normal(n, seed=17, scale=20)
    out, total = kernels.exp_sum(x, 3.0, 0.5, isa)
    expected = np.exp((np.float32(0.5) * (x - np.float32(3.0))).astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=4e-7)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)


@isas
def test_argmax_follows_numpy_and_passes_over_nan(isa: str) -> None:
    for n in (1, 15, 16, 500):
        x = np.round(normal(n, seed=n), 1)  # with ties
        assert kernels.argmax(x, isa) == np.argmax(x)
        x[::3] = np.nan
        assert kernels.argmax(x, isa) == (0 if np.isnan(x).all() else np.nanargmax(x))


def test_bad_input_is_said() -> None:
    with pytest.raises(_core.Error, match=r"\[kernels\] unknown instruction set \"sse9\", expected one of"):
        kernels.argmax(normal(3, seed=1), "sse9")
    with pytest.raises(_core.Error, match=r"no kernels for type 15"):
        kernels.dequantize(15, np.zeros(292, np.uint8), 256)
    with pytest.raises(
        _core.Error, match=r"expected a whole number of Q4_0 blocks for 32 values, got 17 bytes"
    ):
        kernels.dequantize(2, np.zeros(17, np.uint8), 32)


def test_read_bandwidth_is_measured() -> None:
    assert 0.1 < kernels.measure_read_bandwidth(1 << 20, 2, 0.01) < 10_000
