"""Random prompts, lengths, cancels and flips for a time; every text against plain decoding.

    python tests/proofs/soak.py [--minutes 30] [--seed 1] [MODEL.gguf]

One engine of four stages decodes with whatever the switches happen to be, another, of one stage, decodes
plainly. Says how many texts, tokens, flips, cancels and guesses there were, and how the memory in use grew
after the first minute.
Exit code 1: a text or a state differed, or something was left in flight.
"""

import argparse
import os
import random
import sys
import threading
import time

from strata_tui import Engine, Sampling

WORDS = ["the", "river", "old", "lamp", "said", "Tom", "and", "went", "under", "a", "wide", "bridge"]
WORDS += ["def", "return", "for", "x", "in", "range", "print", "list", "stone"]


def rss_mb() -> float:
    """Memory resident, in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def flip(switches, random_) -> None:
    """One switch gets a random value."""
    name, values = random_.choice(
        [
            ("overlap", (False, True)),
            ("pipeline_windows", (0, 2, 3, 4)),
            ("theta", (0.0, 0.2, 2.0)),
            ("draft_max", range(8)),
            ("draft", ("mtp", "lookup", "none")),
            ("draft_min_p", (0.0, 0.3)),
            ("chain_ahead", (False, True)),
            ("force_miss", (0, 0, 3)),
            ("spec_depth", (1, 2, 32, 32)),
        ]
    )
    setattr(switches, name, random_.choice(values))


def main() -> int:
    """The soak."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    end = time.monotonic() + 60 * args.minutes
    counts = dict.fromkeys(("texts", "tokens", "flips", "cancels", "kept", "rolled_back"), 0)
    settled = None
    with (
        Engine.open(args.model, stages=1, draft="none", context=1024, events=False) as plain,
        Engine.open(args.model, stages=4, threads=1, pipeline_max=4, context=1024) as engine,
    ):
        next_report = time.monotonic() + 60
        while time.monotonic() < end:
            prompt = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 200)))
            tokens = engine.tokens_of(prompt)[:700]
            wanted = draw.randint(1, 200)
            sampling = draw.choice(
                (Sampling(), Sampling(temperature=0.8, top_p=0.95, seed=draw.randrange(99)))
            )
            session = engine.session()
            session.start(tokens, max_tokens=wanted, sampling=sampling, end_tokens=engine.end_tokens)
            cancel = draw.random() < 0.3 and threading.Timer(draw.random() * 0.5, session.cancel)
            if cancel:
                cancel.start()
            while session.running:
                flip(engine.switches, draw)
                counts["flips"] += 1
                time.sleep(draw.random() * 0.01)
            if cancel:
                cancel.cancel()
                counts["cancels"] += session.finish == "cancel"
            text, state, stats = session.tokens[len(tokens) :], session.fingerprint(), session.stats()
            if session.finish == "error":
                print(session.error)
                return 1
            expected = plain.session()
            if text:
                expected.start(tokens, max_tokens=len(text), sampling=sampling, end_tokens=plain.end_tokens)
                expected.to_the_end()
                same = expected.tokens[len(tokens) :] == text
                same_state = expected.fingerprint()["layers"] == state["layers"]
                if not (same and same_state):
                    print(
                        f"differs: seed {args.seed}, text {counts['texts']}: text {same}, state {same_state}"
                    )
                    return 1
            counts["texts"] += 1
            counts["tokens"] += len(text)
            for name in ("kept", "rolled_back"):
                counts[name] += stats["guesses"][name]
            engine.events()
            engine.switches.notices()
            if time.monotonic() > next_report:
                settled = settled or rss_mb()
                print(f"{counts}, {rss_mb():.0f} MB", flush=True)
                next_report += 60
    grown = rss_mb() - settled if settled else float("nan")
    print(f"{args.minutes:g} minutes, seed {args.seed}: {counts}; 0 differ")
    print(f"memory {grown:+.1f} MB since the first minute")
    return 0


if __name__ == "__main__":
    sys.exit(main())
