"""The weights are paged in once each, stage after stage, and what is in memory is not read again."""

import os
from pathlib import Path

import pytest

pytest.importorskip("strata_tui._core")

from strata_tui import paging
from strata_tui.gguf_file import ModelFile, open_model_file
from strata_tui.paging import GAP, PIECE, Range, page_in, weight_ranges

ORACLES = Path(__file__).parent / "data/oracles"


def model(name: str = "micro-qwen35.gguf") -> ModelFile:
    return ModelFile(ORACLES / name)


def test_each_tensor_lies_in_a_range_of_its_stage() -> None:
    of, split = open_model_file(None), (5, 9)
    ranges = weight_ranges(of, split)
    assert [part.stage for part in ranges] == sorted(part.stage for part in ranges)
    for tensor in of.tensors:
        name, *rest = tensor.name.split(".")
        layer = int(rest[0]) if name == "blk" else 0 if name == "token_embd" else of.n_layers
        stage = sum(layer >= first for first in split)
        holds = [part for part in ranges if part.begin <= tensor.offset < part.end]
        assert [part.stage for part in holds] == [stage], tensor.name
        assert tensor.offset + tensor.size_bytes <= holds[0].end
    n_bytes = sum(tensor.size_bytes for tensor in of.tensors)
    covered = sum(part.end - part.begin for part in ranges)
    assert n_bytes <= covered <= n_bytes + GAP * len(of.tensors)


def test_of_a_draft_file_only_its_draft_layer_is_read_with_the_last_stage() -> None:
    of = model()
    of.draft = model("micro-qwen35-friendly.gguf")
    ranges = weight_ranges(of, (1,))
    drafts = [part for part in ranges if part.path == of.draft.path]
    assert {part.stage for part in drafts} == {1}
    of_layer = [tensor for tensor in of.draft.tensors if tensor.name.startswith(f"blk.{of.n_layers}.")]
    assert of_layer and sum(part.end - part.begin for part in drafts) < GAP + sum(
        tensor.size_bytes for tensor in of_layer
    )
    assert {part.stage for part in ranges if part.path == of.path} == {0, 1}


def test_every_byte_is_told_and_what_is_in_memory_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(2 * PIECE + 12_345))  # just written: it is in memory
    told: list[tuple[int, bool, int]] = []
    page_in([Range(path, 5, 2 * PIECE + 12_345, 3)], lambda *note: told.append(note))
    assert sum(size for size, _, _ in told) == 2 * PIECE + 12_340
    assert {stage for _, _, stage in told} == {3}
    assert all(size <= PIECE for size, _, _ in told)


def test_where_the_system_does_not_tell_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(PIECE + 100))
    read: list[tuple[int, int]] = []
    preadv = os.preadv

    def watched(number: int, buffers: list[memoryview], at: int, flags: int = 0) -> int:
        if flags:
            raise OSError(95, "not supported")
        read.append((at, len(buffers[0])))
        return preadv(number, buffers, at)

    monkeypatch.setattr(paging.os, "preadv", watched)
    told: list[bool] = []
    page_in([Range(path, 0, PIECE + 100, 0)], lambda size, was_read, stage: told.append(was_read))
    assert read == [(0, PIECE), (PIECE, 100)] and told == [True, True]


def test_what_a_note_raises_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(3 * PIECE))
    told: list[int] = []

    class Enough(Exception):
        pass

    def note(size: int, was_read: bool, stage: int) -> None:
        told.append(size)
        raise Enough

    with pytest.raises(Enough):
        page_in([Range(path, 0, 3 * PIECE, 0)], note)
    assert len(told) == 1


def test_a_file_that_has_become_shorter_is_no_error_here(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(bytes(100))
    told: list[int] = []
    page_in([Range(path, 0, 3 * PIECE, 0)], lambda size, was_read, stage: told.append(size))
    assert sum(told) == 3 * PIECE
