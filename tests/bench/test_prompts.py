from pathlib import Path

import pytest

from strata_tui.bench.prompts import prompts_of_size
from strata_tui.errors import BadInput


def by_bytes(text: str) -> list[int]:
    return list(text.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_text("second " * 40)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.txt").write_text("first äöü " * 10)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 100)
    (tmp_path / "zeros").write_bytes(b"zeros\0zeros")
    (tmp_path / "empty").write_text("")
    return tmp_path


def test_prompts_have_the_size_and_differ_in_their_first_line_only(folder: Path) -> None:
    prompts = prompts_of_size(folder, 300, 12, by_bytes)
    assert [len(prompt) for prompt in prompts] == [300] * 12
    assert len({bytes(p).split(b"\n")[0] for p in prompts}) == 12
    bodies = [bytes(p).split(b"\n", 1)[1] for p in prompts]
    assert all(longest.startswith(body) for body in bodies for longest in [max(bodies, key=len)])
    assert bodies[0].startswith("first äöü first".encode())
    assert b"second second" in bodies[0]
    assert b"zeros" not in bodies[0]


def test_a_file_that_is_read_in_part_is_cut_at_a_character(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("a" + "ü" * 10_000)
    prompt = prompts_of_size(tmp_path, 100, 1, by_bytes)[0]
    assert bytes(prompt).split(b"\n", 1)[1].startswith("aüü".encode())


def test_too_little_text(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"expected text for 5,000 tokens in .*, got "):
        prompts_of_size(folder, 5000, 2, by_bytes)


def test_no_room_for_a_first_line(folder: Path) -> None:
    with pytest.raises(BadInput, match="expected room for a first line"):
        prompts_of_size(folder, 5, 2, by_bytes)


def test_no_folder(folder: Path) -> None:
    with pytest.raises(BadInput, match="expected a folder"):
        prompts_of_size(folder / "b.txt", 5, 2, by_bytes)
