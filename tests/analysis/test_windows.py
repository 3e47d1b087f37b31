"""The log of windows: fates, classes and what was for nothing, by hand, however the events are cut."""

import numpy as np
import pytest
from tests.tui.fake_engine import MS, FakeEngine, event

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.guesses import GuessCounts, count_guesses
from strata_tui.analysis.windows import WindowLog
from strata_tui.events import EVENT_DTYPE, Events, Kind, MissCause, WindowFate

GUESS = WindowFate.guess

# W1 is verified at 20 ms; the guess W2 behind it is kept, and W3 behind that one; W4 behind W3 is rolled back
# while its second stage still runs, W5 behind it was gated; W6 is fresh, W7 is in flight as the text ends.
STORY = [
    event(Kind.window, 0, window=1, rows=2, b=WindowFate.fresh),
    event(Kind.run, 0, 9 * MS, stage=0, window=1),
    event(Kind.window, 5 * MS, window=2, rows=2, b=GUESS),
    event(Kind.guess_built, 5 * MS, window=2, a=800_000),
    event(Kind.guess_launched, 6 * MS, window=2, a=1, b=800_000),
    event(Kind.run, 9 * MS, 9 * MS, stage=0, window=2),
    event(Kind.verdict, 19 * MS, 1 * MS, window=1, rows=2, a=1, b=2),
    event(Kind.guess_kept, 20 * MS, window=2, a=1, b=WindowFate.kept_after_fresh),
    event(Kind.window, 21 * MS, window=3, rows=2, b=GUESS),
    event(Kind.guess_built, 21 * MS, window=3, a=700_000),
    event(Kind.guess_launched, 21 * MS, window=3, a=1, b=700_000),
    event(Kind.verdict, 29 * MS, 1 * MS, window=2, rows=2, a=1, b=2),
    event(Kind.guess_kept, 30 * MS, window=3, a=1, b=WindowFate.kept_after_kept),
    event(Kind.window, 31 * MS, window=4, rows=2, b=GUESS),
    event(Kind.guess_built, 31 * MS, window=4, a=600_000, b=1),
    event(Kind.guess_launched, 31 * MS, window=4, a=1, b=600_000),
    event(Kind.window, 32 * MS, window=5, rows=2, b=GUESS),
    event(Kind.guess_built, 32 * MS, window=5, a=100_000),
    event(Kind.guess_gated, 32 * MS, window=5, a=100_000),
    event(Kind.run, 31 * MS, 5 * MS, stage=0, window=4),
    event(Kind.verdict, 37 * MS, 1 * MS, window=3, rows=2, a=1, b=2),
    event(Kind.miss, 38 * MS, window=3, a=MissCause.bonus_wrong, b=1),
    event(Kind.guess_rolled_back, 38 * MS, window=4, a=2, b=1),
    event(Kind.run, 36 * MS, 4 * MS, stage=1, window=4),
    event(Kind.window, 40 * MS, window=6, rows=2, b=WindowFate.fresh),
    event(Kind.window, 41 * MS, window=7, rows=2, b=GUESS),
    event(Kind.guess_built, 41 * MS, window=7, a=900_000),
    event(Kind.guess_launched, 41 * MS, window=7, a=1, b=900_000),
    event(Kind.verdict, 59 * MS, 1 * MS, window=6, rows=2, a=0, b=1),
    event(Kind.guess_ended, 60 * MS, window=7, a=1),
]


def logged(events: Events, cut: int) -> WindowLog:
    """The log after drains of `cut` events each."""
    log = WindowLog()
    for at in range(0, len(events), cut):
        log.take(events[at : at + cut], request=1)
    return log


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 100])
def test_a_text_by_hand(cut: int) -> None:
    log = logged(np.array(STORY, EVENT_DTYPE), cut)
    fates = dict(zip(log.rows["id"].tolist(), log.rows["fate"].tolist(), strict=True))
    assert fates == {
        1: Fate.FRESH,
        2: Fate.KEPT_AFTER_FRESH,
        3: Fate.KEPT_AFTER_KEPT,
        4: Fate.ROLLED_BACK,
        5: Fate.GATED,
        6: Fate.FRESH,
        7: Fate.ENDED,
    }
    assert log.decoded_by_class.tolist() == [2, 1, 1]
    # Verdict to verdict: 20 and 22 ms fresh, 10 kept after fresh, 8 kept after kept.
    assert log.busy_ns_by_class.tolist() == [42 * MS, 10 * MS, 8 * MS]
    assert log.busy_ns == 60 * MS
    assert log.guesses == GuessCounts(
        built=5, gated=1, launched=4, kept=2, rolled_back=1, ended=1, bonus_wrong=1, second_choice_right=1
    )
    assert log.run_ns == 27 * MS
    assert log.wasted_ns == 9 * MS, "what W4 ran before its verdict, and what it went on to run"
    assert log.fates(np.array([4, 99, 1], np.uint32)).tolist() == [Fate.ROLLED_BACK, Fate.FRESH, Fate.FRESH]


def test_a_guess_is_open_until_its_verdict() -> None:
    events = np.array(STORY, EVENT_DTYPE)
    assert logged(events[:4], 100).rows["fate"].tolist() == [Fate.FRESH, Fate.GUESS]
    assert logged(events[:6], 100).rows["fate"].tolist() == [Fate.FRESH, Fate.IN_FLIGHT]


def test_every_cause_of_a_miss_is_counted() -> None:
    misses = [event(Kind.miss, 0, a=cause, b=1) for cause in (1, 1, 2, 3, 9)]
    counts = count_guesses(np.array(misses, EVENT_DTYPE))
    assert (counts.draft_wrong, counts.bonus_wrong, counts.forced) == (2, 1, 1)
    assert counts.second_choice_right == 1, "the second choice is the bonus's alone"
    assert counts.misses == 4
    assert count_guesses(np.empty(0, EVENT_DTYPE)) == GuessCounts()


@pytest.mark.parametrize("n_stages", [2, 3, 4])
def test_fates_add_up(n_stages: int) -> None:
    """built = gated + late + launched and launched = kept + rolled back + ended, on seeded texts."""
    engine = FakeEngine(stage_ms=(2.0,) * n_stages, acceptance=0.85)
    engine.switches.pipeline_windows = n_stages
    log = WindowLog()
    for _ in range(4):
        session = engine.session()
        session.start([1, 2, 3], 150, None, [])
        while session.running:
            engine.clock.advance(13)
            log.take(engine.events(), request=1)
    engine.clock.advance(100)
    log.take(engine.events(), request=1)
    g = log.guesses
    assert min(g.kept, g.rolled_back, g.gated) > 0
    assert g.built == g.gated + g.late + g.launched
    assert g.launched == g.kept + g.rolled_back + g.ended
    assert log.decoded == log.decoded_by_class.sum() and log.busy_ns == log.busy_ns_by_class.sum()
    assert g.kept == log.decoded_by_class[1:].sum()
    of_lost = log.rows["run_ns"][log.rows["fate"] == Fate.ROLLED_BACK].sum()
    assert 0 < log.wasted_ns == of_lost < log.run_ns
    open_ones = np.isin(log.rows["fate"], (Fate.GUESS, Fate.IN_FLIGHT))
    assert not open_ones.any(), "nothing is in flight between texts"
