"""Plain decoding against the read bandwidth; a window of 4 rows against one of one: bandwidth.py [MODEL]"""

import statistics
import sys

from strata_tui import Engine, _core

PROMPT = "The old man sat by the fire and told them a story."


def main(model: str | None) -> None:
    for threads in (1, 2):
        read = _core.kernels.measure_read_bandwidth(256 << 20, threads, 0.5)
        with Engine.open(model, stages=1, threads=threads, draft="none") as engine:
            stage = engine.stages[0]
            ms: dict[int, list[float]] = {1: [], 4: []}
            prompt = engine.tokens_of(PROMPT)
            session = engine.session()
            engine.switches.draft = "none"
            replay = list(session.generate(prompt, max_tokens=96, ignore_eos=True))
            for _ in range(3):
                for rows in ms:
                    engine.switches.draft = "none"
                    session = engine.session()
                    if rows == 4:
                        engine.switches.draft, engine.switches.draft_max = "replay:1.0", 3
                        session.start(prompt, 97, replay=replay)
                        while session.running:
                            session.wait(1)
                            session.read()  # what is unread would end every wait at once
                    else:
                        list(session.generate(prompt, max_tokens=96, ignore_eos=True))
                    events = engine.events()
                    runs = events[(events["kind"] == 1) & (events["b"] == 0) & (events["rows"] == rows)]
                    ms[rows].append(statistics.median(runs["dur_ns"].tolist()) / 1e6)
            one, four = statistics.median(ms[1]), statistics.median(ms[4])
            rate = stage.weight_bytes / one / 1e6
            print(
                f"{engine.model.file_name}, {threads} threads: {one:.2f} ms a row = {1000 / one:.0f} tok/s, "
                f"{rate:.1f} GB/s of weights = {rate / read:.0%} of {read:.1f} GB/s read; "
                f"4 rows {four / one:.2f} x one"
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
