from pathlib import Path

import pytest

from strata_tui import Engine
from strata_tui.errors import BadInput
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
