"""A draft layer in a file of its own: text and drafts as with the one inside, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from reference.oracle_models import ORACLES, copy_keys, oracle_model, write
from strata_tui import Engine
from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile
from strata_tui.model_summary import stages, summary

FRIENDLY = ORACLES / "micro-qwen35-friendly.gguf"  # a draft layer that agrees part of the time
PROMPT = [1, 5, 9, 200, 17, 5, 9, 200, 17, 5, 9, 33]


def part(
    path: Path, to: Path, keeps: Callable[[str], bool], renamed: Callable[[str], str] = str, **keys: Any
) -> Path:
    """A copy of a model with the tensors that `keeps` says, and keys that are set (None: left out)."""
    reader = gguf.GGUFReader(path)
    architecture = keys.pop("architecture", reader.fields["general.architecture"].contents())
    named = {key.replace("__", "."): value for key, value in keys.items()}
    old = reader.fields["general.architecture"].contents()
    for key in named:
        for whole in (key, f"{old}.{key}"):
            reader.fields.pop(whole, None)
    writer = gguf.GGUFWriter(to, architecture)
    copy_keys(reader, writer, architecture)
    for key, value in named.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        elif value is not None:
            writer.add_uint32(f"{architecture}.{key}", value)
    for tensor in reader.tensors:
        if keeps(tensor.name):
            writer.add_tensor(renamed(tensor.name), np.array(tensor.data), raw_dtype=tensor.tensor_type)
    write(writer)
    return to


def is_draft(name: str) -> bool:
    return name.startswith("blk.4.")


@pytest.fixture(scope="module")
def trunk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Announces no draft layer and has none."""
    folder = tmp_path_factory.mktemp("split")
    return part(
        FRIENDLY,
        folder / "trunk.gguf",
        lambda name: not is_draft(name),
        block_count=4,
        nextn_predict_layers=None,
    )


@pytest.fixture(scope="module")
def mtp(trunk: Path) -> Path:
    """The draft layer alone."""
    return part(FRIENDLY, trunk.with_name("mtp.gguf"), is_draft)


def decode(path: Path, **how: Any) -> tuple[list[int], dict[str, Any]]:
    with Engine.open(path, **how) as engine:
        session = engine.session()
        text = list(session.generate(PROMPT, 80, ignore_eos=True))
        return text, session.stats()


def test_the_text_and_every_draft_are_those_of_the_layer_inside(trunk: Path, mtp: Path) -> None:
    inside, stats = decode(FRIENDLY, stages=2, pipeline_windows=2)
    beside, others = decode(trunk, draft_model=mtp, stages=2, pipeline_windows=2)
    assert beside == inside == decode(trunk, draft="none")[0]
    assert stats["accepted"] > 0
    for count in ("drafted", "accepted", "windows"):
        assert others[count] == stats[count], count


def test_eval_has_the_values_of_the_layer_inside(trunk: Path, mtp: Path) -> None:
    with Engine.open(FRIENDLY) as engine:
        inside = engine.eval(PROMPT)
    with Engine.open(trunk, draft_model=mtp) as engine:
        assert engine.has_draft_layer
        beside = engine.eval(PROMPT)
    assert inside.keys() == beside.keys()
    for name, values in inside.items():
        np.testing.assert_array_equal(beside[name], values)


def test_it_stands_in_for_the_layer_inside(mtp: Path) -> None:
    """The file's own draft layer is random and never right."""
    _, own = decode(ORACLES / "micro-qwen35.gguf", draft_max=2)
    text, stats = decode(FRIENDLY, draft_model=ORACLES / "micro-qwen35.gguf", draft_max=2)
    assert text == decode(FRIENDLY)[0]
    assert own["accepted"] == stats["accepted"] == 0
    assert decode(FRIENDLY, draft_model=mtp)[1]["accepted"] > 0


def test_experts_in_a_draft_layer_of_its_own(tmp_path: Path) -> None:
    whole = oracle_model("qwen35moe", tmp_path)
    alone = part(whole, tmp_path / "mtp.gguf", is_draft)
    inside = decode(whole)
    beside = decode(part(whole, tmp_path / "trunk.gguf", lambda name: not is_draft(name)), draft_model=alone)
    assert beside[0] == inside[0]
    assert beside[1]["drafted"] == inside[1]["drafted"] > 0


def test_inspect_counts_it(trunk: Path, mtp: Path) -> None:
    whole, split = ModelFile(FRIENDLY), ModelFile(trunk, mtp)
    assert summary(split)["draft_model"] == "mtp.gguf"
    assert summary(split)["draft_layer"]
    assert not summary(ModelFile(trunk))["draft_layer"]
    assert stages(split, [2], 256, "f16") == stages(whole, [2], 256, "f16")
    assert split.tail_reads == whole.tail_reads


def as_block(n: int) -> Callable[[str], str]:
    return lambda name: name.replace("blk.4.", f"blk.{n}.")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "architecture": (
        {"architecture": "qwen3"},
        "mtp.gguf: has the architecture qwen3, expected qwen35 as in trunk.gguf",
    ),
    "width": (
        {"embedding_length": 96},
        "mtp.gguf: key qwen35.embedding_length is 96, expected 64 as in trunk.gguf",
    ),
    "heads": (
        {"attention__head_count_kv": 1},
        "mtp.gguf: key qwen35.attention.head_count_kv is 1, expected 2 as in trunk.gguf",
    ),
    "block": (
        {"renamed": as_block(7)},
        "mtp.gguf: has its draft layer in block 7, expected blk.4.nextn.eh_proj.weight, behind the 4 layers "
        "of trunk.gguf",
    ),
    "no layer": (
        {"keeps": lambda name: name == "output_norm.weight"},
        "mtp.gguf: holds no draft layer, expected blk.4.nextn.eh_proj.weight, behind the 4 layers "
        "of trunk.gguf",
    ),
    "a default": (
        {"rope__dimension_count": None},
        "mtp.gguf: key qwen35.rope.dimension_count is missing and stands for 16, expected 4 as in trunk.gguf",
    ),
    "a rotation by default": (
        {"rope__freq_base": None},
        "mtp.gguf: turns with freq_base 10000, no scaling, expected freq_base 1e+07, no scaling as in "
        "trunk.gguf",
    ),
    "a rotation that the model has not": (
        {"rope__scaling__factor": 4},
        "mtp.gguf: turns with freq_base 1e+07, linear scaling by 4, expected freq_base 1e+07, no scaling as "
        "in trunk.gguf",
    ),
    "experts that the model has not": (
        {"expert_count": 8, "expert_used_count": 2},
        "mtp.gguf: key qwen35.expert_count is 8, expected 0 as in trunk.gguf",
    ),
    "fewer tokens": (
        {"tokenizer__ggml__tokens": ["a", "b"]},
        "mtp.gguf: has 2 tokens, expected 512 as in trunk.gguf",
    ),
    "a tensor missing": (
        {"keeps": lambda name: is_draft(name) and "attn_k_norm" not in name},
        "mtp.gguf: tensor blk.4.attn_k_norm.weight is missing, expected shape [16]",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_another_model_s_draft_layer_is_refused(wrong: str, trunk: Path, tmp_path: Path) -> None:
    how, expected = WRONG[wrong]
    other = part(FRIENDLY, tmp_path / "mtp.gguf", **{"keeps": is_draft, **how})
    with pytest.raises(BadInput) as refused, Engine.open(trunk, draft_model=other):
        pass
    assert str(refused.value) == f"[gguf] {expected}"


def test_another_token_is_named(trunk: Path, tmp_path: Path) -> None:
    tokens = ModelFile(FRIENDLY).array("tokenizer.ggml.tokens")
    tokens[17], before = "other", tokens[17]
    other = part(FRIENDLY, tmp_path / "mtp.gguf", is_draft, tokenizer__ggml__tokens=tokens)
    with pytest.raises(BadInput) as refused:
        ModelFile(trunk, other)
    assert str(refused.value) == (
        f'[gguf] mtp.gguf: has the token 17 "other", expected "{before}" as in trunk.gguf'
    )
