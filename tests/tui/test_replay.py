"""r records; a replay is the same screen on the recording."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.record.test_recording import HEADER, record
from tests.record.test_upstream import TRACE
from tests.tui.console import Seat, console, until_open
from tests.tui.fake_engine import Clock, FakeEngine

from reference.events import decode_run
from strata_tui.errors import BadInput
from strata_tui.events import EVENT_DTYPE, Events, Kind
from strata_tui.record.playback import LOCKED, Playback
from strata_tui.record.reading import open_recording
from strata_tui.record.recording import Recording, checked_events, read_recording
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, Glyphs
from strata_tui.tui.opening import open_tape


async def joined(seat: Seat) -> None:
    for thread in seat.app._threads:
        await asyncio.to_thread(thread.join)
    await seat.play(100)


async def recorded(folder: Path, ms: float = 3000, **model: object) -> tuple[Recording, str, list[str]]:
    """A session of the fake engine, from its first second on; with its text and the figures at its end."""
    async with console(recording_header=lambda: HEADER, **model) as seat:
        await seat.play(700)
        await seat.press("r", ms=ms)
        await seat.press("o", ms=500)
        await seat.press("r", ms=0)
        await joined(seat)
        stopped = [str(note) for note in seat.notes.splitlines() if ".strata (" in note]
        text = seat.text
    (path,) = folder.glob("strata-*.strata")
    return open_recording(path), text, stopped


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def replay(
    recording: Recording, size: tuple[int, int] = (140, 40), glyphs: Glyphs = COLOUR, speed: float = 1
) -> AsyncIterator[tuple[Seat, Playback]]:
    """A console on a recording, whose clock the test moves."""
    clock = Clock(5)
    tape = Playback(recording, speed, clock)
    app = Console(lambda progress: open_tape(tape), glyphs, auto_refresh=False)
    engine = FakeEngine(clock=clock)
    async with app.run_test(size=size) as pilot:
        await until_open(app, pilot)
        yield Seat(app, pilot, engine), tape
    app.close()


async def test_r_records_and_the_head_shows_it(here: Path) -> None:
    for glyphs, sign in ((COLOUR, "◉ rec"), (ASCII, "(*) rec")):
        async with console(glyphs=glyphs, recording_header=lambda: HEADER) as seat:
            await seat.play(300)
            assert " rec " not in seat.screen
            await seat.press("r", ms=500)
            assert sign in seat.screen and "live" in seat.screen
            await seat.press("r", ms=0)
            await joined(seat)
            assert " rec " not in seat.screen
            (path,) = here.glob("*.strata")
            assert str(path) in seat.notes
            path.unlink()


async def test_a_recording_holds_what_happened_while_it_ran(here: Path) -> None:
    recording, text, stopped = await recorded(here, max_tokens=120)
    assert stopped and recording.note == ""
    first, *later = recording.requests
    assert len(later) > 2
    assert first.emitted, "it began within a text"
    assert first.pieces[0].tokens == () and first.pieces[0].text
    assert len(first.tokens) == 120 and first.finish == "length"
    for request in later[:-1]:
        assert len(request.tokens) == 120
        assert request.sampling["seed"] > 7
    written = "".join(piece.text for piece in first.pieces)
    assert "".join(written.split()) in "".join(text.split())
    toggles = recording.events[recording.events["kind"] == Kind.toggle]
    assert toggles["b"].tolist() == [1]
    begins = recording.events["start_ns"][recording.events["kind"] == Kind.request_begin]
    assert len(begins) == len(later)


async def test_quitting_ends_the_recording_whole(here: Path) -> None:
    async with console(recording_header=lambda: HEADER) as seat:
        await seat.press("r", ms=1000)
        await seat.pilot.press("q")
    (path,) = here.glob("*.strata")
    recording = open_recording(path)
    assert recording.note == "" and len(recording.events) > 100


async def test_a_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("strata_tui.record.recorder.sole_writer", refuse)
    async with console(recording_header=lambda: HEADER) as seat:
        await seat.press("r", ms=300)
        assert "nothing is recorded" in seat.notes and " rec " not in seat.screen


async def test_a_replay_ends_with_the_figures_and_the_text_of_the_run(here: Path) -> None:
    recording, text, _ = await recorded(here, max_tokens=120)
    async with replay(recording) as (seat, tape):
        assert "replay" in seat.screen and "Strata" not in seat.screen
        length_ms = (tape.end_ns - tape.begin_ns) / 1e6
        await seat.play(length_ms / 2)
        half = seat.app.sitting.view.windows.decoded
        assert half > 20 and not tape.ended
        await seat.play(length_ms / 2 + 500)
        assert tape.ended
        played, was = seat.app.sitting.view.events, recording.events
        assert np.array_equal(np.sort(played["start_ns"]), np.sort(was["start_ns"]))
        assert seat.app.sitting.view.windows.decoded > half
        verdicts = recording.events[recording.events["kind"] == Kind.verdict]
        assert seat.app.sitting.view.windows.emitted == verdicts["b"].sum()
        assert "[the recording ends here]" in seat.text
        assert "STRATA_SPLIT_OVERLAP=1" in seat.screen, "the switch follows the toggle that was passed"
        shown = "".join(seat.text.split()).removesuffix("[therecordingendshere]")
        assert len(shown) > 1000 and shown in "".join(text.split())
        before = seat.screen
        await seat.play(1000)
        assert seat.screen == before, "at the end it stands still"


async def test_space_stops_a_replay_and_goes_on_where_it_was(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, tape):
        await seat.play(1000)
        await seat.press("space", ms=0)
        at, taken = tape.now_ns(), len(seat.app.sitting.view.events)
        await seat.play(2000)
        assert tape.now_ns() == at and len(seat.app.sitting.view.events) == taken
        assert "PAUSED replay" in seat.screen
        await seat.press("space", ms=500)
        assert tape.now_ns() == at + 500_000_000
        assert "▶ replay" in seat.screen
        await seat.press("left", ms=300)
        assert tape.held, "who looks back wants to look"
        await seat.press("f", ms=0)
        assert not tape.held


async def test_brackets_change_the_speed(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording, speed=2) as (seat, tape):
        assert "at 2×" in seat.screen  # noqa: RUF001
        begin = tape.now_ns()
        await seat.play(500)
        assert tape.now_ns() == begin + 1_000_000_000
        await seat.press("left_square_bracket", "left_square_bracket", ms=0)
        assert tape.speed == 0.5
        begin = tape.now_ns()
        await seat.play(500)
        assert tape.now_ns() == begin + 250_000_000
        await seat.press(*["right_square_bracket"] * 20, ms=100)
        assert "at 100×" in seat.screen  # noqa: RUF001


async def test_a_replay_flips_no_switch_and_takes_no_prompt(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, tape):
        await seat.play(500)
        before = seat.app.face.switch_bar._switches
        await seat.press("o", "w", "g", "d", "plus", "minus", "c", ms=0)
        assert [note.message for note in seat.app._notifications] == [LOCKED] * 7
        await seat.play(100)
        assert seat.app.face.switch_bar._switches == before
        await seat.press("n", ms=0)
        assert not seat.prompt.has_focus and "takes no prompt" in seat.notes
        await seat.press("r", ms=0)
        assert "a recording already" in seat.notes and len(list(here.glob("*.strata"))) == 1
        with pytest.raises(BadInput, match="can't flip"):
            tape.switches.overlap = True


async def test_s_goes_on_to_the_next_text_and_x_leaves(here: Path) -> None:
    recording, _, _ = await recorded(here, max_tokens=120)
    async with replay(recording) as (seat, tape):
        await seat.play(100)
        await seat.press("s", ms=0)
        assert tape.now_ns() == recording.requests[1].begin_ns
        for _ in recording.requests:
            await seat.press("s", ms=0)
        assert tape.ended
        await seat.pilot.press("x")
        await seat.pilot.pause()
        assert seat.app._exit


async def test_emulated_stays_labelled_and_hostile_words_move_nothing(here: Path) -> None:
    recording, _, _ = await recorded(here)
    recording.requests[0].pieces[0] = replace(recording.requests[0].pieces[0], text="a\x1b[2Jb\u202ec")
    async with replay(replace(recording, emulated=True)) as (seat, _):
        await seat.play(300)
        assert "EMULATED" in seat.screen and "replay" in seat.screen
        await seat.press("space", ms=0)
        assert "EMULATED" in seat.screen and "replay" in seat.screen
        assert "a[2Jbc" in seat.text


async def test_e_exports_what_has_been_played(here: Path) -> None:
    recording, _, _ = await recorded(here)
    async with replay(recording) as (seat, _):
        await seat.play(1000)
        await seat.press("e", ms=0)
        await joined(seat)
        assert list(here.glob("strata-*.json.gz"))


async def test_a_cut_recording_says_at_its_end_that_it_is_cut(here: Path) -> None:
    await recorded(here)
    (path,) = here.glob("*.strata")
    path.write_bytes(path.read_bytes()[:-200])
    async with replay(open_recording(path), speed=50) as (seat, _):
        await seat.play(1000)
        text = " ".join(seat.text.split())
        assert "[the recording ends here" in text and "cut off or damaged at byte" in text


def any_events(seed: int, n: int = 4000) -> Events:
    """Whatever passes as events: no run ever recorded them."""
    draw = np.random.default_rng(seed)
    events = np.zeros(n, EVENT_DTYPE)
    events["kind"] = draw.choice([int(kind) for kind in Kind], n)
    events["stage"] = draw.choice([0, 1, 254, 255], n)
    events["start_ns"] = draw.choice([0, 1, 10**9, 1 << 61], n, p=[0.1, 0.4, 0.49, 0.01]) + draw.integers(
        0, 10**9, n, dtype=np.uint64
    )
    events["dur_ns"] = draw.choice([0, 1, 10**6, 1 << 61], n, p=[0.3, 0.3, 0.39, 0.01])
    events["window"] = draw.choice([0, 1, 2, 3, 500, (1 << 32) - 1], n)
    events["rows"] = draw.integers(0, 65, n)
    for name in ("a", "b"):
        events[name] = draw.choice([-(1 << 31), -1, 0, 1, 2, 3, 4, 11, (1 << 31) - 1], n)
    told = np.isin(events["kind"], [Kind.window, Kind.guess_kept])
    events["b"][told] %= 5
    verdict = events["kind"] == Kind.verdict
    events["a"][verdict] = events["rows"][verdict]
    events["b"][verdict] = draw.integers(0, 65, np.count_nonzero(verdict))
    return checked_events(events, 2, "")


@pytest.mark.parametrize("seed", range(4))
async def test_events_that_no_run_recorded_break_no_screen(here: Path, seed: int) -> None:
    recording = replace(
        read_recording(record(here / "a.strata", decode_run(3))), events=any_events(seed), requests=[]
    )
    async with replay(recording, speed=1) as (seat, tape):
        for key in ("l", "left", "f", "up", "down", "down", "e", "l"):
            await seat.press(key, ms=200)
        tape._at_ns = float(tape.end_ns)
        await seat.play(200)
        await seat.press("left", "left", "up", "shift+left", ms=100)
        assert "replay" in seat.screen


async def test_a_trace_of_the_upstream_engine_is_played(here: Path) -> None:
    (here / "trace.txt").write_text(TRACE)
    async with replay(open_recording(here / "trace.txt"), speed=0.05) as (seat, _):
        await seat.play(2000)
        assert "trace.txt" in seat.screen and "model not known" in seat.screen and "replay" in seat.screen
        assert "STRATA_SPLIT_OVERLAP=?" in seat.screen and "draft=?" in seat.screen
        assert seat.app.sitting.view.windows.decoded == 3


async def test_an_empty_recording(here: Path) -> None:
    recording, _, _ = await recorded(here)
    empty = replace(recording, events=recording.events[:0], requests=[])
    async with replay(empty) as (seat, tape):
        await seat.press("left", "f", "s", ms=300)
        assert tape.ended and "[the recording ends here]" in seat.text
