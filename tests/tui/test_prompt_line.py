"""Prompts and the ends of texts."""

import asyncio
import threading

import pytest
from tests.tui.console import console
from textual import events


async def test_a_prompt_of_ones_own_comes_first_and_the_text_goes_on() -> None:
    async with console(max_tokens=150) as seat:
        await seat.play(100)
        await seat.press("n")
        assert seat.prompt.has_focus
        await seat.press(*"oddly", ms=0)
        assert not seat.engine.switches.overlap, "letters go into the prompt, not to the switches"
        await seat.press("enter", ms=300)
        assert not seat.prompt.has_focus and seat.prompt.value == ""
        assert "[ended by you]" in seat.text and "oddly" in seat.text
        await seat.play(1500)
        assert seat.app.sitting.texts.n_started > 3, "text after text"
        seeds = [sampling["seed"] for sampling in seat.engine.sampling]
        assert seeds == list(range(7, 7 + len(seeds)))


async def test_what_is_typed_right_behind_n_is_the_prompt() -> None:
    """A paste, or a machine that is busy: no key waits for what the one before does."""
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        for key in ("n", *"why do o", "enter"):
            name = {" ": "space"}.get(key, key)
            seat.app.post_message(events.Key(name, key if len(key) == 1 else None))
        await seat.pilot.pause()
        await seat.play(300)
        assert seat.app.sitting.texts._request[1] == "why do o"
        assert not seat.engine.switches.overlap and seat.app.face.text_panel.display


async def test_what_is_typed_right_behind_the_prompt_are_commands() -> None:
    """A letter is taken back before the next one is typed, and a paste is there when enter comes."""
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        for key in ("n", "a", "b", "backspace", "c"):
            seat.app.post_message(events.Key(key, key if len(key) == 1 else None))
        seat.app.post_message(events.Paste(" pasted"))
        for key in ("enter", "o", "n", "x", "escape", "w"):
            seat.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await seat.pilot.pause()
        await seat.play(300)
        assert seat.app.sitting.texts._request[1] == "ac pasted"
        assert seat.engine.switches.overlap and seat.engine.switches.pipeline_windows > 1
        assert seat.prompt.value == "x" and not seat.prompt.has_focus, "the next one, begun and left"


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
async def test_a_prompt_is_typed_however_its_keys_come(turns: int) -> None:
    """The word of the focus comes behind the first letters, and takes none of them away."""
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        for keys in ("nhello", "ab", "c"):
            for key in keys:
                seat.app.post_message(events.Key(key, key))
            for _ in range(turns):
                await asyncio.sleep(0)
        await seat.pilot.pause()
        assert seat.prompt.value == "helloabc"
        await seat.press("escape")
        await seat.press("n")
        await seat.press("d")
        assert seat.prompt.value == "helloabcd", "what was begun is gone on with"


async def test_alt_and_a_letter_is_no_letter_of_the_prompt() -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        await seat.press("n", "h")
        seat.app.post_message(events.Key("alt+o", "o"))
        await seat.press("i")
        assert seat.prompt.value == "hi"


async def test_of_several_lines_the_first_is_taken_and_that_is_said() -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(100)
        await seat.press("n")
        seat.app.post_message(events.Paste("one\ntwo"))
        await seat.pilot.pause()
        assert seat.prompt.value == "one" and "one line: the first of what was pasted" in seat.notes


async def test_enter_opens_the_prompt_and_escape_leaves_it() -> None:
    async with console() as seat:
        await seat.press("enter")
        assert seat.prompt.has_focus
        await seat.press("escape")
        assert not seat.prompt.has_focus


def by_template(prompt: str, chat: bool) -> list[int]:
    return [11 if chat else 22, *range(len(prompt) // 4)]


CHAT = {"chat_prompts": ("Tell me", "Ask me"), "encode": by_template, "max_tokens": 10_000}


async def test_h_changes_between_chat_and_raw_from_the_next_text_on() -> None:
    async with console(prompts=("Once", "Twice"), chat=True, **CHAT) as seat:
        await seat.play(200)
        assert " chat h" in seat.screen and seat.text.startswith("Tell me")
        await seat.press("h", ms=200)
        assert " raw  h" in seat.screen and "from the next text on prompts go in raw" in seat.notes
        assert seat.app.sitting.texts._request[0][0] == 11, "this text goes on as it began"
        await seat.press("s", ms=300)
        assert "Twice" in seat.text and seat.app.sitting.texts._request[0][0] == 22
        await seat.press("h", "n", *"mine", "enter", ms=300)
        assert seat.app.sitting.texts._request[:2] == (by_template("mine", True), "mine")
        titles = [command.title for command in seat.app.get_system_commands(seat.app.screen)]
        assert "Prompt: Tell me" in titles and "Prompt: Once" not in titles
        assert "Chat or raw prompts" in titles


async def test_tab_changes_it_while_a_prompt_is_typed_and_a_click_does() -> None:
    async with console(chat=False, **CHAT) as seat:
        await seat.play(100)
        await seat.press("n", *"hm", "tab")
        assert seat.prompt.value == "hm" and seat.prompt.has_focus and seat.app.sitting.texts.chat
        await seat.press("escape")
        await seat.pilot.click("PromptState")
        assert not seat.app.sitting.texts.chat


async def test_a_file_without_a_template_says_so() -> None:
    async with console() as seat:
        await seat.play(100)
        await seat.press("h")
        assert "Strata Pebble has no chat template: prompts go in as they are" in seat.notes
        assert not seat.app.sitting.texts.chat and " raw " in seat.screen


async def test_s_skips_to_the_next_prompt() -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(300)
        await seat.press("s", ms=200)
        assert seat.app.sitting.texts.n_started == 2 and "[ended by you]" in seat.text


@pytest.mark.parametrize("key", ["x", "ctrl+c"])
async def test_the_first_press_ends_the_text_the_second_quits(key: str) -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(300)
        await seat.press(key, ms=300)
        assert seat.app.is_running and not seat.app.sitting.texts.running
        assert "stopped" in seat.screen and "[ended by you]" in seat.text
        written = seat.text
        await seat.play(500)
        assert seat.text == written, "nothing is written any more"
        await seat.pilot.press(key)
        await seat.pilot.pause()
        assert not seat.app.is_running or seat.app._exit


async def test_after_a_stop_a_prompt_goes_on() -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(300)
        await seat.press("x", ms=300)
        await seat.press("n", *"more", "enter", ms=400)
        assert seat.app.sitting.texts.running and "more" in seat.text


async def test_q_quits_and_no_thread_stays() -> None:
    before = threading.active_count()
    async with console() as seat:
        await seat.play(200)
        await seat.pilot.press("q")
        await seat.pilot.pause()
        assert seat.app._exit
    assert threading.active_count() <= before + 1  # asyncio may keep one of its own


async def test_the_palette_has_the_prompts_and_writes_on_one_of_them() -> None:
    async with console(prompts=("once upon", "a\x1b[2J hostile\nprompt"), max_tokens=10_000) as seat:
        await seat.play(200)
        commands = {c.title: c for c in seat.app.get_system_commands(seat.app.screen)}
        assert "Prompt: a[2J hostile prompt" in commands
        commands["Prompt: once upon"].callback()
        await seat.play(300)
        assert seat.app.sitting.texts.n_started == 2 and seat.text.count("once upon") == 2


async def test_c_copies_this_text_with_its_prompt_and_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(size=(80, 24), prompts=("One", "Two"), max_tokens=10_000) as seat:
        copied: list[str] = []
        monkeypatch.setattr(seat.app, "copy_to_clipboard", copied.append)
        await seat.play(300)
        await seat.press("s", ms=300)
        await seat.press("C", ms=0)
        (text,) = copied
        assert text.startswith("Two") and "One" not in text and len(text) > 50
        assert "\n" not in text, "as it came, not as it is wrapped"
        assert f"copied: {len(text):,} characters" in seat.notes
