from pathlib import Path

import numpy as np
import pytest

from strata_tui import Engine
from strata_tui.errors import BadInput
from strata_tui.events import Kind, WindowFate
from strata_tui.options import DeviceChoice
from strata_tui.paced import Rig, StageTimes, ms_at, table
from strata_tui.profile import load_profile

MODEL = Path(__file__).parent / "data" / "oracles" / "micro-qwen35.gguf"  # 4 layers


def test_a_line_through_points_is_drawn_on_at_both_ends() -> None:
    points = ((2, 10.0), (4, 14.0), (8, 15.0))
    assert [ms_at(points, rows) for rows in (1, 2, 3, 4, 6, 8, 12)] == [8, 10, 12, 14, 14.5, 15, 16]
    assert table(((4, 9.0),), 3) == [9.0, 9.0, 9.0]
    assert table((), 3) == []
    assert table(((4, 1.0), (8, 9.0)), 4) == [0.0, 0.0, 0.0, 1.0]  # never below nothing


def test_as_many_stages_take_their_own_times_whatever_the_layers() -> None:
    rig = Rig("rig", tuple(StageTimes(((1, ms),)) for ms in (1.0, 2.0, 4.0)))
    assert [rig.stage(i, [0, 1, 2, 12]).run_ms[0][1] for i in range(3)] == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([0, 12], [16.0]),
        ([0, 6, 12], [3.0, 13.0]),
        ([0, 9, 12], [8.0, 8.0]),
        ([0, 1, 3, 4, 5, 6, 12], [1 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 13.0]),
    ],
)
def test_other_stages_take_the_time_of_their_layers(bounds: list[int], expected: list[float]) -> None:
    stages = tuple(StageTimes(((1, ms), (4, 2 * ms)), ms) for ms in (1.0, 2.0, 5.0, 8.0))
    rig = Rig("rig", stages)
    got = [rig.stage(i, bounds) for i in range(len(bounds) - 1)]
    assert [ms_at(stage.run_ms, 1) for stage in got] == pytest.approx(expected)
    assert [ms_at(stage.run_ms, 4) for stage in got] == pytest.approx([2 * ms for ms in expected])
    assert [stage.run_ms_per_1k for stage in got] == pytest.approx(expected)


def test_a_device_by_profile() -> None:
    device = DeviceChoice.parse("paced:rx7900xt-4x@0")
    assert (device.kind, device.cores, device.rig) == ("paced", (0,), load_profile("rx7900xt-4x").rig)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("paced", "expected paced:PROFILE, a run profile with [paced] times, got 'paced'"),
        ("paced:", "expected paced:PROFILE"),
        ("paced:laptop", "expected a profile with [paced] times (rtx3090-2x, "),
        ("paced:nope", "or a .toml file, got 'nope'"),
    ],
)
def test_a_device_of_no_rig(text: str, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        DeviceChoice.parse(text)
    assert str(refused.value).startswith("--device: ")
    assert line in str(refused.value)


def test_an_emulated_rig_says_so_and_keeps_the_text() -> None:
    with Engine.open(MODEL, stages=1, draft="none") as plain:
        expected = list(plain.session().generate([1, 2, 3], max_tokens=12))
    with Engine.open(MODEL, stages=4, devices="paced:rx7900xt-4x", pipeline_windows=2, overlap=True) as rig:
        assert rig.emulated
        assert all("paced rx7900xt-4x (emulated)" in stage.device for stage in rig.stages)
        session = rig.session()
        assert list(session.generate([1, 2, 3], max_tokens=12)) == expected
        assert session.stats()["window_ns"] / session.stats()["windows"] > 20e6
        assert {of["kind"] for of in rig.pace_kept(anew=True)} >= {"forward", "hand_off", "verdict"}
        assert rig.pace_kept() == []


@pytest.mark.parametrize("profile", ["rx7900xtx-1x", "rx7900xtx-2x"])
def test_the_first_thing_that_a_rig_does_may_be_an_eval(profile: str) -> None:
    stages = int(profile[-2])
    with (
        Engine.open(MODEL, stages=1) as plain,
        Engine.open(MODEL, stages=stages, devices=f"paced:{profile}") as rig,
    ):
        got, expected = rig.eval([1, 2, 3, 4]), plain.eval([1, 2, 3, 4])
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name])


def test_one_window_in_flight_is_handed_on_as_in_serial_decoding() -> None:
    """Prompt windows alone overlap: a verify window's hand-off costs what it does without."""
    waits = []
    for windows in (0, 1):
        with Engine.open(
            MODEL, stages=2, devices="paced:rx7900xtx-2x", draft="none", pipeline_windows=windows
        ) as rig:
            list(rig.session().generate([1, 2, 3], max_tokens=8))
            events = rig.events()
        verify = events[(events["kind"] == Kind.window) & (events["b"] != WindowFate.prompt)]["window"]
        runs = events[(events["kind"] == Kind.run) & np.isin(events["window"], verify)]
        ends = {w: s + d for w, s, d in runs[runs["stage"] == 0][["window", "start_ns", "dur_ns"]].tolist()}
        begins = runs[runs["stage"] == 1][["window", "start_ns"]].tolist()
        waits.append(min(start - ends[window] for window, start in begins) / 1e6)
    assert waits[1] == pytest.approx(waits[0], rel=0.05)


def test_a_draft_that_falls_due_is_noticed(tmp_path: Path) -> None:
    """The draft layer computes ahead of its modelled time; a window waits for its own drafts alone."""
    profile = tmp_path / "slow_drafts.toml"
    profile.write_text(
        "[placement]\nstages = 2\n[paced]\ndraft_ms = 10\n" + "[[paced.stages]]\nrun_ms = { 1 = 2 }\n" * 2,
        encoding="utf-8",
    )
    with Engine.open(
        MODEL,
        stages=2,
        devices=f"paced:{profile}",
        draft="replay:0",
        draft_max=4,
        theta=0,
        pipeline_windows=2,
    ) as rig:
        list(rig.session().generate([1, 2, 3, 4], max_tokens=12))
        events = rig.events()
    verdicts = events[events["kind"] == Kind.verdict]
    decided = np.sort(verdicts["start_ns"] + verdicts["dur_ns"])
    built = events[(events["kind"] == Kind.window) & (events["rows"] > 1) & (events["b"] == WindowFate.fresh)]
    took = [
        start - decided[decided <= start].max() for start in built["start_ns"] if (decided <= start).any()
    ]
    # Four drafts and not the nine that are computed ahead for the guess behind.
    assert 39e6 < took[0] < 55e6
