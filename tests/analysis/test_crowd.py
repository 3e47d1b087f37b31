"""What programs lose where more of them run than there are cores, by hand."""

import pytest

from reference.simulated import events_of, verdicts_of
from strata_tui.analysis.crowd import Crowd, Crowds
from strata_tui.analysis.schedule import Rig, Switches
from strata_tui.analysis.simulator import play
from strata_tui.analysis.what_if import Setting, WhatIf
from strata_tui.placement import SharedCores


def test_three_programs_on_two_cores() -> None:
    """0-5 two run, 5-8 and 9-10 three: each gets two thirds; 8-9 four: a half."""
    crowd = Crowd([(0, 10), (0, 10), (5, 15), (8, 9)], 2)
    assert crowd.lost_ms(0, 10) == pytest.approx((3 + 1) / 3 + 1 / 2)
    assert crowd.lost_ms(0, 5) == crowd.lost_ms(10, 15) == 0
    assert crowd.lost_ms(6, 7) == pytest.approx(1 / 3)
    assert Crowd([], 2).lost_ms(0, 9) == 0


def test_each_set_of_cores_has_its_crowd() -> None:
    """Lanes 1 and 9 share a core, lane 0 has its own, lane 2 is in no set."""
    spans = {0: [(0.0, 10.0)], 1: [(0.0, 4.0)], 2: [(0.0, 10.0)], 9: [(2.0, 8.0)]}
    crowds = Crowds(spans, [SharedCores((0,), 1), SharedCores((1, 9), 1)])
    assert [float(crowds.lost_ms(lane, 0.0, 10.0)) for lane in (0, 1, 2, 9)] == [0, 1, 0, 1]


def test_a_crowd_on_one_core_takes_away_what_guesses_gain() -> None:
    """Two stages of 5 ms, every guess right: side by side a window takes a little over 5 ms, on one core 10.

    With two cores, together or one each, nothing is lost; from the crowded recording the times alone are
    found again.
    """
    right, rig = dict.fromkeys(range(1, 400), True), Rig(run=(5.0, 5.0))
    verdicts = verdicts_of(right, 200, 3)
    serial, guessing = Setting(draft_max=3, theta=0.0), Setting(pipeline_windows=2, draft_max=3, theta=0.0)
    switches = Switches(0, rows=4, first_rows=1, tokens=200)
    recording = events_of(play(rig, switches, verdicts)[0], rig, right)

    def predicted(*shared: SharedCores) -> float:
        return WhatIf(recording, 2, serial, shared).predict(guessing).ms_per_window

    one, two = SharedCores((0, 1), 1), SharedCores((0, 1), 2)
    assert predicted() == predicted(two) == predicted(SharedCores((0,), 1), SharedCores((1,), 1)) < 5.6
    assert predicted(one) == pytest.approx(10, rel=0.1)
    crowded = Rig(run=(10.0, 10.0))  # side by side on one core all the time
    text, _ = play(crowded, Switches(2, rows=4, first_rows=1, tokens=200), verdicts)
    alone = WhatIf(events_of(text, crowded, right), 2, guessing, [one]).predict(serial)
    assert alone.ms_per_window == pytest.approx(10, rel=0.1)
