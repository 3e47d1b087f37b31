import json
import os

from tests.cli.program import Strata


def test_the_devices_there_are(strata: Strata) -> None:
    got = json.loads(strata("devices", "--json").out)
    assert set(got["cpu"]["cores"]) == os.sched_getaffinity(0)
    assert got["cpu"]["best"] in got["cpu"]["isas"]
    assert "portable" in got["cpu"]["isas"]
    assert got["gpus"] == []
    out = strata("devices").out
    assert f"{len(got['cpu']['cores'])} cores" in out
    assert "gpu    none" in out
