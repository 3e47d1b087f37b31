import tomllib
from pathlib import Path

import pytest

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Profile
from strata_tui.paced import HandOffTimes, Rig, StageTimes
from strata_tui.profile import load_profile, shipped_profiles
from strata_tui.profile_text import profile_path, profile_text

STAGE = StageTimes(((1, 7.25), (4, 9.0)), 0.5, ((512, 100.0),))


@pytest.mark.parametrize(
    "profile",
    [
        Profile("rig"),
        Profile(
            "rig",
            'a "quoted" description, \\ and \u00b7',
            ("here", "there"),
            context=512,
            kv="f32",
            split=(4, 8),
            devices=(
                DeviceChoice.parse("cpu:2@0+3"),
                DeviceChoice.parse("delayed:7+only=undo+chance=0.5+max=2"),
            ),
            switches={"overlap": True, "theta": 0.25, "draft": "replay:0.5"},
            sampling={"temperature": 0.7, "seed": 3},
        ),
        Profile("rig", stages=1, devices=(DeviceChoice.parse("even:10+commit=0.5"),), per_node=True),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, profile: Profile) -> None:
    path = tmp_path / "rig.toml"
    path.write_text(profile_text(profile), encoding="utf-8")
    assert load_profile(str(path)) == profile


def test_every_character_of_a_text_stands_in_it() -> None:
    text = profile_text(Profile("rig", description='\x7f\x1b\n"\\'))
    assert tomllib.loads(text)["description"] == '\x7f\x1b\n"\\'


def test_a_rig_is_read_back_with_its_comments(tmp_path: Path) -> None:
    rig = Rig("rig", (STAGE, StageTimes(((1, 3.0),))), HandOffTimes(serial=0.7), 1.5, 0.2, jitter=0.1, seed=4)
    profile = Profile("rig", stages=2, devices=(DeviceChoice("paced", rig=rig),), rig=rig)
    comments = {
        "": "two lines\nof head",
        "paced.draft_ms": "median of 40",
        "paced.stages[1].run_ms": "one row",
    }
    text = profile_text(profile, comments)
    assert text.startswith("# two lines\n# of head\nname = ")
    assert "draft_ms = 0.2  # median of 40\n" in text
    assert text.endswith("[[paced.stages]]\nrun_ms = { 1 = 3.0 }  # one row\n")
    path = tmp_path / "rig.toml"
    path.write_text(text)
    assert load_profile(str(path)) == profile


@pytest.mark.parametrize("name", shipped_profiles())
def test_those_that_ship_are_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rig.toml"
    path.write_text(profile_text(load_profile(name)))
    assert load_profile(str(path)) == load_profile(name)


def test_what_stands_in_a_comment_stays_in_it(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    comments = {"": "of a\x1b[2J\x7f.gguf\nstages = 3", "placement.stages": "as\nrecorded\x00"}
    path.write_text(profile_text(Profile("rig", stages=2), comments), encoding="utf-8")
    assert load_profile(str(path)).stages == 2


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert profile_path("my-rig_2") == Path("my-rig_2.toml")
    assert profile_path(str(tmp_path / "x.toml")) == tmp_path / "x.toml"
    (tmp_path / "taken.toml").touch()
    for bad in ("taken", "a b", "", "..", "no/folder.toml", ".hidden"):
        with pytest.raises(BadInput, match="--write: expected"):
            profile_path(bad)
