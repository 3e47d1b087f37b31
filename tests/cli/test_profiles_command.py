import json

from tests.cli.program import QWEN35, Strata

from strata_tui.profile import shipped_profiles


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


def test_a_stage_per_node_where_there_are_nodes(strata: Strata, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from strata_tui import engine

    run = ("run", QWEN35, "--profile", "numa", "--tokens", "1,2", "-n", "2", "--json")
    one = {"numa": {0: [0, 1]}, "cores": [0]}
    monkeypatch.setattr(engine, "cpu_info", lambda: one)
    result = strata(*run)
    assert "numa: expected cores on two NUMA nodes or more, got one node: 2 stages share it" in result.err
    assert len(json.loads(result.out)["devices"]) == 2
