"""Model files as Python sees them, and what is said about bad ones."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.reference.gguf_files import byte_letters, tokenizer_keys, write_model

from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile, embedded_model_path, require_supported
from strata_tui.model_summary import summary

ORACLES = Path(__file__).parent / "data" / "oracles"

LETTERS = byte_letters()[33:96]  # 63 of them: 63^2 + 63^3 merges


def patched(path: Path, old: bytes, new: bytes) -> Path:
    """The file with some bytes changed: what the writer would not write."""
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    return path


def test_tensors_are_those_that_the_gguf_package_reads() -> None:
    path = ORACLES / "micro-qwen35.gguf"
    ours = {tensor.name: tensor for tensor in ModelFile(path).tensors}
    theirs = gguf.GGUFReader(path).tensors
    assert len(ours) == len(theirs)
    for tensor in theirs:
        info = ours[tensor.name]
        assert info.type == tensor.tensor_type.name
        assert info.type_number == tensor.tensor_type
        assert info.shape == tuple(int(n) for n in tensor.shape)
        assert info.offset == tensor.data_offset
        assert info.size_bytes == tensor.n_bytes
        assert info.n_values == tensor.n_elements


def test_keys_are_those_that_were_written(tmp_path: Path) -> None:
    written = {
        "t.flag": True,
        "t.count": 7,
        "t.eps": 0.5,
        "t.text": "Å",
        "t.flags": [True, False, True],
        "t.numbers": [3, -1, 2],
        "t.floats": [0.25, -4.0],
        "t.words": ["a", "", "東"],
        "t.long": list(range(65)),
    }
    model = ModelFile(write_model(tmp_path / "a.gguf", keys=written))
    assert {key: value for key, value in model.metadata.items() if key.startswith("t.")} == {
        key: value for key, value in written.items() if key != "t.long"
    }
    assert "t.long" in model.keys
    assert model.array("t.long").tolist() == list(range(65))
    assert model.array("t.flags").dtype == np.bool_
    assert model.array("t.words") == ["a", "", "東"]
    assert model.native.array_length("t.long") == 65
    assert model.array("absent") is None
    with pytest.raises(BadInput, match=r"\[gguf\] a.gguf: key t.count is no array"):
        model.array("t.count")


def test_strings_that_are_no_utf8_come_as_bytes(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a.gguf", keys={"t.text": "Zebra", "t.words": ["Apple", "b"]})
    patched(path, b"Zebra", b"Z\xff\xfera")
    model = ModelFile(patched(path, b"Apple", b"\xc3(ple"))
    assert model.metadata["t.text"] == b"Z\xff\xfera"
    assert model.text("t.text") is None
    assert model.array("t.words") == [b"\xc3(ple", "b"]


def test_nested_arrays_are_lists(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_array("t.nested", [[1, 2], [3, 4]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    model = ModelFile(tmp_path / "a.gguf")
    assert model.array("t.nested") == [[1, 2], [3, 4]]
    assert "t.nested" not in model.metadata


@pytest.mark.parametrize("kind", gguf.GGMLQuantizationType, ids=lambda kind: kind.name)
def test_the_size_of_every_type_is_known(tmp_path: Path, kind: gguf.GGMLQuantizationType) -> None:
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    tensor = struct.pack("<Q1sIQQIQ", 1, b"w", 2, 3 * block, 5, kind, 0)
    path = tmp_path / "a.gguf"
    path.write_bytes((header + tensor).ljust(96, b"\0") + bytes(15 * block_bytes))
    (info,) = ModelFile(path).tensors
    assert (info.name, info.type, info.shape) == ("w", kind.name, (3 * block, 5))
    assert info.size_bytes == 15 * block_bytes


def test_a_hybrid_with_a_draft_layer() -> None:
    about = summary(ModelFile(ORACLES / "micro-qwen35.gguf"))
    json.dumps(about, allow_nan=False)
    assert about["architecture"] == "qwen35"
    assert about["supported"]
    assert about["draft_layer"]
    layers = about["layers"]
    assert layers["draft"] == 1
    assert layers["gdn"] + layers["attention"] == layers["total"]
    assert layers["gdn"] > 0 and layers["attention"] > 0
    assert sum(kind["share"] for kind in about["types"].values()) == pytest.approx(1)
    assert about["parameters"] == sum(
        int(t.n_elements) for t in gguf.GGUFReader(ORACLES / "micro-qwen35.gguf").tensors
    )


def test_the_embedded_model() -> None:
    model = ModelFile(embedded_model_path())
    require_supported(model)
    assert (model.architecture, model.n_layers, model.n_draft_layers) == ("qwen35", 12, 1)
    assert [i for i, kind in enumerate(model.layer_kinds) if kind == "attention"] == [3, 7, 11]
    everything = sum(tensor.size_bytes for tensor in model.tensors)
    assert 0.95 * everything < sum(model.layer_bytes) + model.tail_bytes <= everything


def test_the_hash_follows_the_file(tmp_path: Path) -> None:
    path = write_model(tmp_path / "a.gguf", keys={"t.n": 1})
    model = ModelFile(path)
    assert model.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    os.utime(write_model(path, keys={"t.n": 2}), ns=(1, 1))
    assert ModelFile(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("arch", "line"),
    [
        (
            "qwen4exp",
            "architecture qwen4exp (hyper-connections, sparse attention, n-gram tables) is not supported",
        ),
        ("mamba", "expected one of the architectures llama, "),
        ("mamba", "got mamba"),
        ("ev\x1b[2Jil", "got ev[2Jil"),
    ],
)
def test_other_architectures_can_be_inspected_but_not_run(tmp_path: Path, arch: str, line: str) -> None:
    model = ModelFile(write_model(tmp_path / "a.gguf", arch, {f"{arch}.block_count": 3}))
    assert summary(model)["layers"]["total"] == 3
    with pytest.raises(BadInput) as error:
        require_supported(model)
    assert line in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_file_without_keys_is_described(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    about = summary(ModelFile(path))
    assert about["architecture"] == "unknown"
    assert about["name"] == "bare"
    assert about["vocabulary"] is None
    assert not about["supported"]


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("llama.block_count", "many", "expected llama.block_count to be 0 to 1024, got str"),
        ("llama.block_count", 4_000_000_000, "expected llama.block_count to be 0 to 1024, got 4000000000"),
        ("llama.nextn_predict_layers", -1.5, "expected llama.nextn_predict_layers to be 0 to 1024, got -1.5"),
        ("llama.context_length", [1, 2], "expected llama.context_length to be 0 to 2147483647, got list"),
        ("tokenizer.ggml.tokens", 5, "key tokenizer.ggml.tokens is no array"),
    ],
)
def test_keys_of_a_wrong_kind_are_named(tmp_path: Path, key: str, value: object, line: str) -> None:
    with pytest.raises(BadInput) as error:
        summary(ModelFile(write_model(tmp_path / "a.gguf", keys={key: value})))
    assert line in str(error.value)


MEASURE = """
import sys, time
from strata_tui.gguf_file import ModelFile
from strata_tui.tokenizer import Tokenizer
def peak_kib(): return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
for step in (lambda: ModelFile(sys.argv[1]).metadata, lambda: Tokenizer(ModelFile(sys.argv[1])).encode("a")):
    before, begin = peak_kib(), time.process_time()
    step()
    print(time.process_time() - begin, (peak_kib() - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_vocabulary_of_250_000_tokens_opens_at_once(tmp_path: Path) -> None:
    merges = [f"{a}{b} {c}" for a in LETTERS for b in LETTERS for c in LETTERS]
    keys = tokenizer_keys("qwen2", [f"{a} {b}" for a in LETTERS for b in LETTERS] + merges)
    path = write_model(tmp_path / "large.gguf", keys=keys)
    assert len(keys["tokenizer.ggml.tokens"]) > 250_000
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    (open_s, open_mib), (build_s, build_mib) = (map(float, line.split()) for line in done.stdout.splitlines())
    size_mib = path.stat().st_size / (1 << 20)
    print(f"open {open_s:.3f} s, {open_mib:.0f} MiB; tokenizer {build_s:.1f} s, {build_mib:.0f} MiB")
    assert open_s < 0.5 and open_mib < size_mib + 8  # of the processor; the file's own pages count too
    assert build_s < 15 and build_mib < 500


def test_bad_files_are_refused_with_one_line(tmp_path: Path) -> None:
    def line(path: Path | str) -> str:
        with pytest.raises(BadInput) as error:
            ModelFile(path)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert line(tmp_path / "none.gguf") == f"[open] {tmp_path}/none.gguf: No such file or directory"
    assert line(tmp_path) == f"[open] {tmp_path}: is a folder, expected a file"
    (tmp_path / "empty.gguf").touch()
    assert line(tmp_path / "empty.gguf").endswith("empty.gguf: is empty")
    (tmp_path / "text.gguf").write_text("hello world")
    assert "is no GGUF file: it begins with 68 65 6c 6c" in line(tmp_path / "text.gguf")
    assert "[open] (not UTF-8)" in line(os.fsdecode(b"/nowhere/\xff.gguf"))
    whole = (ORACLES / "micro-llama.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:-1000])
    assert "bytes, file has" in line(tmp_path / "cut.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    assert line(tmp_path / "pipe.gguf").endswith("is not a regular file")


def test_a_name_that_is_no_utf8_opens(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.gguf")
    model = ModelFile(write_model(path, keys={"t.n": 1}))
    assert model.file_name == path.name
