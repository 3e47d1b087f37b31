"""Keys of one's own: what the file says holds, and what it can't say is refused in one line."""

from pathlib import Path

import pytest
from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened, opening

from strata_tui.errors import BadInput
from strata_tui.tui.app import Console
from strata_tui.tui.commands import COMMANDS
from strata_tui.tui.help import Help
from strata_tui.tui.key_file import FIXED, key_file, load_keys


def keys_of(text: str, folder: Path) -> dict[str, str]:
    path = folder / "keys.toml"
    path.write_text(text)
    return load_keys(path)


def test_where_the_file_is() -> None:
    assert key_file({"HOME": "/home/ann"}) == Path("/home/ann/.config/strata-tui/keys.toml")
    assert key_file({"HOME": "/home/ann", "XDG_CONFIG_HOME": "/etc/ann"}) == Path(
        "/etc/ann/strata-tui/keys.toml"
    )


def test_no_file_no_change(tmp_path: Path) -> None:
    assert load_keys(tmp_path / "keys.toml") == {}


def test_names_characters_and_lists(tmp_path: Path) -> None:
    text = 'overlap = "f2"\nnext-miss = ["semicolon", "ctrl-n"]\nwhy = "Y"\nexport = "E"\n'
    assert keys_of(text, tmp_path) == {
        "overlap": "f2",
        "next-miss": "semicolon,ctrl+n",
        "why": "Y",
        "export": "E",
    }


def test_two_commands_may_change_places(tmp_path: Path) -> None:
    assert keys_of('why = "v"\nwindows = "y"\n', tmp_path) == {"why": "v", "windows": "y"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('overlp = "x"', "did you mean overlap?"),
        ('qqq = "x"', "expected one of why, windows"),
        ('interrupt = "x"', "whose keys can be chosen"),
        ("overlap = 3", "expected a key or a list of keys, got 3"),
        ("overlap = []", "expected a key or a list of keys, got []"),
        ('overlap = ""', "expected a key or a list of keys"),
        ('overlap = "hyper-x"', "expected a key such as s, ctrl-s, f2 or pageup, got 'hyper-x'"),
        ('overlap = "pagup"', "expected a key such as s, ctrl-s, f2 or pageup, got 'pagup'"),
        ('overlap = "ctrl-f25"', "got 'ctrl-f25'"),
        ('overlap = "y"', "got y for both why and overlap"),
        ('overlap = "ctrl-c"', "got ctrl-c for both"),
        ('overlap = "ctrl-p"', "got ctrl-p for both the palette and overlap"),
        ("overlap = ", "Invalid value"),
        ("\x00", "keys.toml"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=r"keys\.toml") as refused:
        keys_of(text, tmp_path)
    assert said in str(refused.value) and "\n" not in str(refused.value)


async def test_a_key_of_ones_own_acts_and_is_shown_and_the_usual_one_is_free() -> None:
    engine = FakeEngine()
    app = Console(opening(opened(engine)), auto_refresh=False, keys={"overlap": "f2", "why": "Y", "gap": "o"})
    async with app.run_test(size=(120, 40)) as pilot:
        from tests.tui.console import until_open

        await until_open(app, pilot)
        await pilot.press("o")
        assert not engine.switches.overlap
        await pilot.press("f2")
        assert engine.switches.overlap
        await pilot.press("Y")
        assert app.face.panels.shown == "why"
        commands = {c.title: c.help for c in app.get_system_commands(app.screen)}
        assert commands["Overlap"] == "key: f2"
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert " Y why " in text
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        told = {name for _, rows in app.screen.sections() for name, _ in rows}
        assert "f2" in told and "y" not in told
    app.close()


def test_the_docs_name_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs/console.md").read_text()
    assert all(f"`{command.name}`" in page for command in COMMANDS if command.name not in FIXED)


async def test_without_a_file_every_key_is_the_usual_one() -> None:
    async with console() as seat:
        assert seat.app.keys == {command.name: command.keys for command in COMMANDS}
