"""What programs lose where more of them run than there are cores, by hand."""

import pytest

from reference.simulated import events_of, verdicts_of
from strata_tui.analysis.crowd import Crowd
from strata_tui.analysis.schedule import Rig, Switches
from strata_tui.analysis.simulator import play
from strata_tui.analysis.what_if import Setting, WhatIf


def test_three_programs_on_two_cores() -> None:
    """0-5 two run, 5-8 and 9-10 three: each gets two thirds; 8-9 four: a half."""
    crowd = Crowd([(0, 10), (0, 10), (5, 15), (8, 9)], 2)
    assert crowd.lost_ms(0, 10) == pytest.approx((3 + 1) / 3 + 1 / 2)
    assert crowd.lost_ms(0, 5) == crowd.lost_ms(10, 15) == 0
    assert crowd.lost_ms(6, 7) == pytest.approx(1 / 3)
    assert Crowd([], 2).lost_ms(0, 9) == 0


def test_a_crowd_on_one_core_takes_away_what_guesses_gain() -> None:
    """Two stages of 5 ms, every guess right: side by side a window takes a little over 5 ms, on one core 10.

    With two cores nothing is lost; from the crowded recording the times alone are found again.
    """
    right, rig = dict.fromkeys(range(1, 400), True), Rig(run=(5.0, 5.0))
    verdicts = verdicts_of(right, 200, 3)
    serial, guessing = Setting(draft_max=3, theta=0.0), Setting(pipeline_windows=2, draft_max=3, theta=0.0)
    switches = Switches(0, rows=4, first_rows=1, tokens=200)
    recording = events_of(play(rig, switches, verdicts)[0], rig, right)
    predicted = {
        cores: WhatIf(recording, 2, serial, cores).predict(guessing).ms_per_window for cores in (None, 2, 1)
    }
    assert predicted[None] == predicted[2] < 5.6
    assert predicted[1] == pytest.approx(10, rel=0.1)
    crowded = Rig(run=(10.0, 10.0))  # side by side on one core all the time
    text, _ = play(crowded, Switches(2, rows=4, first_rows=1, tokens=200), verdicts)
    alone = WhatIf(events_of(text, crowded, right), 2, guessing, 1).predict(serial)
    assert alone.ms_per_window == pytest.approx(10, rel=0.1)
