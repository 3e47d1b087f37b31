"""run --record and what reads it."""

import fcntl
import gzip
import json
from pathlib import Path

import numpy as np
from tests.cli.program import LLAMA, QWEN35, Strata

from strata_tui.events import Kind
from strata_tui.profile import load_profile
from strata_tui.record.frames import FrameKind, read_preamble, whole_frames
from strata_tui.record.recording import read_recording

RUN = ("run", QWEN35, "--tokens", "5,6,7", "-n", "24", "--ignore-eos", "--kv", "f32")


def test_a_run_is_recorded_whole(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    ran = strata(*RUN, "--overlap", "--json", "--record", path)
    assert ran.code == 0 and f"recording: {path}" in ran.err
    told = json.loads(ran.out)
    recording = read_recording(path)
    assert recording.note == ""
    assert (recording.model, recording.model_sha256) == (told["model"], told["model_sha256"])
    assert recording.switches["overlap"] is True
    (request,) = recording.requests
    assert list(request.prompt_tokens) == [5, 6, 7]
    assert request.tokens == told["token_ids"]
    assert "".join(piece.text for piece in request.pieces) == told["text"]
    assert request.finish == "length" and request.stats is not None
    assert request.stats["windows"] == told["windows"]
    tokens = recording.events[recording.events["kind"] == Kind.token]
    assert tokens["a"][np.argsort(tokens["b"])].tolist() == told["token_ids"]


def test_recording_changes_nothing_of_the_json(strata: Strata, tmp_path: Path) -> None:
    plain = json.loads(strata(*RUN, "--json").out)
    recorded = json.loads(strata(*RUN, "--json", "--record", tmp_path / "a.strata").out)
    assert plain.keys() == recorded.keys()
    assert plain["token_ids"] == recorded["token_ids"]


def test_export_writes_what_the_run_would_have_traced(strata: Strata, tmp_path: Path) -> None:
    recording, trace, exported = (tmp_path / name for name in ("a.strata", "a.json.gz", "b.json.gz"))
    assert strata(*RUN, "--record", recording, "--trace", trace).code == 0
    done = strata("export", recording, "-o", exported)
    assert (done.code, done.out) == (0, "") and "1 text\n" in done.err

    def records(path: Path) -> list[str]:
        told = json.loads(gzip.decompress(path.read_bytes()))
        return sorted(json.dumps(record, sort_keys=True) for record in told["traceEvents"])

    assert records(exported) == records(trace)
    assert strata("export", recording, "-o", tmp_path / "a.csv").code == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) == 1 + len(read_recording(recording).events)


def test_a_cut_recording_is_exported_up_to_the_cut_with_one_line(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    strata(*RUN, "--record", path)
    path.write_bytes(path.read_bytes()[:-30])
    done = strata("export", path, "-o", tmp_path / "a.csv")
    assert done.code == 0
    assert sum("cut off or damaged at byte" in line for line in done.err.splitlines()) == 1


def test_refusals(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    assert "ends in .json.gz, .json, .csv" in strata("export", path, "-o", tmp_path / "a.txt").error
    assert "No such file" in strata("export", path, "-o", tmp_path / "a.csv").error
    assert "expected a recording" in strata("export", QWEN35, "-o", tmp_path / "a.csv").error
    assert "--record: expected a file" in strata(*RUN, "--record", tmp_path / "no" / "a.strata").error
    assert not (tmp_path / "a.csv").exists()


def test_two_arms_of_one_text_are_compared(strata: Strata, tmp_path: Path) -> None:
    a, b, other = (tmp_path / f"{name}.strata" for name in "abc")
    assert strata(*RUN, "--draft", "none", "--record", a).code == 0
    assert strata(*RUN, "--draft", "lookup", "--overlap", "--record", b).code == 0
    done = strata("compare", a, b, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["identical"] is True and told["tokens"] == 24
    assert told["a"]["windows"] == 24 and told["switches"]["draft"] == {"a": "none", "b": "lookup"}
    shown = strata("compare", a, b)
    assert shown.code == 0 and "24 tokens: identical" in shown.out and "idle: hand-off" in shown.out
    strata("run", QWEN35, "--tokens", "5,6,8", "-n", "24", "--kv", "f32", "--record", other)
    assert "token 2 is 7 and 8" in strata("compare", a, other).error
    strata(*RUN, "--kv", "f16", "--record", other)
    assert "K/V cells f32 in a.strata and f16 in c.strata" in strata("compare", a, other).error


def test_what_could_not_apply_is_recorded_as_asked_for_and_as_in_force(
    strata: Strata, tmp_path: Path
) -> None:
    """One stage has nothing to overlap, this file no draft layer: it ran as one that asked for less."""
    a, b, profile = tmp_path / "a.strata", tmp_path / "b.strata", tmp_path / "mine.toml"
    run = ("run", LLAMA, "--tokens", "5,6,7", "-n", "24", "--ignore-eos", "--stages", "1")
    much = ("--overlap", "--pipeline-windows", "3", "--draft", "mtp")
    assert strata(*run, *much, "--record", a).code == 0
    assert strata(*run, "--draft", "lookup", "--record", b).code == 0
    recording = read_recording(a)
    named = ("overlap", "pipeline_windows", "draft")
    assert [recording.asked[name] for name in named] == [True, 3, "mtp"]
    assert [recording.switches[name] for name in named] == [False, 0, "lookup"]
    assert json.loads(strata("compare", a, b, "--json").out)["switches"] == {}
    assert strata("profiles", "--from", a, "--write", profile).code == 0
    assert load_profile(str(profile)).switches["pipeline_windows"] == 0


def test_replay_drafts_are_recorded_as_such(strata: Strata, tmp_path: Path) -> None:
    """Its text is decoded without drafts first, while the header is made."""
    path = tmp_path / "a.strata"
    assert strata(*RUN, "--draft", "replay:0.5", "--record", path).code == 0
    recording = read_recording(path)
    assert recording.asked["draft"] == recording.switches["draft"] == "replay:0.5"


def test_replay_without_a_terminal_is_refused_in_one_line(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    strata(*RUN, "--record", path)
    assert "replay: expected a terminal" in strata("replay", path).error
    assert "expected a recording" in strata("replay", QWEN35).error
    for speed in ("0", "-1", "nan", "inf"):
        refused = strata("replay", path, "--speed", speed)
        assert refused.code == 2 and "is not in the range" in refused.error


def test_a_full_disk_ends_the_recording_and_not_the_run(strata: Strata) -> None:
    ran = strata(*RUN, "--json", "--record", "/dev/full")
    assert ran.code == 1
    assert len(json.loads(ran.out)["token_ids"]) == 24
    assert "the recording ended early: No space left on device" in ran.err and "Traceback" not in ran.err


def test_side_by_side_needs_a_terminal(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    strata(*RUN, "--record", path)
    assert "expected a terminal" in strata("compare", path, path, "--screen").error
    assert strata("compare", path, path).code == 0


def test_a_file_that_is_recorded_into_is_refused_and_stays_whole(strata: Strata, tmp_path: Path) -> None:
    path = tmp_path / "a.strata"
    assert strata(*RUN, "--record", path).code == 0
    whole = path.read_bytes()
    with path.open("ab") as other:  # as another program holds it
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "another program records into" in strata(*RUN, "--record", path).error
    assert path.read_bytes() == whole
    assert strata(*RUN, "--record", path).code == 0


def test_where_no_token_is_compared_nothing_is_called_identical(strata: Strata, tmp_path: Path) -> None:
    whole, cut, empty = (tmp_path / f"{name}.strata" for name in ("whole", "cut", "empty"))
    assert strata(*RUN, "--record", whole).code == 0
    with whole.open("rb") as file:
        read_preamble(file, whole.name)
        of_request, behind = list(whole_frames(file, whole.name))[1:3]
    assert of_request.kind == FrameKind.request
    cut.write_bytes(whole.read_bytes()[: behind.at])
    (text,) = read_recording(cut).requests
    assert text.prompt_tokens and not text.tokens
    for a, b in ((whole, cut), (cut, whole), (cut, cut)):
        assert "there is nothing to compare" in strata("compare", a, b).error
        assert "there is nothing to compare" in strata("compare", a, b, "--json", "--force").error
    empty.touch()
    assert strata("compare", whole, empty).error.endswith("got an empty file")


def test_one_file_for_two_things_is_refused(strata: Strata, tmp_path: Path) -> None:
    path, link, model = tmp_path / "a.json", tmp_path / "link.json", tmp_path / "m.gguf"
    link.symlink_to(path)
    model.write_bytes(QWEN35.read_bytes())
    prompt = ("-f", tmp_path / "prompt")
    prompt[1].write_text("x")
    for one, flags in (
        ("--trace", ("--trace", path, "--record", path)),
        ("--trace", ("--trace", path, "--record", link)),
        ("--record", ("--record", path, "--log", tmp_path / "." / "a.json")),
        ("the model", ("--record", model)),
        ("-f", ("--trace", prompt[1])),
    ):
        line = strata("run", model, *prompt, *flags).error
        assert f"expected another file than that of {one}, got " in line
    assert not path.exists()
    assert model.read_bytes() == QWEN35.read_bytes() and prompt[1].read_text() == "x"
    shared = strata("run", model, *prompt, "-n", "2", "--record", "/dev/null", "--log", "/dev/null")
    assert shared.code == 0, shared.err
