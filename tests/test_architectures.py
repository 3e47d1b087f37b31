"""Every architecture: against llama.cpp, against itself in other arms, and in files that are wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from reference.oracle_models import ARCHITECTURES, ORACLES, copy_keys, oracle_model, write
from strata_tui import Engine, Sampling
from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile, architectures
from strata_tui.model_summary import summary

PROMPT = [1, 5, 9, 200, 17, 5, 9, 200, 17, 5, 9, 33]
NAMES = {"logits": "logits", "hidden": "hidden_after_output_norm", "nextn_logits": "nextn_logits"}
EXPERTS = ("qwen3moe", "qwen35moe", "qwen3next")
Tensors = dict[str, npt.NDArray[Any]]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("oracles")


def changed(path: Path, to: Path, change: Callable[[Tensors], None], **keys: Any) -> Path:
    """A copy of a model with other tensors, and keys of the architecture that are set (None: left out)."""
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    tensors = {tensor.name: np.array(tensor.data) for tensor in reader.tensors}
    change(tensors)
    writer = gguf.GGUFWriter(to, architecture)
    named = {f"{architecture}.{key.replace('__', '.')}": value for key, value in keys.items()}
    for key in named:
        reader.fields.pop(key, None)
    copy_keys(reader, writer)
    for key, value in named.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif value is not None:
            writer.add_uint32(key, value)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    write(writer)
    return to


def nothing(tensors: Tensors) -> None: ...


# -- values


@pytest.mark.parametrize("how", [{}, {"stages": 3, "threads": 2}], ids=["default", "3x2"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_values_are_the_oracle_s(architecture: str, how: dict[str, Any], models: Path) -> None:
    with np.load(ORACLES / f"micro-{architecture}.npz") as oracle:
        with Engine.open(oracle_model(architecture, models), kv="f32", **how) as engine:
            got = engine.eval(oracle["tokens"].tolist())
        for name in got:
            if NAMES[name] in oracle:
                np.testing.assert_allclose(got[name], oracle[NAMES[name]], rtol=0, atol=2e-4)
        assert ("nextn_logits" in got) == ("nextn_logits" in oracle)


def values(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    with Engine.open(path, stages=2, threads=2) as engine:
        return dict(engine.eval(PROMPT))


def merge_gate_and_up(tensors: Tensors) -> None:
    """Per expert the rows of its gate, then those of its up."""
    for name in [name for name in tensors if "ffn_gate_exps" in name]:
        gate, up = tensors.pop(name), tensors.pop(name.replace("gate", "up"))
        tensors[name.replace("gate", "gate_up")] = np.concatenate([gate, up], axis=1)


def fuse_delta_inputs(tensors: Tensors) -> None:
    """Per k head (two of them) its q and k, and v and z of its two v heads; every head is 16 rows."""
    for name in [name for name in tensors if "attn_qkv" in name]:
        q, k, v = np.split(tensors.pop(name), [32, 64])
        z = tensors.pop(name.replace("attn_qkv", "attn_gate"))
        groups = [
            part
            for g in range(2)
            for part in (q[16 * g :][:16], k[16 * g :][:16], v[32 * g :][:32], z[32 * g :][:32])
        ]
        tensors[name.replace("attn_qkv", "ssm_in")] = np.concatenate(groups)


@pytest.mark.parametrize(
    ("architecture", "change"),
    [("qwen3moe", merge_gate_and_up), ("qwen35moe", merge_gate_and_up), ("qwen3next", fuse_delta_inputs)],
)
def test_the_same_weights_in_another_layout_give_the_same_bits(
    architecture: str, change: Callable[[Tensors], None], models: Path, tmp_path: Path
) -> None:
    model = oracle_model(architecture, models)
    expected = values(model)
    got = values(changed(model, tmp_path / "other.gguf", change))
    assert set(got) == set(expected)
    for name in got:
        np.testing.assert_array_equal(got[name], expected[name])


def test_of_equal_experts_the_lower_is_taken(models: Path, tmp_path: Path) -> None:
    """With equal logits rows go to experts 0 and 1 by halves: the others may hold whatever they like."""

    def level(tensors: Tensors) -> None:
        for name, held in tensors.items():
            if "ffn_gate_inp" in name:
                held[:] = 0

    def spoil(tensors: Tensors) -> None:
        level(tensors)
        for name, held in tensors.items():
            if "_exps" in name:
                held[2:] = np.nan

    def swap(tensors: Tensors) -> None:
        level(tensors)
        for name, held in tensors.items():
            if "_exps" in name:
                held[[0, 2]] = held[[2, 0]]

    model = oracle_model("qwen3moe", models)
    expected, spoilt, swapped = (
        values(changed(model, tmp_path / "other.gguf", change))["logits"] for change in (level, spoil, swap)
    )
    np.testing.assert_array_equal(spoilt, expected)
    assert np.abs(swapped - expected).max() > 0.01


# -- the one invariant

ARMS: list[dict[str, Any]] = [
    {"stages": 1, "threads": 2, "chunk": 5},
    {"stages": 3, "chunk": 16, "overlap": True},
    {"stages": 4, "pipeline_max": 4},
]


@pytest.mark.parametrize("architecture", sorted({*ARCHITECTURES} - {"llama", "qwen35"}))
def test_text_and_state_are_those_of_plain_decoding(architecture: str, models: Path) -> None:
    model = oracle_model(architecture, models)
    sampling = Sampling(temperature=0.8, top_p=0.95, repeat_penalty=1.1, seed=7)

    def text(**how: Any) -> tuple[list[int], Any, int]:
        with Engine.open(model, **how) as engine:
            session = engine.session()
            tokens = list(session.generate(PROMPT * 3, max_tokens=24, sampling=sampling, ignore_eos=True))
            return tokens, session.fingerprint()["layers"], session.stats()["accepted"]

    plain = text(stages=1, draft="none")
    accepted = 0
    for arm in ARMS:
        got = text(draft="replay:0.7", short_read=0, **arm)
        assert got[:2] == plain[:2], arm
        accepted += got[2]
    assert accepted


# -- what a person sees


def test_inspect_tells_experts_and_kinds(models: Path) -> None:
    about = summary(ModelFile(oracle_model("qwen3next", models)))
    assert about["experts"] == {"total": 8, "used": 2, "shared": True, "width": 64}
    assert about["layers"] == {"total": 4, "attention": 1, "gdn": 3, "draft": 1}
    assert about["supported"]
    assert summary(ModelFile(oracle_model("qwen3", models)))["experts"] is None


def test_what_rows_in_another_order_cost_is_said(models: Path, tmp_path: Path) -> None:
    newer = oracle_model("qwen3next", models)
    older = changed(newer, tmp_path / "older.gguf", fuse_delta_inputs)
    for path, kinds in ((newer, ["ssm_ba"]), (older, ["ssm_ba", "ssm_in"])):
        sizes = [t.n_bytes for t in gguf.GGUFReader(path).tensors if t.name.split(".")[-2] in kinds]
        assert len(sizes) == 3 * len(kinds)
        with Engine.open(path) as engine:
            assert engine.notices() == [
                f"[model] {path.name}: rows of {', '.join(kinds)} in another order: {len(sizes)} tensors of "
                "0 MiB copied at load, which takes 0 MiB of memory"
            ]
        about = summary(ModelFile(path))
        size = int(sum(sizes))
        assert about["reordered"] == {
            "types": ["F32"], "tensors": kinds, "stored_bytes": size, "memory_bytes": size,
        }  # fmt: skip
        assert about["dequantised"] is None
    assert summary(ModelFile(oracle_model("qwen35", models)))["reordered"] is None


def test_a_row_reads_the_experts_that_it_goes_to(models: Path) -> None:
    model = ModelFile(oracle_model("qwen3moe", models))
    experts = 3 * 64 * 64 * 8 * 4
    assert [whole - read for whole, read in zip(model.layer_bytes, model.layer_reads, strict=True)] == [
        experts * 6 // 8
    ] * 4
    assert model.tail_reads == model.tail_bytes == 64 * 512 * 4


def test_the_oracles_are_of_all_architectures() -> None:
    assert set(architectures()) >= set(ARCHITECTURES)


# -- files that are wrong


WRONG_TENSORS: list[tuple[str, str, tuple[int, ...] | None, str]] = [
    ("llama", "rope_freqs.weight", (8,), "holds 0.000000 at 0, expected values above 0"),
    ("qwen2", "blk.2.attn_k.bias", None, "is missing, expected shape [32]"),
    ("qwen2", "blk.1.attn_q.bias", (63,), "has shape [63], expected [64]"),
    ("qwen3", "blk.3.attn_q_norm.weight", None, "is missing, expected shape [16]"),
    ("qwen3moe", "blk.1.ffn_down_exps.weight", None, "is missing, expected shape [64, 64, 8]"),
    ("qwen3moe", "blk.1.ffn_up_exps.weight", (8, 64, 60), "has shape [60, 64, 8], expected [64, 64, 8]"),
    ("qwen35moe", "blk.0.ffn_gate_inp_shexp.weight", None, "is missing, expected shape [64]"),
    ("qwen35moe", "blk.4.attn_q.weight", None, "is missing, expected shape [64, 128]"),
    ("qwen35moe", "blk.4.nextn.eh_proj.weight", (64, 64), "has shape [64, 64], expected [128, 64]"),
    ("qwen3next", "blk.0.ssm_ba.weight", None, "is missing, expected shape [64, 8]"),
]
WRONG_KEYS: list[tuple[str, str, Any, str]] = [
    ("qwen3", "attention.head_count_kv", 3, " is 3, expected a divisor of the 4 heads"),
    ("qwen3", "attention.head_count", 2**31, " holds 2147483648, expected 1 to 16384"),
    ("qwen3", "attention.key_length", 2**30, " holds 1073741824, expected 1 to 4194304"),
    ("qwen3", "rope.dimension_count", 7, " is 7, expected an even number"),
    ("qwen3", "rope.dimension_count", 18, " holds 18, expected 0 to 16"),
    ("qwen3", "rope.scaling.type", "longrope", ' is "longrope", expected none, linear or yarn'),
    ("qwen3", "rope.scaling.factor", 0.0, " is 0.000000, expected 0.001000 or more"),
    ("qwen3moe", "expert_count", None, " is missing, expected 1 to 2147483647"),
    ("qwen3moe", "expert_count", 0, " holds 0, expected 1 to 2147483647"),
    ("qwen3moe", "expert_count", 2**31, " to be 0 to 2147483647, got 2147483648"),
    ("qwen3moe", "expert_used_count", 9, " holds 9, expected 1 to 8"),
    ("qwen3moe", "expert_used_count", 0, " holds 0, expected 1 to 8"),
    ("qwen3moe", "expert_gating_func", 4, " holds 4, expected 0 to 3"),
    ("qwen35moe", "expert_shared_feed_forward_length", None, " is missing, expected 1 to 2147483647"),
    ("qwen35moe", "ssm.group_count", 3, ".time_step_rank is 4, expected a multiple of group_count 3"),
    ("qwen3next", "ssm.inner_size", 60, " is 60, expected state_size * time_step_rank = 64"),
    ("qwen3next", "nextn_predict_layers", 5, " to be below the 5 blocks, got 5"),
]


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as error:
        Engine.open(path, stages=1)
    line = str(error.value)
    print(line)
    assert "wrong.gguf" in line
    assert "\n" not in line
    return line


@pytest.mark.parametrize(("architecture", "tensor", "shape", "line"), WRONG_TENSORS)
def test_a_tensor_that_is_wrong_is_named(
    architecture: str, tensor: str, shape: tuple[int, ...] | None, line: str, models: Path, tmp_path: Path
) -> None:
    def change(tensors: Tensors) -> None:
        tensors.pop(tensor, None)
        if shape is not None:
            tensors[tensor] = np.zeros(shape, np.float32)

    path = changed(oracle_model(architecture, models), tmp_path / "wrong.gguf", change)
    assert f"tensor {tensor} {line}" in refusal(path)


@pytest.mark.parametrize(("architecture", "key", "value", "line"), WRONG_KEYS)
def test_a_key_that_is_wrong_is_named(
    architecture: str, key: str, value: Any, line: str, models: Path, tmp_path: Path
) -> None:
    path = changed(
        oracle_model(architecture, models),
        tmp_path / "wrong.gguf",
        nothing,
        **{key.replace(".", "__"): value},
    )
    got = refusal(path)
    assert line in got
    assert f"{architecture}.{key.split('.')[0]}" in got


def test_sizes_that_do_not_fit_each_other_are_told_by_the_first_tensor(models: Path, tmp_path: Path) -> None:
    model, path = oracle_model("qwen3moe", models), tmp_path / "wrong.gguf"
    fewer = changed(model, path, nothing, expert_count=7)
    assert "tensor blk.0.ffn_gate_inp.weight has shape [64, 8], expected [64, 7]" in refusal(fewer)
    narrow = changed(model, path, nothing, expert_feed_forward_length=32)
    assert "blk.0.ffn_gate_exps.weight has shape [64, 64, 8], expected [64, 32, 8]" in refusal(narrow)
    heads = {"attention__head_count": 5, "attention__head_count_kv": 5, "attention__key_length": None}
    assert "attention.head_count is 5, expected a divisor of the width 64" in refusal(
        changed(model, path, nothing, **heads)
    )
