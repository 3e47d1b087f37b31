"""`check` on one small model of each architecture: architectures.py [--quick] [NAME ..]

The oracles' models where there is one, else random weights of width 256 with an oracle's tokenizer. Random
draft layers are never right; what guesses and their undoing need comes from the arms with replayed drafts.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gguf

from reference.oracle_models import ARCHITECTURES, ORACLES, oracle_model
from reference.random_models import Shape, random_tensors, write_model

OTHERS = ("mixtral", "internlm2", "ernie4_5", "smollm3", "qwen2moe", "seed_oss")
PROGRAM = [sys.executable, "-c", "from strata_tui.cli import main; main()"]


def small_model(name: str, folder: Path) -> Path:
    if name in ARCHITECTURES:
        return oracle_model(name, folder)
    path = folder / f"random-{name}.gguf"
    shape = Shape(name, n_layers=4, context=4096)
    tokenizer = gguf.GGUFReader(ORACLES / "micro-llama.gguf")
    write_model(path, shape, random_tensors(shape, "Q4_K"), tokenizer)
    return path


def check(path: Path, mode: str) -> dict[str, Any]:
    done = subprocess.run([*PROGRAM, "check", path, mode, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def main(arguments: list[str]) -> int:
    mode = "--quick" if "--quick" in arguments else "--full"
    names = [name for name in arguments if not name.startswith("--")] or [*ARCHITECTURES, *OTHERS]
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            begin = time.monotonic()
            got = check(small_model(name, Path(folder)), mode)
            windows, launched, kept = (
                sum(arm[key] for arm in got["arms"]) for key in ("windows", "launched", "kept")
            )
            same = "identical" if got["identical"] else "DIFFERENT"
            covered = "covered" if got["covered"] else "NOT COVERED"
            print(
                f"{name:<10} {len(got['arms']):>3} arms, {windows:>6,} windows, {launched:>5,} guesses "
                f"launched, {kept:>5,} kept: {same}, {covered} ({time.monotonic() - begin:.0f} s)",
                flush=True,
            )
            if not (got["identical"] and got["covered"]):
                failed.append(name)
    print(
        f"{len(names) - len(failed)} of {len(names)} architectures"
        + (f"; failed: {failed}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
