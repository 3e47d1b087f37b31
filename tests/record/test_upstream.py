"""Text traces of the upstream engine: a short one, told by hand, and what is none."""

import random
from pathlib import Path

import numpy as np
import pytest
from tests.record.test_recording import use

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.view import View
from strata_tui.errors import BadInput
from strata_tui.events import Events, Kind
from strata_tui.profile import load_profile
from strata_tui.profile_text import profile_text
from strata_tui.record.reading import open_recording
from strata_tui.record.recorded_rig import profile_of
from strata_tui.record.recording import Recording

# Two stages of 10 ms. Window 7 is fresh, guess 8 runs behind it and is kept, guess 9 behind that is wrong.
TRACE = """\
# a trace of two cards
# theta 0.2
0.000 L0 7 0 0
10.000 F0 7 0 0
10.100 L1 7 0 1
11.000 CL 7 0 0
12.500 CE 7 0 0
13.000 CD 8 412 0
13.100 L0 8 0 10
20.100 F1 7 0 1
20.500 V 7 3 1
23.100 F0 8 0 10
23.200 L1 8 0 1
24.000 CD 9 300 0
24.100 L0 9 0 10
33.200 F1 8 0 1
33.600 V 8 1 -1
33.700 U 8 0 0
34.100 F0 9 0 10
35.000 L0 9 0 0
45.000 F0 9 0 0
45.100 L1 9 0 1
55.100 F1 9 0 1
55.400 V 9 0 0
"""


def read(folder: Path, text: str) -> Recording:
    path = folder / "trace.txt"
    path.write_text(text)
    return open_recording(path)


def of(recording: Recording, kind: Kind) -> Events:
    return recording.events[recording.events["kind"] == kind]


def test_a_short_trace(tmp_path: Path) -> None:
    recording = read(tmp_path, TRACE)
    assert recording.source == "upstream" and recording.note == ""
    assert len(recording.stages) == 2 and recording.model_sha256 == ""
    assert recording.machine == "a trace of two cards theta 0.2"
    runs = [
        (int(e["window"]), int(e["stage"]), int(e["start_ns"]) // 1000, int(e["dur_ns"]) // 1000)
        for e in np.sort(of(recording, Kind.run), order="start_ns")
    ]
    assert runs == [
        (1, 0, 0, 10_000),
        (1, 1, 10_100, 10_000),
        (2, 0, 13_100, 10_000),
        (2, 1, 23_200, 10_000),
        (3, 0, 24_100, 10_000),
        (4, 0, 35_000, 10_000),
        (4, 1, 45_100, 10_000),
    ]
    assert of(recording, Kind.verdict)["a"].tolist() == [3, 1, 0]
    assert of(recording, Kind.verdict)["b"].tolist() == [4, 2, 1]
    assert (of(recording, Kind.token)["a"] == -1).all() and len(of(recording, Kind.token)) == 7
    assert of(recording, Kind.guess_built)["a"].tolist() == [412_000, 300_000]
    assert of(recording, Kind.guess_kept)["window"].tolist() == [2]
    assert of(recording, Kind.guess_rolled_back)["window"].tolist() == [3]
    (chain,) = of(recording, Kind.draft_step)
    assert (int(chain["start_ns"]), int(chain["dur_ns"])) == (11_000_000, 1_500_000)
    assert len(of(recording, Kind.undo)) == 1


def test_its_windows_are_what_the_console_shows(tmp_path: Path) -> None:
    recording = read(tmp_path, TRACE)
    view = View(2)
    order = np.argsort(recording.events["start_ns"] + recording.events["dur_ns"], kind="stable")
    for event in recording.events[order]:
        view.take(np.array([event]))
    fates = view.windows.fates(np.array([1, 2, 3, 4], np.uint32)).tolist()
    assert fates == [Fate.FRESH, Fate.KEPT_AFTER_FRESH, Fate.ROLLED_BACK, Fate.FRESH]
    rates = view.rates(60_000_000)
    assert rates.windows == 3 and rates.drafted == 0 and rates.accepted_per_position == ()
    assert rates.tokens_per_window == 7 / 3
    assert rates.ms_per_window == pytest.approx(55.4 / 3)
    assert rates.guesses.kept == 1 and rates.guesses.rolled_back == 1
    use(recording, tmp_path)


def test_a_profile_of_it_can_be_loaded(tmp_path: Path) -> None:
    windows = [
        f"{30 * w} L0 {w} 0 0\n{30 * w + 10} F0 {w} 0 0\n{30 * w + 11} L1 {w} 0 1\n"
        f"{30 * w + 26} F1 {w} 0 1\n{30 * w + 27} V {w} 2 0\n"
        for w in range(12)
    ]
    profile, comments = profile_of(read(tmp_path, "# two cards\n" + "".join(windows)))
    path = tmp_path / "mine.toml"
    path.write_text(profile_text(profile, comments), encoding="utf-8")
    rig = load_profile(str(path)).rig
    assert rig is not None and [stage.run_ms for stage in rig.stages] == [((1, 10.0),), ((1, 15.0),)]
    assert "rows are not known" in comments["paced.stages[0].run_ms"]


def test_a_trace_without_header_and_a_cut_last_line(tmp_path: Path) -> None:
    body = "".join(line for line in TRACE.splitlines(keepends=True) if not line.startswith("#"))
    whole = read(tmp_path, body)
    cut = read(tmp_path, body[: body.index("55.400 V") + 8])
    assert "cut off in line" in cut.note
    assert len(of(cut, Kind.verdict)) == len(of(whole, Kind.verdict)) - 1


@pytest.mark.parametrize(
    "line",
    [
        "1.0 L0 7 0 99\n",
        "1.0 L0 7 0 25\n",
        "1.0 V 7 3.5 1\n",
        "1.0 V 7 900 1\n",
        "1.0 XX 7 0 0\n",
        "nan V 7 0 1\n",
        "-1 F1 7 0 1\n",
    ],
)
def test_a_line_that_cannot_be(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match="line 3: expected `time_ms event seq x y`"):
        read(tmp_path, "# header\n0.5 L0 7 0 0\n" + line + "\n")


def test_a_header_alone_and_other_texts(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="got none"):
        read(tmp_path, "# a trace\n")
    with pytest.raises(BadInput, match="line 2: expected"):
        read(tmp_path, "# Title\nsome words\n")
    with pytest.raises(BadInput, match="expected a recording"):
        read(tmp_path, "some words\n")


def test_a_thousand_shuffled_and_broken_traces(tmp_path: Path) -> None:
    draw = random.Random(5)
    lines = TRACE.splitlines()
    read_well = 0
    for _ in range(1000):
        some = [draw.choice(lines) for _ in range(draw.randrange(1, 40))]
        if draw.random() < 0.3:
            at = draw.randrange(len(some))
            some[at] = some[at].replace(draw.choice("0123456789 LV"), draw.choice("0159 -x\x1b"))
        try:
            recording = read(tmp_path, "\n".join(some))
        except BadInput as error:
            assert "\n" not in str(error) and "\x1b" not in str(error)
            continue
        read_well += 1
        if read_well % 25 == 0:
            use(recording, tmp_path)
    assert read_well > 300
