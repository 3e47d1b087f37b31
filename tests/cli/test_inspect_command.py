import itertools
import json
from pathlib import Path

from tests.cli.program import LLAMA, QWEN35, Strata


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


def test_more_stages_than_layers_are_shown_as_one_a_layer(strata: Strata) -> None:
    assert len(json.loads(strata("inspect", LLAMA, "--json", "--stages", "32").out)["stages"]) == 4


def test_the_lines_for_a_person(strata: Strata) -> None:
    out = strata("inspect", QWEN35).out
    for words in (
        "architecture   qwen35",
        "3 Gated DeltaNet, 1 attention",
        "NextN / MTP",
        "stage 1        layers 3-3",
    ):
        assert words in out
    assert "pebble" in strata("inspect").out


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
