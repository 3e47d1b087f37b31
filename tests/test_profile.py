from pathlib import Path

import pytest

from strata_tui.errors import BadInput
from strata_tui.options import DeviceChoice
from strata_tui.paced import HandOffTimes, Rig, StageTimes
from strata_tui.profile import load_profile, shipped_profiles

WHOLE = """
name = "mine"
description = "a rig"
[model]
context = 2048
kv = "f32"
chunk = 64
[placement]
stages = 3
split = [4, 8]
device = ["cpu:1@0", "cpu:2", "cpu"]
threads = 2
[switches]
overlap = true
draft = "replay:0.5"
draft_max = 3
theta = 0
[sampling]
temperature = 1
top_k = 40
seed = 3
"""


STAGE = "[[paced.stages]]\nrun_ms = 9\n"
RIG = """
name = "rig"
[paced]
hand_off_ms = { launch = 0.1, serial = 0.8, overlapped = 0.2, polled = 0.3 }
verdict_ms = 1.5
draft_ms = 0.25
jitter = 0.01
seed = 3
position_offset = 4000
[[paced.stages]]
run_ms = { 4 = 10, 1 = 7 }
run_ms_per_1k = 0.5
chunk_ms = { 64 = 20 }
[[paced.stages]]
run_ms = 12
"""


def profile_file(folder: Path, text: str) -> str:
    path = folder / "rig.toml"
    path.write_text(text)
    return str(path)


def test_every_key(tmp_path: Path) -> None:
    profile = load_profile(profile_file(tmp_path, WHOLE))
    assert (profile.name, profile.description) == ("mine", "a rig")
    assert (profile.context, profile.kv, profile.chunk) == (2048, "f32", 64)
    assert (profile.stages, profile.split, profile.threads) == (3, (4, 8), 2)
    assert profile.devices == (DeviceChoice(threads=1, cores=(0,)), DeviceChoice(threads=2), DeviceChoice())
    assert profile.switches == {"overlap": True, "draft": "replay:0.5", "draft_max": 3, "theta": 0.0}
    assert profile.sampling == {"temperature": 1, "top_k": 40, "seed": 3}


def test_a_rig_and_what_it_stands_for(tmp_path: Path) -> None:
    profile = load_profile(profile_file(tmp_path, RIG))
    assert profile.rig == Rig(
        name="rig",
        stages=(StageTimes(((1, 7.0), (4, 10.0)), 0.5, ((64, 20.0),)), StageTimes(((1, 12.0),))),
        hand_off_ms=HandOffTimes(0.1, 0.8, 0.2, 0.3),
        verdict_ms=1.5,
        draft_ms=0.25,
        jitter=0.01,
        seed=3,
        position_offset=4000,
    )
    assert (profile.stages, profile.devices) == (2, (DeviceChoice("paced", rig=profile.rig),))
    elsewhere = load_profile(profile_file(tmp_path, RIG + '[placement]\ndevice = ["cpu"]\nsplit = [3]'))
    assert (elsewhere.stages, elsewhere.devices) == (None, (DeviceChoice(),))


def test_an_empty_profile_sets_nothing(tmp_path: Path) -> None:
    profile = load_profile(profile_file(tmp_path, ""))
    assert (profile.name, profile.stages, profile.devices, profile.switches) == ("rig", None, None, {})


def test_those_that_ship_are_read_and_named_as_their_files() -> None:
    assert "laptop" in shipped_profiles()
    for name in shipped_profiles():
        profile = load_profile(name)
        assert profile.name == name
        assert profile.description


@pytest.mark.parametrize(
    ("text", "key", "expected", "given"),
    [
        ("[model]\ncontext = 0", "model.context", "whole number from 1", "0"),
        ("[model]\ncontext = true", "model.context", "whole number", "True"),
        ('[model]\nkv = "int8"', "model.kv", '"f32" or "f16" (int8 is not in this version)', "int8"),
        ("[model]\nchunk = 1.5", "model.chunk", "whole number", "1.5"),
        ("[placement]\nstages = 33", "placement.stages", "1 to 32", "33"),
        ("[placement]\nsplit = [3, 3]", "placement.split", "ascend", "[3, 3]"),
        ("[placement]\nsplit = [0]", "placement.split", "ascend from 1", "[0]"),
        ("[placement]\nsplit = []", "placement.split", "ascend", "[]"),
        ('[placement]\nsplit = ["4"]', "placement.split", "layers", "['4']"),
        ('[placement]\nsplit = "4"', "placement.split", "layers", "'4'"),
        ("[placement]\ndevice = []", "placement.device", "list of devices", "[]"),
        ('[placement]\ndevice = "cpu"', "placement.device", "list of devices", "'cpu'"),
        ('[placement]\ndevice = ["gpu:0"]', "placement.device", "expected cpu", "gpu:0"),
        ('[placement]\ndevice = ["paced:laptop"]', "placement.device", "with [paced] times", "laptop"),
        ("[placement]\nper_node = 1", "placement.per_node", "true or false", "1"),
        (
            "[placement]\nsplit = [3, 7]\n" + 4 * STAGE,
            "placement.split",
            "3 layers, for the 4",
            "[3, 7]",
        ),
        ("[placement]\nsplit = [3]\n" + STAGE, "placement.split", "none, for the 1 table", "[3]"),
        (
            "[placement]\nsplit = [3, 7]\n" + 2 * STAGE,
            "placement.split",
            "1 layer, for the 2",
            "[3, 7]",
        ),
        ("[placement]\nstages = 2\n" + 4 * STAGE, "placement.stages", "4, for the 4 tables", "2"),
        ("[paced]\ndraft_ms = 1", "paced.stages", "1 to 32 tables", "none"),
        ("[paced]\nstages = []", "paced.stages", "1 to 32 tables", "[]"),
        ("[[paced.stages]]\nrun_ms_per_1k = 1", "paced.stages[0].run_ms", "by rows", "none"),
        ("[[paced.stages]]\nrun_ms = -1", "paced.stages[0].run_ms", "from 0 to 5000", "-1"),
        ("[[paced.stages]]\nrun_ms = { 1 = 2, 01 = 3 }", "paced.stages[0].run_ms", "by rows", "'01': 3"),
        ("[[paced.stages]]\nrun_ms = {}", "paced.stages[0].run_ms", "by rows", "{}"),
        ("[[paced.stages]]\nrun_ms = { x = 1 }", "paced.stages[0].run_ms", "by rows", "{'x': 1}"),
        ("[[paced.stages]]\nrun_ms = { 0 = 1 }", "paced.stages[0].run_ms", "by rows", "{'0': 1}"),
        ("[[paced.stages]]\nrun_ms = nan", "paced.stages[0].run_ms", "from 0 to 5000", "nan"),
        (STAGE + "[paced.hand_off_ms]\nserial = 5001", "paced.hand_off_ms.serial", "0 to 5000", "5001"),
        ("[paced]\njitter = 0.6\n" + STAGE, "paced.jitter", "from 0 to 0.5", "0.6"),
        ("[paced]\nverdict_ms = true\n" + STAGE, "paced.verdict_ms", "a number", "True"),
        ('sources = "x"', "sources", "a list of texts", "'x'"),
        ("[placement]\ndevice = [1]", "placement.device", "expected cpu", "1"),
        ("[switches]\noverlap = 2", "switches.overlap", "0 or 1", "2"),
        ("[switches]\ndraft_max = 9", "switches.draft_max", "0 to 7", "9"),
        ("[switches]\ntheta = nan", "switches.theta", "number", "nan"),
        ("[switches]\ndraft = []", "switches.draft", "value", "[]"),
        ("[sampling]\nseed = -1", "sampling.seed", "whole number from 0", "-1"),
        ("[sampling]\ntop_p = 0", "sampling", "above 0", "0"),
        ('[sampling]\ntemperature = "hot"', "sampling.temperature", "number", "hot"),
        ("name = 3", "name", "text", "3"),
    ],
)
def test_an_error_names_file_key_expected_and_given(
    tmp_path: Path, text: str, key: str, expected: str, given: str
) -> None:
    with pytest.raises(BadInput) as refused:
        load_profile(profile_file(tmp_path, text))
    line = str(refused.value)
    assert line.startswith(f"[profile] rig.toml: {key}: ")
    assert expected in line
    assert given in line.partition("got ")[2]
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[switches]\noverlop = true", "unknown key switches.overlop; did you mean overlap?"),
        ("[model]\nzzz = 1", "unknown key model.zzz; expected one of context, kv, chunk"),
        ("[placment]\nstages = 2", "unknown table placment; did you mean placement?"),
        ("[[paced.stages]]\nrun_mz = 1", "unknown key paced.stages[0].run_mz; did you mean run_ms?"),
        (
            STAGE + "[paced.hand_off_ms]\npoled = 1",
            "unknown key paced.hand_off_ms.poled; did you mean polled?",
        ),
        ('nam = "x"', "unknown key nam; did you mean name?"),
        ("stages = 2", "unknown key stages; expected one of name, description, sources"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        load_profile(profile_file(tmp_path, text))
    assert str(refused.value) == f"[profile] rig.toml: {line}"


@pytest.mark.parametrize("data", [b"a = ", b'name = "\xff"', b"= 1"])
def test_no_toml(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rig.toml"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"^\[profile\] rig\.toml: "):
        load_profile(str(path))


def test_arrays_without_end_are_no_profile(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nested without end"):
        load_profile(profile_file(tmp_path, "a = " + "[" * 100_000))


def test_a_profile_may_have_the_times_of_one_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    device = f'[placement]\ndevice = ["paced:{path}"]\n'
    profile = load_profile(profile_file(tmp_path, device + STAGE))
    assert profile.devices is not None and profile.devices[0].rig == profile.rig
    with pytest.raises(BadInput, match="which has none"):
        load_profile(profile_file(tmp_path, device))


def test_its_words_can_not_move_a_cursor(tmp_path: Path) -> None:
    hostile = '"\\u001b]0;x\\u0007\\ny"'
    words = f"name = {hostile}\ndescription = {hostile}\nsources = [{hostile}]\n"
    profile = load_profile(profile_file(tmp_path, words + STAGE))
    rig = profile.rig
    assert rig is not None
    assert {profile.name, profile.description, *profile.sources, rig.name} == {"]0;x y"}


def test_a_value_without_end_is_cut_in_its_line(tmp_path: Path) -> None:
    for text in ('[switches]\ndraft = "{}"', '[model]\nkv = "{}"'):
        with pytest.raises(BadInput) as refused:
            load_profile(profile_file(tmp_path, text.format("x" * 100_000)))
        assert len(str(refused.value)) < 300


def test_no_such_file() -> None:
    with pytest.raises(BadInput, match=r"--profile: nope\.toml: no such file"):
        load_profile("nope.toml")


@pytest.mark.parametrize("name", ["nope", ".", ""])
def test_no_such_profile(name: str) -> None:
    with pytest.raises(BadInput, match=r"expected one of .*laptop.* or a \.toml file, got"):
        load_profile(name)
