"""Every command has its key, its word and its place in the palette."""

import gzip
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened

from strata_tui.tui.app import Console
from strata_tui.tui.commands import COMMANDS
from strata_tui.tui.glossary import WORDS
from strata_tui.tui.help import NAMES, Help, keys


async def test_e_writes_the_trace_and_says_where_and_from_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with console(size=(200, 50)) as seat:
        await seat.export()
        (path,) = tmp_path.glob("strata-*.json.gz")
        assert len(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]) > 100
        assert str(path) in seat.notes and "from the session's start" in seat.notes


async def test_help_explains_every_key_and_word() -> None:
    async with console() as seat:
        await seat.press("question_mark")
        assert isinstance(seat.app.screen, Help)
        told = [row for _, rows in seat.app.screen.sections() for row in rows]
        assert set(keys(seat.app.keys)) <= set(told) and set(WORDS) <= set(told)
        lines = seat.screen.split("\n")
        first, second = (line for line in lines if "bottleneck, what" in line or "the bounds" in line)
        assert second.index(second.split()[1]) == first.index("why it takes"), (
            "a line goes on under its beginning"
        )
        await seat.press("escape")
        assert not isinstance(seat.app.screen, Help)


async def test_help_scrolls_at_once_and_says_how_it_closes() -> None:
    async with console(size=(80, 24)) as seat:
        await seat.press("question_mark")
        page = seat.app.screen.query_one("#help")
        assert seat.app.screen.focused is page and "escape closes" in seat.screen
        last = page.max_scroll_y
        for key, where in (
            ("down", 1),
            ("up", 0),
            ("end", last),
            ("home", 0),
            ("pagedown", page.size.height),
        ):
            await seat.pilot.press(key)
            await seat.pilot.wait_for_animation()
            assert page.scroll_y == where, key
        assert "escape closes" in seat.screen
        await seat.press("escape")
        assert not isinstance(seat.app.screen, Help)


def test_every_binding_is_a_command_of_the_help() -> None:
    told = dict(keys({command.name: command.keys for command in COMMANDS}))
    assert len(told) == len(COMMANDS) == len(Console.BINDINGS)
    assert (
        "? h" not in told
        and told["?"] == "help: every key and word"
        and "n enter" in told
        and "shift-left" in told
    )
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    used = [key for command in COMMANDS for key in command.keys.split(",")]
    assert len(set(used)) == len(used), "a key does one thing"


async def test_the_palette_has_every_action() -> None:
    async with console() as seat:
        commands = {c.title.lower(): c for c in seat.app.get_system_commands(seat.app.screen)}
        for command in COMMANDS:
            if command.name not in {"leave", "interrupt"}:
                assert command.words.lower() in commands
        await commands["overlap"].callback()
        assert seat.engine.switches.overlap
        await seat.press("ctrl+p")
        assert "palette" in type(seat.app.screen).__name__.lower()
        assert "search for a command" in seat.screen
        await seat.press(*"overl", ms=0)
        assert " overl" in seat.screen, "what is typed is seen"


async def test_keys_that_need_a_model_wait_for_it() -> None:
    release = threading.Event()
    engine = FakeEngine()

    def slow(progress):
        from tests.tui.fake_model import opened

        progress.begin("header")
        release.wait(5)
        return opened(engine)

    app = Console(slow, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("o", "space", "e", "left", "n", "question_mark", "escape")
        assert not engine.switches.overlap
        release.set()
    app.close()
    assert engine.closed, "an engine that opens after the screen has gone is closed too"


def names(cell: str) -> list[str]:
    """`pick t` and `commit(n)` are pick and commit."""
    return [re.sub(r" t$|\(n\)", "", name.strip()) for name in cell.split(",")]


def test_the_help_has_every_word_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs/concepts.md").read_text()
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    words = [name for cell in cells for name in names(cell) if name not in ("word", "cause")]
    assert len(words) > 20
    page_of_help = "\n".join(f"{name}: {text}" for name, text in WORDS)
    assert [word for word in words if word not in page_of_help] == []
    explained = {name for cell, _ in WORDS for name in names(cell)}
    missing = {"prompt window"}  # in the line of the chunk
    assert set(words) - explained <= missing


def test_no_word_is_explained_twice() -> None:
    assert len({name for name, _ in WORDS}) == len(WORDS)
    assert all(text[0].islower() or name.isupper() or text.startswith(name) for name, text in WORDS)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_help_says_emulated_where_the_head_does(size: tuple[int, int]) -> None:
    for emulated in (False, True):
        label = replace(opened(FakeEngine()).label, emulated=emulated)
        async with console(size=size, label=label) as seat:
            await seat.play(300)
            assert ("EMULATED" in seat.screen) == emulated
            await seat.press("question_mark")
            assert ("EMULATED" in seat.screen.split("\n")[size[1] // 20]) == emulated


async def test_help_cuts_no_name() -> None:
    async with console(size=(80, 24)) as seat:
        await seat.press("question_mark")
        longest = max(len(name) for _, rows in seat.app.screen.sections() for name, _ in rows)
        assert longest + 2 <= NAMES
