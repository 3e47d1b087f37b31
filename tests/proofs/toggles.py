"""The overlap flipped 200 times at random moments of one text: toggles.py

The text is that of the untouched run, and every flip that took effect did so between two windows.
"""

import random
import sys
import time

import numpy as np

from strata_tui import Engine, Sampling
from strata_tui.events import Kind, SwitchId, WindowFate

FLIPS = 200
SAMPLING, TOKENS = Sampling(temperature=0.7, top_p=0.95, seed=7), 1500
PROMPT = "Once upon a time there was a poor miller who had three daughters, and the youngest of them"


def main() -> int:
    rng = random.Random(1)
    with Engine.open() as engine:
        text = engine.session().generate(PROMPT, TOKENS, SAMPLING, ignore_eos=True)
        untouched = list(text)
        engine.events()
        session, events = engine.session(), []
        session.start(engine.tokens_of(PROMPT), TOKENS, SAMPLING)
        flips = 0
        while session.running:
            if flips < FLIPS:
                engine.switches.overlap = not engine.switches.overlap
                flips += 1
            events.append(engine.events())
            time.sleep(rng.uniform(0, 0.03))
        flipped = session.read()
        events.append(engine.events())
        recorded = np.concatenate(events)
        toggles = recorded[(recorded["kind"] == Kind.toggle) & (recorded["a"] == SwitchId.overlap)]
        verdicts = recorded[recorded["kind"] == Kind.verdict]
        builds = recorded[(recorded["kind"] == Kind.window) & (recorded["b"] != WindowFate.prompt)]
        inside = 0
        for toggle in toggles:
            built = builds[builds["start_ns"] < toggle["start_ns"]]
            done = verdicts[verdicts["start_ns"] < toggle["start_ns"]]
            inside += len(built) and built["window"].max() > (done["window"].max() if len(done) else 0)
    same = flipped == untouched
    print(f"{flips} flips, {len(toggles)} took effect, {inside} of them inside a window; text equal: {same}")
    return 0 if same and not inside and flips == FLIPS else 1


if __name__ == "__main__":
    sys.exit(main())
