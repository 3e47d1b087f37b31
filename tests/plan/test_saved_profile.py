from pathlib import Path

import pytest

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice, Placement
from strata_tui.plan.saved_profile import device_text, profile_path, profile_text
from strata_tui.profile import load_profile


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    devices = (DeviceChoice.parse("cpu:2@0-1"), DeviceChoice.parse("even:3.5+draft=0.25"))
    kept = {"overlap": True, "pipeline_windows": 2, "theta": 0.0, "draft": "replay:0.5"}
    text = profile_text(
        "mine",
        'for a "model"\n\\ü',
        ["measured\nhere"],
        Placement(context=512, kv="f32", chunk=64),
        devices,
        (7,),
        {**kept, "force_miss": None},
    )
    file = tmp_path / "mine.toml"
    file.write_text(text)
    profile = load_profile(str(file))
    assert (profile.name, profile.description) == ("mine", 'for a "model"\n\\ü')
    assert (profile.context, profile.kv, profile.chunk) == (512, "f32", 64)
    assert (profile.split, profile.devices) == ((7,), devices)
    assert profile.switches == kept
    assert text.startswith("# measured here\n")


def test_one_stage(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(profile_text("one", "", [], Placement(), (DeviceChoice("cpu", 3),), (), {}))
    profile = load_profile(str(file))
    assert (profile.stages, profile.split, profile.devices) == (1, None, (DeviceChoice("cpu", 3),))


@pytest.mark.parametrize("text", ["cpu", "cpu:4", "cpu:1@0+3", "even:10", "even:10+commit=0.5+draft=1"])
def test_devices_are_named_as_they_are_read(text: str) -> None:
    assert DeviceChoice.parse(device_text(DeviceChoice.parse(text))) == DeviceChoice.parse(text)


def test_devices_of_tests_are_refused() -> None:
    with pytest.raises(BadInput, match="--write: expected cpu or even devices"):
        device_text(DeviceChoice.parse("delayed:7"))


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert profile_path("my-rig_2") == Path("my-rig_2.toml")
    assert profile_path(str(tmp_path / "x.toml")) == tmp_path / "x.toml"
    (tmp_path / "taken.toml").touch()
    for bad in ("taken", "a b", "", "..", "no/folder.toml", ".hidden"):
        with pytest.raises(BadInput, match="--write: expected"):
            profile_path(bad)
