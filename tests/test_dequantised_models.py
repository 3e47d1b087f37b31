"""Models of types without kernels: copies at load, what they cost, and what is refused."""

import math
import re
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from reference.forward import forward
from reference.random_models import Shape, Tensors, random_tensors, weights_of, write_model
from strata_tui import Engine
from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile
from strata_tui.model_summary import stages, summary

TOKENS = np.random.default_rng(3).integers(0, 512, 20).tolist()
LLAMA = Shape(n_layers=2)
HYBRID = Shape("qwen35", n_layers=4, n_rot=32)


def scaled(tensors: Tensors, n_experts: int) -> tuple[Tensors, dict[str, np.ndarray]]:
    """A scale beside every matrix, one an expert where there are experts; and the scales by matrix."""
    scales = {
        name: np.linspace(0.5, 1.5, n_experts if "_exps." in name else 1, dtype=np.float32)
        for name, (_, kind) in tensors.items()
        if kind == Type.NVFP4
    }
    beside = {name.replace(".weight", ".scale"): (values, Type.F32) for name, values in scales.items()}
    return tensors | beside, scales


def test_what_copies_cost_is_said(tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA, "IQ2_XXS")
    write_model(tmp_path / "small.gguf", LLAMA, tensors)
    matrices = [stored for stored, kind in tensors.values() if kind == Type.IQ2_XXS]
    stored = sum(matrix.nbytes for matrix in matrices)
    taken = stored // 66 * 256 * 4
    with Engine.open(tmp_path / "small.gguf") as engine:
        assert engine.notices() == [
            f"[model] small.gguf: no kernels for IQ2_XXS: {len(matrices)} tensors of {stored / 2**20:.0f} "
            f"MiB dequantised at load, which takes {taken / 2**20:.0f} MiB of memory"
        ]
        placed = [stage.weight_bytes for stage in engine.stages]
    model = ModelFile(tmp_path / "small.gguf")
    about = summary(model)["dequantised"]
    assert about["types"] == ["IQ2_XXS"]
    assert (about["stored_bytes"], about["memory_bytes"]) == (stored, taken)
    norms = 2 * 2 * LLAMA.n_embd * 4
    shown = [stage["weight_bytes"] for stage in stages(model, [1], 256, "f16")]
    assert sum(shown) - norms == sum(placed)
    assert sum(shown) > 0.9 * taken - 512 * 256 * 4  # all but the embedding, which no stage reads whole


def test_what_is_not_run_is_not_copied(tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA, "IQ2_XXS")
    write_model(tmp_path / "plain.gguf", LLAMA, tensors)
    tensors["mm.0.weight"] = tensors["blk.0.ffn_up.weight"]
    write_model(tmp_path / "seeing.gguf", LLAMA, tensors)
    costs = []
    for name in ("plain", "seeing"):
        with Engine.open(tmp_path / f"{name}.gguf") as engine:
            costs.append((engine.notices()[0].split(": ", 1)[1], summary(engine.model)["dequantised"]))
    assert costs[0] == costs[1]


def test_of_a_draft_layer_s_file_only_that_layer_is_copied(tmp_path: Path) -> None:
    write_model(tmp_path / "trunk.gguf", HYBRID, random_tensors(HYBRID, "Q8_0"))
    tensors = random_tensors(HYBRID, "IQ2_XXS")
    write_model(tmp_path / "draft.gguf", HYBRID, tensors)
    layer = [
        stored
        for name, (stored, kind) in tensors.items()
        if name.startswith(f"blk.{HYBRID.n_layers}.") and kind == Type.IQ2_XXS
    ]
    with Engine.open(tmp_path / "trunk.gguf", draft_model=tmp_path / "draft.gguf") as engine:
        assert [line.split(" of ")[0] for line in engine.notices()] == [
            f"[model] draft.gguf: no kernels for IQ2_XXS: {len(layer)} tensors"
        ]
        assert summary(engine.model)["dequantised"]["stored_bytes"] == sum(part.nbytes for part in layer)


def test_rows_in_another_order_of_a_type_without_kernels(tmp_path: Path) -> None:
    """The same bits as from a file of the values themselves."""
    shape = Shape("qwen3next", n_rot=32)
    tensors = random_tensors(shape, "IQ2_XXS")
    values: Tensors = {
        name: (weights.astype(np.float32), Type.F32) for name, weights in weights_of(tensors).items()
    }
    write_model(tmp_path / "small.gguf", shape, tensors)
    write_model(tmp_path / "values.gguf", shape, values)
    with Engine.open(tmp_path / "small.gguf") as small, Engine.open(tmp_path / "values.gguf") as large:
        got, expected = small.eval(TOKENS), large.eval(TOKENS)
    assert set(got) == set(expected)
    for name in got:
        np.testing.assert_array_equal(got[name], expected[name])


def test_a_model_with_kernels_has_no_copies(tmp_path: Path) -> None:
    write_model(tmp_path / "plain.gguf", LLAMA, random_tensors(LLAMA, "IQ3_XXS"))
    with Engine.open(tmp_path / "plain.gguf") as engine:
        assert engine.notices() == []
    assert summary(ModelFile(tmp_path / "plain.gguf"))["dequantised"] is None


@pytest.mark.parametrize("arch", ["llama", "qwen3moe"])
def test_scales_beside_a_matrix_multiply_it(arch: str, tmp_path: Path) -> None:
    shape = Shape(arch, n_layers=2, n_experts=4, n_used=4)
    tensors, scales = scaled(random_tensors(shape, "NVFP4"), shape.n_experts)
    write_model(tmp_path / "scaled.gguf", shape, tensors)
    weights = weights_of(tensors)
    for name, values in scales.items():
        weights[name] = weights[name] * (values[:, None, None] if "_exps." in name else values[0])
    expected = forward(shape, weights, TOKENS)["logits"]
    with Engine.open(tmp_path / "scaled.gguf", stages=2) as engine:
        error = engine.eval(TOKENS)["logits"] - expected
    assert np.sqrt(np.mean(error**2)) < 0.002
    copies = summary(ModelFile(tmp_path / "scaled.gguf"))["dequantised"]
    assert (
        copies["memory_bytes"] == copies["stored_bytes"] // 36 * 64 * 4
    )  # F32: a scale's digits don't fit BF16


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as refused, Engine.open(path):
        pass
    return str(refused.value)


def test_a_scale_beside_a_type_with_kernels_is_refused(tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA, "Q4_K")
    tensors["blk.1.attn_q.scale"] = np.ones(1, np.float32), Type.F32
    write_model(tmp_path / "scaled.gguf", LLAMA, tensors)
    assert refusal(tmp_path / "scaled.gguf") == (
        "[gguf] scaled.gguf: tensor blk.1.attn_q.scale scales one of type Q4_K, expected NVFP4 or another "
        "type that is dequantised at load"
    )


@pytest.mark.parametrize("kind", [Type.I8, Type.F64])
def test_a_type_that_is_none_of_weights_is_refused_by_name(kind: Type, tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA, "Q8_0")
    values = np.zeros((LLAMA.n_ff, LLAMA.n_embd), np.int8 if kind == Type.I8 else np.float64)
    tensors["blk.0.ffn_up.weight"] = values, kind
    write_model(tmp_path / "odd.gguf", LLAMA, tensors)
    assert refusal(tmp_path / "odd.gguf") == (
        f"[gguf] odd.gguf: tensor blk.0.ffn_up.weight has type {kind.name}, expected one of F32, F16, "
        "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, "
        "IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M, BF16, TQ1_0, TQ2_0, MXFP4, NVFP4"
    )


def test_copies_that_need_more_memory_than_there_is_are_refused(tmp_path: Path) -> None:
    """A file with a hole of 200 GiB, of which the copies would be twenty times as large."""
    path = tmp_path / "huge.gguf"
    shape = Shape(n_layers=1, n_embd=1 << 16, n_vocab=1 << 24)
    n, n_q, n_kv, n_ff = shape.n_embd, 256, 128, shape.n_ff
    matrices = {
        "attn_q": (n_q, n), "attn_k": (n_kv, n), "attn_v": (n_kv, n), "attn_output": (n, n_q),
        "ffn_gate": (n_ff, n), "ffn_up": (n_ff, n), "ffn_down": (n, n_ff),
    }  # fmt: skip
    writer = gguf.GGUFWriter(path, shape.name)
    for key, value in shape.keys().items():
        (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(key, value)
    size = 0

    def announce(name: str, stored: tuple[int, ...], kind: Type) -> None:
        nonlocal size
        of_one = np.dtype(np.float32 if kind == Type.F32 else np.uint8)
        writer.add_tensor_info(name, stored, of_one, math.prod(stored) * of_one.itemsize, raw_dtype=kind)
        size += math.prod(stored) * of_one.itemsize + 64

    announce("token_embd.weight", (shape.n_vocab, n // 256 * 50), Type.IQ1_S)
    for name, (n_out, n_in) in matrices.items():
        announce(f"blk.0.{name}.weight", (n_out, n_in // 32 * 34), Type.Q8_0)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        announce(f"{name}.weight", (n,), Type.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    try:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size + 64 + size)
    except OSError:
        pytest.skip("no file with a hole of this size here")
    assert re.fullmatch(
        r"\[gguf\] huge.gguf: needs 4194304 MiB of memory for copies of 204800 MiB of tensors that can't be "
        r"run as they lie in the file, \d+ MiB are available",
        refusal(path),
    )
