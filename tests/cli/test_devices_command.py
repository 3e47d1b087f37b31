import json
import os

from tests.cli.program import Strata


def test_the_devices_there_are(strata: Strata) -> None:
    got = json.loads(strata("devices", "--json").out)
    assert set(got["cpu"]["cores"]) == os.sched_getaffinity(0)
    assert got["cpu"]["best"] in got["cpu"]["isas"]
    assert "portable" in got["cpu"]["isas"]
    assert got["gpus"] == []
    threads = {"1", str(len(got["cpu"]["cores"]))}
    assert got["cpu"]["read_gb_per_s"].keys() == threads
    assert all(0.1 < rate < 10_000 for rate in got["cpu"]["read_gb_per_s"].values())
    out = strata("devices").out
    assert f"{len(got['cpu']['cores'])} cores" in out
    assert "gpu    none" in out
    assert out.count("GB/s") == len(threads)
