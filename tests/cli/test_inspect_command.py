import itertools
import json
from pathlib import Path

import pytest
from tests.cli.program import LLAMA, QWEN35, Strata
from tests.reference.gguf_files import tokenizer_keys, write_model

from strata_tui import Engine


def test_what_is_in_a_file(strata: Strata) -> None:
    about = json.loads(strata("inspect", QWEN35, "--json", "--stages", "3").out)
    assert (about["architecture"], about["supported"], about["vocabulary"]) == ("qwen35", True, 512)
    assert about["layers"] == {"total": 4, "attention": 1, "gdn": 3, "draft": 1}
    assert about["types"]["F32"]["share"] == 1
    ends = [(stage["first_layer"], stage["last_layer"]) for stage in about["stages"]]
    assert ends[0][0] == 0
    assert ends[-1][1] == 3
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(ends))
    weights = sum(stage["weight_bytes"] for stage in about["stages"])
    assert weights == sum(about["layer_bytes"]) + about["tail_bytes"]


@pytest.mark.parametrize("path", [QWEN35, LLAMA], ids=lambda path: path.stem)
@pytest.mark.parametrize("kv", ["f32", "f16"])
def test_the_memory_of_a_split_is_what_the_engine_takes(strata: Strata, path: Path, kv: str) -> None:
    out = strata("inspect", path, "--json", "--split", "1,3", "--ctx", "64", "--kv", kv).out
    shown = json.loads(out)["stages"]
    with Engine.open(path, split=(1, 3), kv=kv, context=64, draft="none") as engine:
        for stage, real in zip(shown, engine.stages, strict=True):
            assert (stage["first_layer"], stage["last_layer"]) == (real.first_layer, real.last_layer)
            assert stage["state_bytes"] <= real.state_bytes  # which keeps states of several windows
            assert (stage["state_bytes"] > 0) == (real.state_bytes > 0)
        cells = [stage["kv_bytes"] for stage in shown]
        assert cells[:-1] == [real.kv_bytes for real in engine.stages[:-1]]
        draft_cells = cells[-1] - engine.stages[-1].kv_bytes
        assert (draft_cells > 0) == (path == QWEN35)


def test_more_stages_than_layers_are_shown_as_one_a_layer(strata: Strata) -> None:
    assert len(json.loads(strata("inspect", LLAMA, "--json", "--stages", "32").out)["stages"]) == 4


def test_a_split_that_does_not_fit_is_refused(strata: Strata) -> None:
    assert (
        "--split (or STRATA_LAYER_SPLIT): expected layers that ascend from 1"
        in strata("inspect", LLAMA, "--split", "4").error
    )
    assert "expected 2 as --split has it" in strata("inspect", LLAMA, "--split", "1", "--stages", "3").error


def test_the_lines_for_a_person(strata: Strata) -> None:
    out = strata("inspect", QWEN35, "--ctx", "100").out
    for words in (
        "architecture   qwen35",
        "3 Gated DeltaNet, 1 attention",
        "NextN / MTP",
        "stage 1        layer 3, ",
        "of K/V at 100 tokens",
        "of states",
    ):
        assert words in out
    out = strata("inspect").out
    assert "pebble" in out
    assert "gpt2 / qwen35" in out
    assert "control and" in out


def test_tokens_and_template(strata: Strata, tmp_path: Path) -> None:
    special = {"control": ["<|im_start|>", "<|im_end|>"], "user_defined": ["<think>"], "eos_token_id": 258}
    keys = tokenizer_keys("qwen2", **special)
    keys["tokenizer.chat_template"] = "<|im_start|>{% if enable_thinking %}{% endif %}{{ tools }}"
    path = write_model(tmp_path / "t.gguf", keys=keys)
    out = strata("inspect", path).out
    assert "gpt2 / qwen2, 260 tokens" in out
    assert "2 control and 1 user-defined tokens" in out
    assert "begin none; end <|im_end|> (258)" in out
    assert "chatml, 58 characters, a switch for thinking, tools" in out
    about = json.loads(strata("inspect", path, "--json").out)
    assert about["tokenizer"]["end_tokens"] == [{"id": 258, "text": "<|im_end|>"}]
    assert about["template"]["family"] == "chatml"


def test_a_tokenizer_that_cannot_be_used_is_said(strata: Strata, tmp_path: Path) -> None:
    path = write_model(tmp_path / "t.gguf", keys=tokenizer_keys("gpt-9"))
    assert (
        "can't be used: [tokenizer] t.gguf: expected tokenizer.ggml.pre to be one of"
        in strata("inspect", path).out
    )


def test_an_architecture_that_cannot_be_run_can_be_inspected(strata: Strata, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(LLAMA.read_bytes().replace(b"llama", b"lambs"))
    assert "can't be run" in strata("inspect", other).out
    assert "lambs" in strata("run", other, "--tokens", "1").error


def test_hostile_names_cannot_move_the_cursor(strata: Strata, tmp_path: Path) -> None:
    hostile = str(tmp_path) + "/hostile.gguf"
    with open(hostile, "wb") as file:
        file.write(LLAMA.read_bytes().replace(b"random-llama-micro", b"\x1b[2J\nllama-micro!!"))
    result = strata("inspect", hostile)
    assert "\x1b" not in result.out
    assert len(result.out.splitlines()) == len(strata("inspect", LLAMA).out.splitlines())
