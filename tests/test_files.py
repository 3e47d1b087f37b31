"""Files that appear whole or not at all."""

import os
import threading

import pytest

from strata_tui.files import sole_writer, whole_file


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "out.npz"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["out.npz"]


def test_a_links_target_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with whole_file(pipe) as file:
        file.write(b"through")
    reader.join(10)
    assert got == [b"through"]
    assert pipe.is_fifo()


def test_a_file_has_one_writer_and_keeps_its_content(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "a"
    path.write_bytes(b"a former content that is longer")
    with sole_writer(path) as file:
        file.write(b"ours")
        file.flush()
        with pytest.raises(BlockingIOError, match="another program records into"):
            sole_writer(path)
        assert path.read_bytes() == b"ours"
    sole_writer(path).close()
    assert path.read_bytes() == b""
    with pytest.raises(FileExistsError):
        sole_writer(path, new=True)


def test_an_error_names_the_target_and_not_what_lies_beside_it(tmp_path):
    path = tmp_path / "no" / "such" / "out.npz"
    with pytest.raises(FileNotFoundError) as told, whole_file(path):
        pass
    assert str(told.value).endswith(f"No such file or directory: '{path}'")
    path = tmp_path / "out.npz"
    with pytest.raises(IsADirectoryError) as told, whole_file(path) as file:
        file.write(b"new")
        path.mkdir()  # meanwhile: what is written can't take its place
    assert str(told.value).endswith(f"Is a directory: '{path}'")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="another"), whole_file(tmp_path / "b"):
        (tmp_path / "another").read_bytes()
