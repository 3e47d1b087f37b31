"""Plain decoding against the read bandwidth; a window of 4 rows against one of one: bandwidth.py [MODEL ..]

Without a model: llamas of width 2048, of Q4_K and of Q8_0, more than 300 MB each, in a temporary folder.
Reading memory, single rows and windows of 4 take turns, each timed in pieces of about 0.1 s. The fastest
piece is what the machine gives undisturbed; the median says how far it was from that.
"""

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from strata_tui import Engine, _core
from strata_tui.events import Kind

sys.path.insert(0, str(Path(__file__).parents[1]))
from reference.random_models import Shape, random_tensors, write_model

PROMPT = list(range(1, 17))
ROUNDS, TOKENS = 8, 24
WIDE = {"n_embd": 2048, "n_heads": 32, "n_kv_heads": 8, "n_ff": 5632, "n_vocab": 4096}
LAYERS = {"Q4_K": 14, "Q8_0": 8}


def synthetic(folder: Path) -> Iterator[Path]:
    for kind, n_layers in LAYERS.items():
        shape, path = Shape(n_layers=n_layers, **WIDE), folder / f"random-{kind}.gguf"
        write_model(path, shape, random_tensors(shape, kind))
        yield path


def run_ms(engine: Engine, rows: int, replay: list[int]) -> list[float]:
    """Times of the stage's runs of windows of so many rows, all of whose drafts are right."""
    engine.switches.draft, engine.switches.draft_max = ("none", 1) if rows == 1 else ("replay:1", rows - 1)
    engine.events()
    session = engine.session()
    session.start(PROMPT, TOKENS, replay=replay)
    session.to_the_end()
    events = engine.events()
    runs = events[(events["kind"] == Kind.run) & (events["b"] == 0) & (events["rows"] == rows)]
    return (runs["dur_ns"] / 1e6).tolist()


def measure(model: Path, threads: int) -> None:
    with Engine.open(model, stages=1, threads=threads, draft="none", context=256) as engine:
        replay = engine.session().record_plain(PROMPT, max_tokens=TOKENS)
        read: list[float] = []  # GB/s
        one: list[float] = []  # ms
        four: list[float] = []
        for _ in range(ROUNDS):
            read += (_core.kernels.measure_read_bandwidth(256 << 20, threads, 0.1) for _ in range(8))
            one += run_ms(engine, 1, replay)
            four += run_ms(engine, 4, replay)
        weight_bytes = engine.stages[0].weight_bytes
    print(f"{model.name}: {weight_bytes / 1e6:.0f} MB of weights a row, {threads} threads")
    for name, least, most in (("fastest", min, max), ("median", statistics.median, statistics.median)):
        rate = weight_bytes / least(one) / 1e6
        print(
            f"  {name:7} {least(one):7.2f} ms a row = {rate:4.1f} GB/s = {rate / most(read):4.0%} of "
            f"{most(read):4.1f} GB/s; 4 rows {least(four):7.2f} ms = {least(four) / least(one):.2f} x one",
            flush=True,
        )


def main(models: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for model in map(Path, models) if models else synthetic(Path(folder)):
            for threads in (1, 2):
                measure(model, threads)


if __name__ == "__main__":
    main(sys.argv[1:])
