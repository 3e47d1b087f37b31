"""Model files that are wrong in every way that we know of: the line that each prints, and no crash."""

import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.program import QWEN35, Strata, start

U8, U16, I32, U32, STRING, ARRAY, U64 = 0, 2, 5, 4, 8, 9, 10


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def model(
    keys: list[bytes] | None = None,
    tensors: list[bytes] | None = None,
    data: int = 64,
    magic: bytes = b"GGUF",
    version: int = 3,
    n_keys: int | None = None,
    n_tensors: int | None = None,
) -> bytes:
    """A file put together by hand, so that anything in it can be wrong; `data` zero bytes at its end."""
    keys, tensors = keys or [], tensors or []
    counts = (len(tensors) if n_tensors is None else n_tensors, len(keys) if n_keys is None else n_keys)
    head = magic + struct.pack("<IQQ", version, *counts) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(data)


ARCH = key(b"general.architecture", STRING, text(b"llama"))

# what is wrong: the file, and what is said of it after "[gguf] hostile.gguf: "
HOSTILE: dict[str, tuple[bytes, str]] = {
    "another format": (
        model(magic=b"GGML"),
        "is no GGUF file: it begins with 47 47 4d 4c instead of 47 47 55 46 (GGUF)",
    ),
    "big-endian": (model(version=3 << 24), "is big-endian, expected little-endian"),
    "version 1": (model(version=1), "has version 1, expected 2 or 3"),
    "version 4": (model(version=4), "has version 4, expected 2 or 3"),
    "cut in the magic": (b"GG", "header at offset 0 needs 4 bytes, file has 2 left"),
    "cut in the header": (model()[:17], "header at offset 16 needs 8 bytes, file has 1 left"),
    "cut in a key": (model([ARCH])[:30], "header announces 1 keys, file has 6 bytes left"),
    "cut in the data": (
        model([ARCH], [tensor(b"w", (4,))], data=8),
        "tensor w at offset 0 of the data needs 16 bytes, file has 8 left",
    ),
    "keys near 2^64": (
        model(n_keys=2**64 - 1),
        "header announces 18446744073709551615 keys, file has 72 bytes left",
    ),
    "tensors near 2^64": (
        model(n_tensors=2**64 - 2),
        "header announces 18446744073709551614 tensors, file has 72 bytes left",
    ),
    "a string near 2^64": (
        model([key(b"a", STRING, struct.pack("<Q", 2**64 - 1))]),
        'key "a" at offset 45 needs 18446744073709551615 bytes, file has 83 left',
    ),
    "an array near 2^64": (
        model([key(b"a", ARRAY, struct.pack("<IQ", U64, 2**61 + 1))]),
        'key "a" announces 2305843009213693953 array elements, file has 79 bytes left',
    ),
    "arrays in arrays": (
        model([key(b"a", ARRAY, struct.pack("<IQ", ARRAY, 1) * 9)]),
        'key "a" nests arrays more than 4 deep',
    ),
    "a key twice": (model([ARCH, ARCH]), 'key "general.architecture" appears twice'),
    "a key that is no UTF-8": (model([key(b"\xff", U8, b"\0")]), "key 0 has a name that is not UTF-8"),
    "a key without a name": (
        model([key(b"", U8, b"\0")]),
        "key 0 has a name of 0 bytes, expected 1 to 65535",
    ),
    "an unknown type of value": (model([key(b"a", 13, b"\0")]), 'key "a" has the unknown value type 13'),
    "a boolean of 2": (model([key(b"a", 7, b"\2")]), 'key "a" holds the boolean 2, expected 0 or 1'),
    "alignment 0": (
        model([key(b"general.alignment", U32, struct.pack("<I", 0))]),
        "general.alignment is 0, expected a power of two up to 1048576",
    ),
    "alignment 48": (
        model([key(b"general.alignment", U32, struct.pack("<I", 48))]),
        "general.alignment is 48, expected a power of two up to 1048576",
    ),
    "a tensor twice": (
        model([], [tensor(b"w", (4,)), tensor(b"w", (4,), 0, 32)]),
        "tensor w appears twice",
    ),
    "a tensor that is no UTF-8": (
        model([], [tensor(b"\xc0\x80", (4,))]),
        "tensor 0 has a name that is not UTF-8",
    ),
    "five dimensions": (
        model([], [tensor(b"w", (1,) * 5)]),
        "tensor w has 5 dimensions, expected at most 4",
    ),
    "a dimension near 2^64": (
        model([], [tensor(b"w", (2**64 - 1,))]),
        "tensor w has a dimension of 18446744073709551615",
    ),
    "a product beyond 2^63": (
        model([], [tensor(b"w", (2**32, 2**31))]),
        "tensor w has the impossible shape [4294967296, 2147483648]",
    ),
    "an unknown type": (model([], [tensor(b"w", (32,), 42)]), "tensor w has the unknown type 42"),
    "a row that is no multiple of the block": (
        model([], [tensor(b"w", (33,), 8)]),
        "tensor w has rows of 33 values, expected a multiple of 32 (Q8_0)",
    ),
    "a misaligned offset": (
        model([], [tensor(b"w", (4,), 0, 16)]),
        "tensor w has offset 16, expected a multiple of 32",
    ),
    "an offset near 2^64": (
        model([], [tensor(b"w", (4,), 0, 2**64 - 32)]),
        "tensor w at offset 18446744073709551584 of the data needs 16 bytes, file has 0 left",
    ),
    "overlapping tensors": (
        model([], [tensor(b"a", (16,)), tensor(b"b", (4,), 0, 32)], data=128),
        "tensors a and b overlap at offset 128",
    ),
    "a shard of none": (
        model([key(b"split.count", U16, struct.pack("<H", 3))]),
        "key split.no is missing, expected 0 to 2",
    ),
    "a shard under another name": (
        model([key(b"split.count", U16, b"\3\0"), key(b"split.no", U16, b"\1\0")]),
        "is shard 2 of 3 (split.no, split.count), expected a name that ends with -00002-of-00003.gguf",
    ),
    "shards near 2^64": (
        model([key(b"split.count", U64, struct.pack("<Q", 2**64 - 1))]),
        "key split.count holds 18446744073709551615, expected 0 to 65535",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_said_in_one_line(strata: Strata, tmp_path: Path, name: str) -> None:
    data, line = HOSTILE[name]
    path = tmp_path / "hostile.gguf"
    path.write_bytes(data)
    for command in (("inspect", path), ("run", path, "--tokens", "1")):
        assert strata(*command).error == f"strata-tui: [gguf] hostile.gguf: {line}"


def test_dimensions_of_zero_and_unknown_text_are_valid(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    odd = key(b"general.name", STRING, text(b"\xff\xfe"))
    path.write_bytes(model([ARCH, odd], [tensor(b"none", (0, 5), 12), tensor(b"far", (0,), 0, 1 << 40)]))
    assert "0 in 2 tensors" in strata("inspect", path).out


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1 and len(old) == len(new)
    return data.replace(old, new)


def reshaped(data: bytes, name: bytes) -> bytes:
    """The tensor's two dimensions change places."""
    at = data.index(name) + len(name)
    n_dims, first, second = struct.unpack_from("<IQQ", data, at)
    assert n_dims == 2 and first != second
    return data[: at + 4] + struct.pack("<QQ", second, first) + data[at + 20 :]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: renamed(d, b"nextn.enorm", b"nextn.enarm"), "nextn.enorm.weight is missing"),
        (lambda d: renamed(d, b"blk.4.ffn_down", b"blk.4.ffn_dawn"), "blk.4.ffn_down.weight is missing"),
        (lambda d: reshaped(d, b"blk.4.nextn.eh_proj.weight"), "nextn.eh_proj.weight has shape ["),
        (lambda d: reshaped(d, b"blk.4.ffn_up.weight"), "blk.4.ffn_up.weight has shape ["),
        (
            lambda d: renamed(d, b"qwen35.block_count", b"qwen35.block_cownt"),
            "nextn_predict_layers to be below the 0 blocks, got 1",
        ),
        (lambda d: d.replace(b"qwen35", b"qwen4x"), "qwen4x"),
    ],
    ids=["no enorm", "no ffn", "eh_proj turned", "ffn turned", "no block count", "unknown"],
)
def test_a_draft_layer_or_model_that_is_not_whole(
    strata: Strata, tmp_path: Path, change: Callable[[bytes], bytes], expected: str
) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(change(QWEN35.read_bytes()))
    line = strata("run", path, "--tokens", "1", "-n", "2").error
    assert expected in line
    assert "broken.gguf" in line


def test_a_model_that_lacks_its_draft_layer_runs_without(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "older.gguf"
    path.write_bytes(renamed(QWEN35.read_bytes(), b"nextn.eh_proj", b"nextn.eh_prog"))
    assert "draft layer    none" in strata("inspect", path).out
    assert strata("run", path, "--tokens", "1", "-n", "2").code == 0


def test_a_file_cut_anywhere_is_refused(strata: Strata, tmp_path: Path) -> None:
    data = QWEN35.read_bytes()
    path = tmp_path / "cut.gguf"
    for size in (1, 4, 23, 24, 100, 1000, 5000, 20_000, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        assert strata("inspect", path).error.startswith("strata-tui: [gguf] cut.gguf: ")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on the address space")
def test_announced_counts_cost_no_memory(tmp_path: Path) -> None:
    """Each of the counts near 2^64 in a process that has 700 MB."""
    limit = 700 << 20
    for name in ("keys near 2^64", "a string near 2^64", "an array near 2^64", "tensors near 2^64"):
        path = tmp_path / "hostile.gguf"
        path.write_bytes(HOSTILE[name][0])
        process = start(
            "inspect", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        )
        assert process.stdout and process.stderr
        _, err = process.communicate()
        assert (process.returncode, len(err.splitlines())) == (2, 1), err


def test_a_set_of_shards(strata: Strata, tmp_path: Path) -> None:
    def shard(i: int, tensors: list[bytes], *more: bytes, n: int = 2) -> bytes:
        split = [
            key(b"split.count", U16, struct.pack("<H", 2)),
            key(b"split.no", U16, struct.pack("<H", i)),
            key(b"split.tensors.count", I32, struct.pack("<i", n)),
        ]
        return model([*more, *split], tensors)

    first, second = (tmp_path / f"m-0000{i}-of-00002.gguf" for i in (1, 2))
    first.write_bytes(shard(0, [tensor(b"a", (4,))], ARCH))
    assert strata("inspect", first).error.endswith(
        "[gguf] m-00002-of-00002.gguf: missing of the 2 shards of the model"
    )
    second.write_bytes(shard(1, [tensor(b"b", (8,))]))
    assert strata("inspect", first).out == strata("inspect", second).out
    assert "12 in 2 tensors" in strata("inspect", second).out
    second.write_bytes(shard(1, [tensor(b"a", (8,))]))
    assert (
        "m-00002-of-00002.gguf: tensor a stands in m-00001-of-00002.gguf too"
        in strata("inspect", first).error
    )
    second.write_bytes(shard(1, []))
    assert "has 1 tensors in 2 shards, expected 2 (split.tensors.count)" in strata("inspect", first).error
    second.write_bytes(shard(0, [tensor(b"b", (8,))]))
    assert "m-00002-of-00002.gguf: key split.no holds 0, expected 1 to 1" in strata("inspect", first).error
    second.write_bytes(second.read_bytes()[:40])
    assert "m-00002-of-00002.gguf: " in strata("inspect", first).error


def test_the_program_itself_never_dies_of_a_file(tmp_path: Path) -> None:
    """As a process of its own, where a signal would show."""
    path = tmp_path / "hostile.gguf"
    for name in ("another format", "overlapping tensors", "arrays in arrays"):
        path.write_bytes(HOSTILE[name][0])
        process = start("inspect", path, stdin=subprocess.DEVNULL)
        process.communicate()
        assert process.returncode == 2
