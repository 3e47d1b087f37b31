import json
from pathlib import Path

import pytest
from tests.cli.program import QWEN35, Strata

from strata_tui.profile import load_profile, shipped_profiles


def test_what_ships_is_listed_and_explained(strata: Strata) -> None:
    profiles = {about["name"]: about for about in json.loads(strata("profiles", "--json").out)["profiles"]}
    assert list(profiles) == list(shipped_profiles())
    real = [name for name, about in profiles.items() if not about["emulated"]]
    assert real == ["laptop", "numa"]
    assert all(about["sources"] for about in profiles.values() if about["emulated"])
    assert (profiles["rx7900xt-4x"]["stages"], profiles["rx7900xtx-1x"]["stages"]) == (4, 1)
    assert profiles["numa"]["stage_per_numa_node"]
    out = strata("profiles").out
    assert all(f"\n{name} " in "\n" + out for name in profiles)
    assert out.count("emulated: real tokens") == len(profiles) - len(real)
    assert "source: #1656" in out


def test_one_of_them(strata: Strata) -> None:
    out = strata("profiles", "laptop").out
    assert out.startswith("laptop  two CPU stages")
    assert "rx7900" not in out
    assert "expected one of laptop" in strata("profiles", "lapdog").error


@pytest.mark.parametrize(
    ("placement", "stages", "emulated"),
    [
        ('device = ["paced:rx7900xt-4x"]', 2, True),
        ('device = ["cpu", "even:3", "cpu"]', 3, True),
        ('device = ["cpu", "delayed:3", "cpu"]', 3, False),
        ("split = [1, 2, 3]", 4, False),
        ("threads = 1", 2, False),
    ],
)
def test_stages_and_emulation_are_told_as_it_runs(
    strata: Strata, tmp_path: Path, placement: str, stages: int, emulated: bool
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[placement]\n{placement}\n")
    (about,) = json.loads(strata("profiles", path, "--json").out)["profiles"]
    ran = json.loads(strata("run", QWEN35, "--profile", path, "--tokens", "1", "-n", "1", "--json").out)
    assert (about["stages"], about["emulated"]) == (stages, emulated)
    assert (len(ran["stages"]), ran["emulated"]) == (stages, emulated)


def test_an_error_quotes_no_control_characters(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('["t\\u001b[31m\\nx"]\na = 1\n')
    assert "unknown table t[31m x;" in strata("profiles", path).error


def test_a_stage_per_node_where_there_are_nodes(strata: Strata, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from strata_tui import engine

    run = ("run", QWEN35, "--profile", "numa", "--tokens", "1,2", "-n", "2", "--json")
    one = {"numa": {0: [0, 1]}, "cores": [0]}
    monkeypatch.setattr(engine, "cpu_info", lambda: one)
    result = strata(*run)
    assert "numa: expected cores on two NUMA nodes or more, got one node: 2 stages share it" in result.err
    assert len(json.loads(result.out)["devices"]) == 2


def test_a_profile_of_ones_own_recording(strata: Strata, tmp_path: Path) -> None:
    recording, profile = tmp_path / "rig.strata", tmp_path / "mine.toml"
    devices = "even:8+draft=0.5,even:12+draft=0.5"
    run = ("run", QWEN35, "--device", devices, "--tokens", "1,2", "-n", "40", "--ignore-eos", "--json")
    recorded = json.loads(strata(*run, "--record", str(recording)).out)
    shown = strata("profiles", "--from", str(recording)).out
    assert strata("profiles", "--from", str(recording), "--write", str(profile)).code == 0
    assert "# EMULATED: " in shown and "itself emulated" in load_profile(str(profile)).description
    assert profile.read_text() == shown.replace('name = "rig"', 'name = "mine"')
    again = json.loads(strata("run", QWEN35, "--profile", str(profile), *run[4:]).out)
    assert again["token_ids"] == recorded["token_ids"] and again["emulated"]
    times = load_profile(str(profile)).rig
    assert times is not None
    assert [round(dict(stage.run_ms)[5]) for stage in times.stages] == [8, 12]


def test_what_can_not_be_made_a_profile_of(strata: Strata, tmp_path: Path) -> None:
    assert "expected a new file" in strata("profiles", "--from", QWEN35, "--write", "a/b.toml").error
    assert "expected" in strata("profiles", "--from", QWEN35).error
    assert "expected --from FILE alone" in strata("profiles", "laptop", "--from", QWEN35).error
    assert "expected --write with --from" in strata("profiles", "--write", "mine").error
