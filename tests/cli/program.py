"""The program as a process of its own, and what a run of it gave."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ORACLES = Path(__file__).parents[1] / "data" / "oracles"
# Random weights, 4 layers, 512 tokens.
QWEN35 = ORACLES / "micro-qwen35.gguf"
LLAMA = ORACLES / "micro-llama.gguf"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        lines = self.err.splitlines()
        assert (self.code, self.out, len(lines)) == (2, "", 1), self
        assert lines[0].startswith("strata-tui: ")
        return lines[0]


Strata = Callable[..., Result]


def start(*args: object, **streams: Any) -> subprocess.Popen[bytes]:
    """Starts the program; streams that are not given are pipes."""
    program = [sys.executable, "-c", "from strata_tui.cli import main; main()"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*program, *map(str, args)], **{**pipes, **streams})
