"""The keys that flip switches, and what a flip gave."""

import re

import pytest
from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine

from strata_tui.analysis.alternation import Alternation, Comparison
from strata_tui.analysis.fate import Fate
from strata_tui.analysis.flips import Flip, Side, Spread
from strata_tui.analysis.view import toggle_text
from strata_tui.events import Kind
from strata_tui.tui.glyphs import ASCII, COLOUR, Glyphs
from strata_tui.tui.line_widget import shortened
from strata_tui.tui.measuring import flip_line, progress_line, result_line


async def test_o_flips_the_overlap_while_it_decodes_and_leaves_a_mark() -> None:
    async with console() as seat:
        await seat.play(500)
        assert "STRATA_SPLIT_OVERLAP=0" in seat.screen
        await seat.press("o", ms=1000)
        assert seat.engine.switches.overlap
        assert "STRATA_SPLIT_OVERLAP=1" in seat.screen
        (mark,) = [m for m in seat.app.sitting.view.marks if m.kind == "toggle"]
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
        marks = [mark.text for mark in seat.app.sitting.view.marks if mark.kind == "toggle"]
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
        marks = [mark.text for mark in seat.app.sitting.view.marks if mark.text.startswith("theta")]
        assert marks == [f"theta={theta:g}" for theta in seen]


async def test_a_flip_tells_what_it_gave() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(160, 40)) as seat:
        await seat.play(1000)
        await seat.press("w", ms=150)
        assert "told apart" not in seat.screen
        await seat.play(1500)
        assert re.search(
            r"^ not told apart yet: [\d.]+ to [\d.]+ ms/window, .* tok/s \(\+\d+%\), pipeline-windows=2, ",
            seat.screen,
            re.M,
        )
        await seat.press("y", "pagedown", ms=1000)
        assert "what switches gave, measured" in "\n".join(
            "".join(text for _, text in line) for line in seat.app.face.why_panel._lines
        )


def spread(median: float) -> Spread:
    return Spread(median, 0.9 * median, 1.1 * median, 0.02 * median)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (105, "not told apart yet: 10.0 to 9.00 ms/window, 100 to 105 tok/s (+5%), overlap=on"),
        (150, "told apart: 10.0 to 9.00 ms/window, 100 to 150 tok/s (+50%), overlap=on"),
    ],
)
def test_a_flip_begins_with_what_can_be_concluded_and_the_medians(after: float, told: str) -> None:
    before = Side(80, spread(10), spread(2), spread(100))
    line = flip_line(Flip("overlap=on", 0, before, Side(80, spread(9), spread(2), spread(after))))
    assert line.startswith(
        f"{told}, quartiles 9.00-11.0 to 8.10-9.90 ms, 2.00 to 2.00 tokens/window; 80 and 80 "
    )


@pytest.mark.parametrize(
    "text", ["overlap=1", "overlap=1 pipeline-windows=8 theta=0.05 draft=lookup draft-max=12"]
)
@pytest.mark.parametrize("ms", [0.123, 12.3, 1234.5])
def test_80_columns_hold_the_conclusion_and_both_medians(ms: float, text: str) -> None:
    side = Side(40, spread(ms), spread(2), spread(100))
    line = flip_line(Flip(text, 0, side, side))
    at_80 = shortened(line, 79, ASCII.ellipsis)
    assert re.match(r"not told apart yet: [\d.]+ to [\d.]+ ms/window, 100 to 100 tok/s", at_80)
    of = Alternation("pipeline_windows", (0, 8), 0)
    result = Comparison(26, (ms, ms), (100, 88), -0.123, -0.234, 0.345)
    assert re.match(
        r"no clear difference: [\d.]+ to [\d.]+ ms/window, -12% tok/s \(95 % -23% \.\. \+34%\)",
        shortened(result_line(of, result), 79, ASCII.ellipsis),
    )
    told = shortened(progress_line(of), 79, ASCII.ellipsis)
    assert told.startswith("not told apart yet: round 1 of at least 6, b ends it, A/B pipeline-windows")


@pytest.mark.parametrize("glyphs", [COLOUR, ASCII], ids=["colour", "ascii"])
@pytest.mark.parametrize("width", [80, 120])
async def test_a_line_that_is_cut_says_so(width: int, glyphs: Glyphs) -> None:
    async with console(FakeEngine(acceptance=0.85), size=(width, 40), glyphs=glyphs) as seat:
        await seat.play(1000)
        await seat.press("w", ms=2000)
        (line,) = (line for line in seat.screen.split("\n") if "told apart" in line)
        assert len(line) == width and line.rstrip().endswith(glyphs.ellipsis)


async def test_b_alternates_the_last_flips_settings_and_tells_their_difference() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(160, 40), max_tokens=10_000) as seat:
        await seat.play(500)
        await seat.press("b")
        assert "flip a switch first" in seat.notes and seat.app.sitting.measuring.alternation is None
        await seat.press("w", ms=500)
        await seat.press("b", ms=500)
        assert re.search(
            r"^ not told apart yet: round \d of at least 6, b ends it, A/B pipeline-windows 0 \| 2 ",
            seat.screen,
            re.M,
        )
        await seat.play(4000)
        seen = {mark.text for mark in seat.app.sitting.view.marks if mark.kind == "toggle"}
        assert seen == {"pipeline-windows=0", "pipeline-windows=2"}
        assert re.search(
            r" ms/window, \+\d+% tok/s \(95 % \+.*, A/B pipeline-windows 0 \| 2, boot", seat.screen
        )
        flips = len(seat.app.sitting.measuring.log.flips)
        await seat.press("b", ms=2000)
        assert seat.engine.switches.pipeline_windows == 2, "the better one stays"
        assert seat.app.sitting.measuring.alternation is None
        assert re.search(
            r"^ told apart: .* ms/window, \+\d+% tok/s \(95 % .*, A/B pipeline-windows 0 \| 2, ",
            seat.screen,
            re.M,
        )
        assert len(seat.app.sitting.measuring.log.flips) == flips, "what alternated by itself is no flip"
        assert seat.app.sitting.texts.n_started == 1, "never in the way of the text"


async def test_a_flip_ends_the_alternation() -> None:
    async with console() as seat:
        await seat.play(500)
        await seat.press("o", ms=300)
        await seat.press("b", ms=300)
        assert seat.app.sitting.measuring.alternation is not None
        await seat.press("plus", ms=2500)
        assert seat.app.sitting.measuring.alternation is None
        assert seat.engine.switches.draft_max == 5


async def test_predictions_stand_beside_the_switches_marked_as_modelled() -> None:
    async with console(size=(160, 50)) as seat:
        await seat.play(1500)
        assert "~" not in seat.screen.split("\n")[-2]
        await seat.press("y", ms=600)
        bar = next(line for line in seat.screen.split("\n") if "STRATA_SPLIT_OVERLAP" in line)
        assert re.search(r"STRATA_SPLIT_OVERLAP=0 o ~[+-]\d+%", bar)
        assert "modelled " in seat.screen and "o (overlap=1)" in seat.screen
        assert re.search(r"w puts a second window in flight \(modelled: [+-]\d+% tok/s\)", seat.screen)
        await seat.press("o", ms=200)
        bar = next(line for line in seat.screen.split("\n") if "STRATA_SPLIT_OVERLAP" in line)
        assert "~" not in bar, "of another setting: not shown"


async def test_p_pauses_decoding_and_the_full_stop_lets_one_window_through() -> None:
    async with console() as seat:
        await seat.play(500)
        await seat.press("p", ms=300)
        decoded = seat.app.sitting.view.windows.decoded
        await seat.play(1000)
        assert seat.app.sitting.view.windows.decoded == decoded and seat.engine.switches.paused
        for n in (1, 2):
            await seat.press("full_stop", ms=300)
            assert seat.app.sitting.view.windows.decoded == decoded + n
        await seat.press("p", ms=300)
        assert seat.app.sitting.view.windows.decoded > decoded + 10
        await seat.press("full_stop", ms=0)
        assert seat.engine.switches.paused, "a step pauses first"


async def test_the_switch_bar_says_what_was_asked_for() -> None:
    async with console() as seat:
        await seat.press("o", "d", "plus", "left_square_bracket", ms=300)
        shown = {s.name: s.asked for s in seat.app.face.switch_bar._switches}
        assert shown == {
            "STRATA_SPLIT_OVERLAP": "1",
            "STRATA_PIPELINE_WINDOWS": "0",
            "draft": "lookup",
            "draft-max": "5",
            "rate": "320",
            "theta": "0.2",
        }
        toggles = [e for e in seat.app.sitting.view.events if e["kind"] == Kind.toggle]
        assert {toggle_text(int(e["a"]), int(e["b"])).split("=")[0] for e in toggles} >= {"overlap", "draft"}


async def test_while_decoding_is_paused_the_head_says_so() -> None:
    async with console() as seat:
        await seat.play(500)
        assert "live" in seat.screen.split("\n")[0]
        await seat.press("p", ms=200)
        head = seat.screen.split("\n")[0]
        assert "decoding paused" in head and "live" not in head
        await seat.press("p", ms=200)
        assert "live" in seat.screen.split("\n")[0]
