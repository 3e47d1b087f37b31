"""Every key does what the help says."""

import asyncio
import gzip
import json
import re
import threading
from pathlib import Path

import pytest
from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.view import toggle_text
from strata_tui.events import Kind
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import COLOUR
from strata_tui.tui.help import KEYS, WORDS, Help
from strata_tui.tui.themes import THEMES


async def test_o_flips_the_overlap_while_it_decodes_and_leaves_a_mark() -> None:
    async with console() as seat:
        await seat.play(500)
        assert "STRATA_SPLIT_OVERLAP=0" in seat.screen
        await seat.press("o", ms=1000)
        assert seat.engine.switches.overlap
        assert "STRATA_SPLIT_OVERLAP=1" in seat.screen
        (mark,) = [m for m in seat.app.view.marks if m.kind == "toggle"]
        assert mark.text == "overlap=1"
        await seat.press("o", ms=1000)
        assert "STRATA_SPLIT_OVERLAP=0" in seat.screen


async def test_a_flip_is_drawn_as_a_mark_in_the_lanes() -> None:
    async with console() as seat:
        await seat.play(500)
        await seat.press("down", "down", "down", "down", "down", "o", ms=400)
        assert "▼overlap=1" in seat.screen and "┃" in seat.screen


async def test_a_switch_that_is_not_in_force_yet_says_so() -> None:
    async with console() as seat:
        await seat.play(200)
        await seat.press("o", ms=0)
        seat.engine.switches._live["overlap"] = False
        seat.app.refresh_view()
        await seat.pilot.pause()
        assert "STRATA_SPLIT_OVERLAP=1 (0 in force)" in seat.screen


async def test_space_freezes_the_lanes_while_recording_goes_on() -> None:
    async with console() as seat:
        await seat.play(1000)
        await seat.press("space", ms=0)
        frozen = seat.app._picture
        windows = seat.app.view.windows.decoded
        await seat.play(2000)
        assert seat.app._picture is frozen
        assert "PAUSED" in seat.screen and "s behind live" in seat.screen
        assert seat.app.view.windows.decoded > windows + 50
        await seat.press("space", ms=500)
        assert "PAUSED" not in seat.screen and "live" in seat.screen
        assert seat.app._picture is not frozen


async def test_arrows_move_and_zoom() -> None:
    async with console() as seat:
        await seat.play(2000)
        span = seat.app.axis.span_ns
        await seat.press("up")
        assert seat.app.axis.span_ns < span
        await seat.press("down", "down")
        assert seat.app.axis.span_ns > span
        await seat.press("space")
        at = seat.app._picture.t0_ns
        await seat.press("left", "left")
        assert seat.app._picture.t0_ns < at
        await seat.press("shift+right", "right", "right")
        assert seat.app._picture.t1_ns <= seat.engine.now_ns()
        await seat.press("f", ms=600)
        assert not seat.app.axis.frozen and seat.app.axis.auto
        assert "PAUSED" not in seat.screen


async def test_d_goes_through_the_draft_sources() -> None:
    async with console() as seat:
        seen = []
        for _ in range(3):
            await seat.press("d")
            seen.append(seat.engine.switches.draft)
        assert seen == ["lookup", "none", "mtp"]


async def test_plus_and_minus_set_the_longest_draft() -> None:
    async with console() as seat:
        await seat.press("plus")
        assert seat.engine.switches.draft_max == 5 and "draft-max=5" in seat.screen
        await seat.press(*["plus"] * 9)
        assert seat.engine.switches.draft_max == 7
        await seat.press(*["minus"] * 9)
        assert seat.engine.switches.draft_max == 0


async def test_brackets_and_c_cap_the_pace() -> None:
    async with console() as seat:
        rates = []
        for key in ("right_square_bracket", "left_square_bracket", "left_square_bracket", "c", "c"):
            await seat.press(key)
            rates.append(seat.engine.switches.rate)
        assert rates == [0, 320, 160, 0, 160]
        await seat.press("right_square_bracket", "right_square_bracket")
        assert seat.engine.switches.rate == 0
        await seat.press("c", *["left_square_bracket"] * 20, ms=3000)
        assert seat.engine.switches.rate == 2
        assert "\u2571\u2571\u2571" in seat.screen, "throttled is drawn as a hatch"


async def test_w_goes_through_the_windows_in_flight_that_there_is_memory_for() -> None:
    async with console(FakeEngine(stage_ms=(2.0, 2.0, 2.0))) as seat:
        await seat.play(300)
        seen = []
        for _ in range(4):
            await seat.press("w", ms=300)
            seen.append(seat.engine.switches.pipeline_windows)
        assert seen == [2, 3, 0, 2]
        marks = [mark.text for mark in seat.app.view.marks if mark.kind == "toggle"]
        assert marks == [f"pipeline-windows={n}" for n in seen]


async def test_the_flip_is_a_mark_and_kept_and_lost_windows_follow_it() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(160, 40)) as seat:
        await seat.play(500)
        await seat.press("w", "down", "down", "down", "down", ms=600)
        assert "STRATA_PIPELINE_WINDOWS=2" in seat.screen
        assert "pipeline-windows=2" in seat.screen and "\u2503" in seat.screen
        await seat.press("f", ms=1000)
        strip = next(line for line in seat.screen.split("\n") if line.startswith(" windows"))
        assert COLOUR.fates[Fate.KEPT_AFTER_FRESH] in strip and COLOUR.fates[Fate.ROLLED_BACK] in strip
        assert "lost" in seat.screen and "% of the stages' work" in seat.screen


async def test_w_says_why_it_can_do_nothing() -> None:
    async with console(FakeEngine(stage_ms=(4.0,))) as seat:
        await seat.press("w")
        assert "one stage" in seat.notes and "--stages 2" in seat.notes
        assert seat.engine.switches.pipeline_windows == 0
    engine = FakeEngine()
    engine.pipeline_max = 0
    async with console(engine) as seat:
        await seat.press("w")
        assert "--pipeline-max 2" in seat.notes
        assert "theta" not in seat.screen


async def test_g_goes_through_the_gates() -> None:
    async with console() as seat:
        seen = []
        for _ in range(5):
            await seat.press("g")
            seen.append(seat.engine.switches.theta)
        assert seen == [0.4, 0.6, 0.8, 0.0, 0.2]
        assert "theta=0.2" in seat.screen
        marks = [mark.text for mark in seat.app.view.marks if mark.text.startswith("theta")]
        assert marks == [f"theta={theta:g}" for theta in seen]


async def test_l_shows_the_log_in_place_of_the_text() -> None:
    lines: list[str] = []
    async with console(max_tokens=100, log=lines.append) as seat:
        await seat.play(400)
        await seat.press("l", "w", ms=800)
        assert not seat.app.text_panel.display
        assert "verdict w" in seat.app.log_panel.text and "chain w" in seat.app.log_panel.text
        assert "hand-off stage 0 -> 1" in seat.app.log_panel.text
        assert "verdict w" in seat.screen
        await seat.press("pageup", ms=0)
        assert seat.app.log_panel._held and not seat.app.text_panel._held
        await seat.press("l", ms=100)
        assert seat.app.text_panel.display and not seat.app.log_panel.display
    assert lines and not any("verdict w" in line for line in lines), "the file has them only where asked for"


async def test_the_log_of_verdicts_goes_to_the_file_where_it_is_asked_for() -> None:
    lines: list[str] = []
    async with console(max_tokens=100, log=lines.append, reports=frozenset({"pipeline_log"})) as seat:
        await seat.play(600)
    assert sum("verdict w" in line for line in lines) > 20
    assert sum("chain w" in line for line in lines) > 20


async def test_y_tells_why_in_place_of_the_text() -> None:
    async with console() as seat:
        await seat.play(1000)
        await seat.press("y", ms=600)
        assert not seat.app.text_panel.display
        assert "waits" in seat.screen and "for a verdict: w puts a second window" in seat.screen
        assert "bottleneck: stage" in seat.screen and "ms/window" in seat.screen
        await seat.press("space", ms=0)
        held = seat.app.why_panel._lines
        await seat.play(2000)
        assert seat.app.why_panel._lines == held, "a frozen view has one explanation"
        await seat.press("space", "w", ms=600)
        assert "since pipeline-windows=2" in seat.screen
        await seat.press("l", ms=100)
        assert seat.app.log_panel.display and not seat.app.why_panel.display
        await seat.press("y", "y", ms=100)
        assert seat.app.text_panel.display and not seat.app.why_panel.display


async def test_why_scrolls_where_it_has_no_room() -> None:
    async with console(FakeEngine(stage_ms=(1.0,) * 8), size=(80, 24)) as seat:
        await seat.play(1000)
        await seat.press("y", ms=600)
        assert "path " not in seat.screen
        await seat.press("pagedown", "pagedown", ms=0)
        assert "path " in seat.screen
        await seat.press("pageup", "pageup", "pageup", ms=0)
        assert "why: the last" in seat.screen


def table_rows(screen: str) -> list[str]:
    lines = screen.split("\n")
    head = next(i for i, line in enumerate(lines) if line.startswith(" window    at"))
    return [line for line in lines[head + 1 :] if line[:7].strip().isdigit()]


async def test_v_shows_the_windows_in_words() -> None:
    engine = FakeEngine(acceptance=0.85)
    engine.switches.pipeline_windows = 2
    async with console(engine, size=(160, 50)) as seat:
        await seat.play(1500)
        await seat.press("v", ms=100)
        rows = table_rows(seat.screen)
        assert len(rows) > 10
        log = seat.app.view.windows.rows
        for row in rows[:-3]:
            window = log[log["id"] == int(row.split()[0])][0]
            assert int(row.split()[1]) == window["position"]
            assert row.count(COLOUR.accepted) == max(0, window["accepted"])
            rejected = window["rows"] - 1 - window["accepted"] if window["accepted"] >= 0 else 0
            assert row.count(COLOUR.rejected) == rejected
            words = [seat.app.opened.piece(t).strip() for t in window["drafts"] if t >= 0]
            assert all(word in row for word in words[:2])
            if window["emitted"]:
                assert f"+{window['emitted']} {seat.app.opened.piece(window['bonus']).strip()[:7]}" in row
        table = "\n".join(rows)
        assert "kept" in table and "rolled back" in table and "draft wrong" in table
        await seat.press("pageup", ms=0)
        back = table_rows(seat.screen)
        assert int(back[-1].split()[0]) < int(rows[0].split()[0]) + 3
        await seat.play(500)
        assert table_rows(seat.screen) == back, "it stays where it was scrolled to"
        await seat.press("pagedown", "pagedown", "pagedown", "space", ms=0)
        held = table_rows(seat.screen)
        await seat.play(500)
        assert table_rows(seat.screen) == held, "a frozen view holds it"
        await seat.press("space", ms=300)
        assert int(table_rows(seat.screen)[-1].split()[0]) > int(held[-1].split()[0]) + 20


async def test_a_flip_tells_what_it_gave() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(160, 40)) as seat:
        await seat.play(1000)
        await seat.press("w", ms=150)
        assert "pipeline-windows=2:" not in seat.screen
        await seat.play(1500)
        assert "pipeline-windows=2: " in seat.screen and " tok/s (+" in seat.screen
        await seat.press("y", "pagedown", ms=1000)
        assert "what switches gave, measured" in "\n".join(
            "".join(text for _, text in line) for line in seat.app.why_panel._lines
        )


async def test_b_alternates_the_last_flips_settings_and_tells_their_difference() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(160, 40), max_tokens=10_000) as seat:
        await seat.play(500)
        await seat.press("b")
        assert "flip a switch first" in seat.notes and seat.app.measuring.alternation is None
        await seat.press("w", ms=500)
        await seat.press("b", ms=500)
        assert "A/B pipeline-windows 0 | 2 by turns" in seat.screen
        await seat.play(4000)
        seen = {mark.text for mark in seat.app.view.marks if mark.kind == "toggle"}
        assert seen == {"pipeline-windows=0", "pipeline-windows=2"}
        assert "% tok/s, 95 % +" in seat.screen and "bootstrap over" in seat.screen
        flips = len(seat.app.measuring.log.flips)
        await seat.press("b", ms=2000)
        assert seat.engine.switches.pipeline_windows == 2, "the better one stays"
        assert seat.app.measuring.alternation is None and "A/B pipeline-windows 0 | 2: +" in seat.screen
        assert len(seat.app.measuring.log.flips) == flips, "what alternated by itself is no flip"
        assert seat.app.texts.n_started == 1, "never in the way of the text"


async def test_a_flip_ends_the_alternation() -> None:
    async with console() as seat:
        await seat.play(500)
        await seat.press("o", ms=300)
        await seat.press("b", ms=300)
        assert seat.app.measuring.alternation is not None
        await seat.press("plus", ms=2500)
        assert seat.app.measuring.alternation is None
        assert seat.engine.switches.draft_max == 5


async def test_predictions_stand_beside_the_switches_marked_as_modelled() -> None:
    async with console(size=(160, 50)) as seat:
        await seat.play(1500)
        assert "~" not in seat.screen.split("\n")[-2]
        await seat.press("y", ms=600)
        bar = next(line for line in seat.screen.split("\n") if "STRATA_SPLIT_OVERLAP" in line)
        assert re.search(r"STRATA_SPLIT_OVERLAP=0 o ~[+-]\d+%", bar)
        assert "modelled " in seat.screen and "o (overlap=1)" in seat.screen
        await seat.press("o", ms=200)
        bar = next(line for line in seat.screen.split("\n") if "STRATA_SPLIT_OVERLAP" in line)
        assert "~" not in bar, "of another setting: not shown"


def told(seat) -> str:
    """What stands under the lanes."""
    return seat.app.looking.told(seat.app._begin_ns)


async def test_u_goes_to_the_longest_gap_and_names_its_cause() -> None:
    async with console(FakeEngine(stage_ms=(2.0, 2.5, 2.0, 5.0))) as seat:
        await seat.play(1500)
        await seat.press("u", ms=0)
        seat.app.refresh_view()
        await seat.pilot.pause()
        assert seat.app.axis.frozen and "PAUSED" in seat.screen
        first = seat.app.looking.moment
        assert "waits for" in told(seat) and told(seat) in seat.screen
        assert seat.app.axis.left_ns <= first.start_ns and first.end_ns <= seat.app.axis.right_ns
        await seat.press("u")
        second = seat.app.looking.moment
        assert second.end_ns - second.start_ns <= first.end_ns - first.start_ns
        await seat.press("space")
        assert seat.app.looking.moment is None and told(seat) not in seat.screen.split()


async def test_j_and_m_go_to_verdicts_and_misses() -> None:
    engine = FakeEngine(acceptance=0.85)
    engine.switches.pipeline_windows = 2
    async with console(engine) as seat:
        await seat.play(1000)
        await seat.press("j")
        newest = seat.app.looking.moment
        assert "verdict of window" in told(seat) and "drafts accepted" in seat.screen
        await seat.press("J", "J")
        before = seat.app.looking.moment
        assert before.start_ns < newest.start_ns
        await seat.press("j", "j")
        assert seat.app.looking.moment == newest
        await seat.press("M")
        miss = seat.app.looking.moment
        assert "is rolled back: " in told(seat) and miss.start_ns < newest.start_ns + 10**9
        await seat.press("M")
        assert seat.app.looking.moment.start_ns < miss.start_ns
        await seat.press("m")
        assert seat.app.looking.moment == miss


async def test_i_puts_a_cursor_that_the_arrows_move_over_spans_and_lanes() -> None:
    async with console() as seat:
        await seat.play(1000)
        await seat.press("i")
        seen = [seat.app.looking.moment]
        for _ in range(12):
            await seat.press("right", ms=0)
            seen.append(seat.app.looking.moment)
        starts = [moment.start_ns for moment in seen]
        assert starts == sorted(starts) and len(set(starts)) > 8
        texts = " ".join(moment.text for moment in seen)
        assert "runs window" in texts and "waits for a verdict" in texts and "commits window" in texts
        await seat.press("down")
        assert seat.app.looking.moment.lane == 1 and told(seat) in seat.screen
        await seat.press("up", "up")
        assert seat.app.looking.moment.lane == 255
        await seat.press("left")
        assert seat.app.looking.inspecting
        await seat.press("escape")
        assert not seat.app.looking.inspecting and seat.app.looking.moment is None


async def test_k_lays_the_critical_path_over_the_lanes() -> None:
    async with console() as seat:
        await seat.play(1000)
        assert COLOUR.path not in seat.screen
        await seat.press("space", "k")
        assert COLOUR.path in seat.screen
        lanes = {lane for lane, *_ in seat.app._path}
        assert {0, 1, 254, 255} == lanes, "serial windows: both stages, the draft chain and the verdict"
        await seat.press("k")
        assert COLOUR.path not in seat.screen


async def test_p_pauses_decoding_and_the_full_stop_lets_one_window_through() -> None:
    async with console() as seat:
        await seat.play(500)
        await seat.press("p", ms=300)
        decoded = seat.app.view.windows.decoded
        await seat.play(1000)
        assert seat.app.view.windows.decoded == decoded and seat.engine.switches.paused
        for n in (1, 2):
            await seat.press("full_stop", ms=300)
            assert seat.app.view.windows.decoded == decoded + n
        await seat.press("p", ms=300)
        assert seat.app.view.windows.decoded > decoded + 10
        await seat.press("full_stop", ms=0)
        assert seat.engine.switches.paused, "a step pauses first"


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
        assert seat.app.texts.n_started > 3, "text after text"
        seeds = [sampling["seed"] for sampling in seat.engine.sampling]
        assert seeds == list(range(7, 7 + len(seeds)))


async def test_enter_opens_the_prompt_and_escape_leaves_it() -> None:
    async with console() as seat:
        await seat.press("enter")
        assert seat.prompt.has_focus
        await seat.press("escape")
        assert not seat.prompt.has_focus


async def test_s_skips_to_the_next_prompt() -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(300)
        await seat.press("s", ms=200)
        assert seat.app.texts.n_started == 2 and "[ended by you]" in seat.text


@pytest.mark.parametrize("key", ["x", "ctrl+c"])
async def test_the_first_press_ends_the_text_the_second_quits(key: str) -> None:
    async with console(max_tokens=10_000) as seat:
        await seat.play(300)
        await seat.press(key, ms=300)
        assert seat.app.is_running and not seat.app.texts.running
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
        assert seat.app.texts.running and "more" in seat.text


async def test_q_quits_and_no_thread_stays() -> None:
    before = threading.active_count()
    async with console() as seat:
        await seat.play(200)
        await seat.pilot.press("q")
        await seat.pilot.pause()
        assert seat.app._exit
    assert threading.active_count() <= before + 1  # asyncio may keep one of its own


async def test_e_writes_the_trace_and_says_where_and_from_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with console(size=(200, 50)) as seat:
        await seat.play(500)
        await seat.press("e", ms=0)
        for thread in seat.app._threads:
            await asyncio.to_thread(thread.join)
        await seat.play(100)
        (path,) = tmp_path.glob("strata-*.json.gz")
        assert len(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]) > 100
        assert str(path) in seat.notes and "from the session's start" in seat.notes


async def test_help_explains_every_key_and_word() -> None:
    async with console() as seat:
        await seat.press("question_mark")
        assert isinstance(seat.app.screen, Help)
        page = str(seat.app.screen._page())
        for name, text in (*KEYS, *WORDS):
            assert name in page and text in page
        await seat.press("escape")
        assert not isinstance(seat.app.screen, Help)


def test_every_binding_is_in_the_help() -> None:
    told = " ".join(f"{keys} {text}" for keys, text in KEYS)
    names = {
        "left_square_bracket": "[",
        "right_square_bracket": "]",
        "question_mark": "?",
        "full_stop": ".",
        "plus": "+",
        "minus": "-",
        "pageup": "pgup",
        "pagedown": "pgdn",
        "ctrl+c": "ctrl-c",
        "ctrl+z": "ctrl-z",
        "shift+left": "left",
        "shift+right": "right",
    }
    for binding in Console.BINDINGS:
        key = binding.key.split(",")[0]
        assert names.get(key, key) in told, key


async def test_the_palette_has_every_action() -> None:
    async with console() as seat:
        commands = {c.title.lower(): c for c in seat.app.get_system_commands(seat.app.screen)}
        for binding in Console.BINDINGS:
            if binding.action not in {"leave_prompt", "quit", "stop"}:
                assert binding.description.lower() in commands
        await commands["overlap"].callback()
        assert seat.engine.switches.overlap
        await seat.press("ctrl+p")
        assert "palette" in type(seat.app.screen).__name__.lower()


async def test_t_goes_through_the_themes() -> None:
    async with console() as seat:
        seen = []
        for _ in range(4):
            await seat.press("t")
            seen.append(seat.app.theme)
        assert seen == ["strata-light", "strata-contrast", "strata-ansi", "strata-dark"]


@pytest.mark.parametrize("name", ["foreground", "quiet", "lane-idle", "lane-lost", "lane-run-even"])
def test_the_theme_of_high_contrast_has_it(name: str) -> None:
    """WCAG's ratio of luminances: 7 for text, 3 for shapes; an idle lane is a shape."""
    theme = next(theme for theme in THEMES if theme.name == "strata-contrast")
    colours = {"foreground": theme.foreground, **theme.variables}

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(sum(k * c for k, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))

    ratio = (luminance(colours[name]) + 0.05) / (luminance(theme.background) + 0.05)
    assert ratio >= (3 if name.startswith("lane-") else 7)


async def test_pages_look_back_in_the_text() -> None:
    async with console(size=(80, 24)) as seat:
        await seat.play(3000)
        end = seat.screen
        await seat.press("pageup", "pageup", ms=0)
        assert seat.screen != end
        await seat.press(*["pagedown"] * 3, ms=0)
        assert not seat.app.text_panel._held


async def test_keys_that_need_a_model_wait_for_it() -> None:
    release = threading.Event()
    engine = FakeEngine()

    def slow(progress):
        from tests.tui.fake_model import opened

        progress("reading the model")
        release.wait(5)
        return opened(engine)

    app = Console(slow, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("o", "space", "e", "left", "n", "question_mark", "escape")
        assert not engine.switches.overlap
        release.set()
    app.close()
    assert engine.closed, "an engine that opens after the screen has gone is closed too"


async def test_the_switch_bar_says_what_was_asked_for() -> None:
    async with console() as seat:
        await seat.press("o", "d", "plus", "left_square_bracket", ms=300)
        shown = {s.name: s.asked for s in seat.app.switch_bar._switches}
        assert shown == {
            "STRATA_SPLIT_OVERLAP": "1",
            "STRATA_PIPELINE_WINDOWS": "0",
            "draft": "lookup",
            "draft-max": "5",
            "rate": "320",
            "theta": "0.2",
        }
        toggles = [e for e in seat.app.view.events if e["kind"] == Kind.toggle]
        assert {toggle_text(int(e["a"]), int(e["b"])).split("=")[0] for e in toggles} >= {"overlap", "draft"}
