"""A profile made of a recording has the times of the recorded devices, and says what it took for what."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from record.test_recording import HEADER
from reference.simulated import events_of, verdicts_of
from strata_tui.analysis.schedule import Rig, Switches
from strata_tui.analysis.simulator import simulate
from strata_tui.errors import BadInput
from strata_tui.events import Events, Kind
from strata_tui.options import GREEDY
from strata_tui.profile import load_profile
from strata_tui.profile_text import profile_text
from strata_tui.record.reading import open_recording
from strata_tui.record.recorded_rig import profile_of
from strata_tui.record.recorder import Recorder

RIG = Rig(run=(6.0, 9.0), handoff=0.4, verdict=0.5, draft=0.3, commit=0.2)
TOKENS = 240


def text(windows: int = 0, overlap: bool = False) -> Events:
    right = {p: bool(p % 7) for p in range(1, 2 * TOKENS)}
    switches = Switches(windows=windows, rows=4, first_rows=1, overlap=overlap, tokens=TOKENS)
    return events_of(simulate(RIG, switches, verdicts_of(right, TOKENS, 3)), RIG, right)


def recording(tmp_path: Path, events: Events, **header: Any) -> Path:
    path = tmp_path / "of a rig.strata"
    recorder = Recorder(path, lambda: {**HEADER, **header})
    recorder.begin(5, [1], "a prompt", GREEDY)
    recorder.take(events)
    recorder.end(10**12, "length", "", {})
    recorder.close()
    assert not recorder.error
    return path


def test_the_times_are_those_of_the_recorded_stages(tmp_path: Path) -> None:
    profile, comments = profile_of(open_recording(recording(tmp_path, text())))
    rig = profile.rig
    assert rig is not None and (profile.name, profile.stages) == ("of-a-rig", 2)
    assert [dict(stage.run_ms)[4] for stage in rig.stages] == pytest.approx(RIG.run, abs=1e-3)
    assert rig.hand_off_ms.serial == pytest.approx(0.4, abs=1e-3)
    assert rig.verdict_ms == pytest.approx(0.5, abs=1e-3)
    assert all(stage.run_ms_per_1k == 0 for stage in rig.stages)
    assert "taken as serial" in comments["paced.hand_off_ms"]
    assert "medians over one text of" in comments[""]


def test_it_is_a_profile_that_can_be_loaded(tmp_path: Path) -> None:
    profile, comments = profile_of(open_recording(recording(tmp_path, text(), emulated=True)))
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(profile, comments), encoding="utf-8")
    again = load_profile(str(path))
    assert again == profile
    assert "itself emulated" in again.description and "itself emulated" in again.sources[0]


def test_what_a_position_adds_is_told_where_it_can_be(tmp_path: Path) -> None:
    events = text()
    runs = (events["kind"] == Kind.run) & (events["stage"] == 1)
    at = events["a"][runs].astype(np.int64)
    events["a"][events["kind"] == Kind.window] *= 100  # a text of 24,000 positions
    events["dur_ns"][runs] += (at * 100 * 50).astype(np.uint64)  # 50 ns a position: 0.05 ms a thousand
    profile, _ = profile_of(open_recording(recording(tmp_path, events)))
    assert profile.rig is not None
    first, second = profile.rig.stages
    assert first.run_ms_per_1k == 0
    assert second.run_ms_per_1k == pytest.approx(0.05, rel=0.02)
    assert dict(second.run_ms)[4] == pytest.approx(9.0, rel=0.01)


def test_a_recording_without_a_whole_text_is_refused(tmp_path: Path) -> None:
    events = text()
    few = events[events["start_ns"] < np.sort(events["start_ns"])[60]]
    with pytest.raises(BadInput, match="expected a text of 8 windows or more with all its events, got"):
        profile_of(open_recording(recording(tmp_path, few)))
    holes = events[~((events["kind"] == Kind.run) & (events["window"] == events["window"].max() - 4))]
    with pytest.raises(BadInput, match="got 0 at most"):
        profile_of(open_recording(recording(tmp_path, holes)))
