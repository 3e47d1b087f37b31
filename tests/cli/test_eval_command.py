import signal
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.program import LLAMA, ORACLES, QWEN35, Strata, start

NAMES = {"logits": "logits", "hidden": "hidden_after_output_norm", "nextn_logits": "nextn_logits"}


@pytest.mark.parametrize("model", [LLAMA, QWEN35], ids=lambda path: path.stem)
@pytest.mark.parametrize("flags", ["--stages 1", "--stages 3 --threads 2 --chunk 4", "--split 2 --isa avx2"])
def test_the_arrays_are_the_oracle_s(strata: Strata, tmp_path: Path, model: Path, flags: str) -> None:
    oracle = np.load(ORACLES / f"{model.stem}.npz")
    output = tmp_path / "out.npz"
    tokens = ",".join(map(str, oracle["tokens"]))
    result = strata("eval", model, "--tokens", tokens, "-o", output, *flags.split())
    assert (result.code, result.out) == (0, ""), result.err
    with np.load(output) as got:
        assert set(got) == {"logits", "hidden"} | ({"nextn_logits"} if model == QWEN35 else set())
        for name in got:
            assert got[name].dtype == np.float32
            assert got[name].shape[0] == len(oracle["tokens"]) - (name == "nextn_logits")
            if NAMES[name] in oracle:
                np.testing.assert_allclose(got[name], oracle[NAMES[name]], rtol=0, atol=2e-4)
    assert list(tmp_path.iterdir()) == [output]


def test_cells_of_16_bits_differ_a_little(strata: Strata, tmp_path: Path) -> None:
    logits = []
    for kv in ("f32", "f16"):
        strata("eval", LLAMA, "--tokens", "1,2,3,4,5", "-o", tmp_path / "out.npz", "--kv", kv)
        logits.append(np.load(tmp_path / "out.npz")["logits"])
    assert 0 < np.abs(logits[0] - logits[1]).max() < 0.05


def test_one_token_has_no_draft_row(strata: Strata, tmp_path: Path) -> None:
    strata("eval", QWEN35, "--tokens", "7", "-o", tmp_path / "out")
    with np.load(tmp_path / "out") as got:
        assert {name: got[name].shape for name in got} == {
            "logits": (1, 512),
            "hidden": (1, 64),
            "nextn_logits": (0, 512),
        }


def test_an_output_that_cannot_be_sought_is_refused(strata: Strata) -> None:
    line = strata("eval", LLAMA, "--tokens", "1", "-o", "/dev/null").error
    assert (
        line
        == "strata-tui: -o: expected a regular file, or a new one, got /dev/null, where nothing can be sought"
    )
    process = start("eval", LLAMA, "--tokens", "1", "-o", "/dev/stdout")
    out, err = process.communicate()
    assert (process.returncode, out, err.count(b"\n")) == (2, b"", 1)
    assert b"got /dev/stdout, where nothing can be sought" in err


def test_the_model_is_never_its_own_output(strata: Strata, tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(LLAMA.read_bytes())
    line = strata("eval", model, "--tokens", "1,2", "-o", model).error
    assert line == f"strata-tui: -o: expected another file than that of the model, got {model} for both"
    assert model.read_bytes() == LLAMA.read_bytes()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sees handlers through /proc")
def test_ctrl_c_ends_it_in_the_middle(tmp_path: Path) -> None:
    tokens = tmp_path / "ids.txt"
    tokens.write_text(",".join(str(3 + i % 500) for i in range(3900)))
    process = start("eval", "--tokens", f"@{tokens}", "-o", tmp_path / "out.npz", "--threads", "1")
    for handled in (True, False):  # Python's own, then none while the pass lasts
        while _handles_ctrl_c(process.pid) != handled:
            assert process.poll() is None
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == [tokens]


def _handles_ctrl_c(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGINT - 1) & 1)
