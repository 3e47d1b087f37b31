"""What the screen shows: sizes, shapes, hostile text, errors, empty states."""

import unicodedata
from dataclasses import replace

import pytest
from rich.cells import cell_len
from tests.tui.console import console, until_open
from tests.tui.fake_engine import FakeEngine
from tests.tui.fake_model import opened

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import SHARE_COLUMNS, LaneState
from strata_tui.errors import BadInput
from strata_tui.tui.app import Console
from strata_tui.tui.glyphs import ASCII, COLOUR, MONO, Glyphs
from strata_tui.tui.wrap import Wrapped


@pytest.mark.parametrize("stages", [(4.0,), (1.0, 2.0, 3.0, 1.5, 1.0, 1.0, 1.0, 1.0)])
async def test_every_line_fills_the_width(stages: tuple[float, ...]) -> None:
    async with console(FakeEngine(stage_ms=stages)) as seat:
        for width, height in [(80, 24), (120, 40), (200, 50), (40, 12), (300, 80)]:
            await seat.pilot.resize_terminal(width, height)
            await seat.play(200)
            lines = seat.screen.split("\n")
            assert len(lines) == height
            assert {cell_len(line) for line in lines} == {width}


async def test_a_notice_of_the_engine_is_shown_once() -> None:
    engine = FakeEngine()
    engine.unsaid = ["[device] stage 0: the system refused to pin it"]
    async with console(engine) as seat:
        await seat.play(200)
        assert [note.message for note in seat.app._notifications] == [
            "[device] stage 0: the system refused to pin it"
        ]


async def test_narrow_and_wide_are_css_classes() -> None:
    async with console(size=(80, 24)) as seat:
        assert seat.app.screen.has_class("-narrow") and seat.app.screen.has_class("-short")
        await seat.pilot.resize_terminal(140, 45)
        await seat.play(100)
        assert seat.app.screen.has_class("-wide") and seat.app.screen.has_class("-tall")
        assert "last second" in seat.screen


async def test_a_storm_of_resizes() -> None:
    async with console() as seat:
        for width, height in [
            (80, 24),
            (20, 8),
            (200, 50),
            (110, 34),
            (109, 33),
            (7, 3),
            (300, 80),
            (120, 40),
        ]:
            await seat.pilot.resize_terminal(width, height)
            await seat.play(100)
            assert {cell_len(line) for line in seat.screen.split("\n")} == {width}
        await seat.play(300)
        assert "stage 0" in seat.screen and "tok/s" in seat.screen


async def test_the_cells_drawn_are_those_of_the_picture() -> None:
    async with console(size=(160, 24)) as seat:  # short: a lane is one row
        await seat.play(1500)
        lanes = seat.app.face.lanes
        picture = seat.app.framing.picture
        assert picture.columns == lanes.columns
        for y, lane in enumerate(picture.lanes, start=1):
            drawn = lanes.render_line(y).crop(lanes.label_width, lanes.label_width + lanes.columns).text
            marked = {column for column, _ in picture.marks}
            at = 0
            for run in lane.runs:
                glyph = COLOUR.lane(run.state, 0, 1)
                for column in range(at, at + run.length):
                    assert column in marked or drawn[column] == glyph or drawn[column].isdigit()
                at += run.length


async def test_shares_of_each_stage_sum_to_a_hundred_on_the_screen() -> None:
    async with console(FakeEngine(stage_ms=(2.0, 2.0, 2.0))) as seat:
        await seat.play(1500)
        lines = seat.screen.split("\n")
        rows = [line for line in lines if line.strip().startswith("cpu 1 thread")]
        assert len(rows) == 3
        for line in rows:
            assert sum(int(word) for word in line.split()[-len(SHARE_COLUMNS) :]) == 100


@pytest.mark.parametrize("height", [1, 2, 3])
def test_states_differ_by_shape_without_colour(height: int) -> None:
    for glyphs in (MONO, ASCII):
        shapes = {
            state: "".join(glyphs.lane(state, row, height) for row in range(height))
            for state in LaneState
            if state not in (LaneState.DRAFT, LaneState.VERDICT)  # they have lanes of their own
        }
        assert len(set(shapes.values())) == len(shapes)


def test_fates_differ_by_shape() -> None:
    for glyphs in (COLOUR, MONO, ASCII):
        assert len({glyphs.fates[fate] for fate in Fate}) == len(Fate)


@pytest.mark.parametrize("glyphs", [COLOUR, MONO, ASCII])
async def test_lanes_and_strip_carry_the_fates(glyphs: Glyphs) -> None:
    engine = FakeEngine(stage_ms=(3.0, 3.0, 3.0), acceptance=0.85)
    engine.switches.pipeline_windows = 3
    async with console(engine, size=(200, 24), glyphs=glyphs) as seat:
        seen = set()
        for _ in range(12):
            await seat.play(500)
            lanes = seat.app.face.lanes
            seen |= {run.state for lane in seat.app.framing.picture.lanes[:3] for run in lane.runs}
            stage_0 = lanes.render_line(1).crop(lanes.label_width, lanes.label_width + lanes.columns).text
            strip = seat.app.face.strip.render_line(0).text
            if LaneState.LOST in {run.state for run in seat.app.framing.picture.lanes[0].runs}:
                assert glyphs.patterns[LaneState.LOST] in stage_0
            assert glyphs.fates[Fate.ROLLED_BACK] in strip
        assert {LaneState.LOST, LaneState.UNDO, LaneState.COMMIT_AHEAD} <= seen
        tokens = seat.app.face.strip.render_line(1).text
        assert "lost" in tokens and "+" in tokens


async def test_figures_of_the_guesses_fit_and_name_their_denominators() -> None:
    engine = FakeEngine(acceptance=0.85)
    engine.switches.pipeline_windows = 2
    async with console(engine, size=(80, 24)) as seat:
        await seat.play(2000)
        rates = seat.app.framing.rates
        assert f"% of {rates.guesses.decided:,} guesses kept" in seat.screen
        assert all(len(line.rstrip()) <= 80 for line in seat.screen.split("\n"))
        await seat.pilot.resize_terminal(120, 40)
        await seat.play(300)
        figures = [
            seat.app.face.figures.render_line(y).text for y in range(seat.app.face.figures.size.height)
        ]
        assert sum("after fresh" in line or "after kept" in line for line in figures) == 2
        assert any("dropped" in line for line in figures), "always there"
        assert all(line.endswith(" ") for line in figures), "nothing is cut off"


async def test_ascii_is_ascii() -> None:
    async with console(glyphs=ASCII) as seat:
        await seat.play(1500)
        await seat.press("w", ms=1000)
        await seat.press("space")
        ours = [line for line in seat.screen.split("\n") if "palette" not in line]
        assert all(line.isascii() for line in ours), [line for line in ours if not line.isascii()]


HOSTILE = (
    "\x1b[2J\x1b[31mred \x1b]0;title\x07 \x9b5m \x1bP+q\x1b\\ \x00\x08\x08\x7f\r bell\x07 "
    "\u202eright-to-left \u05e9\u05dc\u05d5\u05dd \u4f60\u597d\u4e16\u754c "
    "\U0001f469\u200d\U0001f680 e\u0301 \ufeff\u2028 \ud800 [b]markup[/b] "
)


async def test_model_text_cannot_harm_the_screen() -> None:
    async with console(size=(80, 24), text=HOSTILE, prompts=("\x1b[31mprompt\x07",)) as seat:
        await seat.play(2000)
        controls = [c for c in seat.screen if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
        assert not controls
        assert "\u202e" not in seat.screen
        assert "[b]markup[/b]" in seat.text, "no markup is read in a model's text"
        assert {cell_len(line) for line in seat.screen.split("\n")} == {80}


async def test_an_error_in_a_stage_is_a_panel_and_the_console_lives_on() -> None:
    async with console(FakeEngine(fail_at=20)) as seat:
        await seat.play(1000)
        assert "injected failure" in seat.screen and "n or enter starts a new text" in seat.screen
        assert seat.app.sitting.view.errors
        seat.engine._fail_at = 0
        await seat.press("n", *"again", "enter", ms=500)
        assert "injected failure" not in seat.screen and seat.app.sitting.texts.running


async def test_a_model_that_cannot_be_opened_is_a_panel() -> None:
    def broken(progress):
        raise ValueError("[gguf] model.gguf: expected magic GGUF, got [PK]")

    app = Console(broken, auto_refresh=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await until_open(app, pilot)
        text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "expected magic GGUF, got [PK]" in text and "q quits" in text
        await pilot.press("o", "space", "e", "x")
    assert isinstance(app.open_error, ValueError)
    app.close()


async def test_a_prompt_that_cannot_be_used_is_told() -> None:
    def refuse(prompt: str, chat: bool) -> list[int]:
        raise BadInput("[prompt] expected at most 4096 tokens, got 5000")

    async with console(encode=refuse) as seat:
        await seat.play(200)
        assert "expected at most 4096 tokens" in seat.screen and not seat.app.sitting.texts.running


async def test_each_request_leaves_its_lines_in_the_log() -> None:
    lines: list[str] = []
    async with console(max_tokens=40, log=lines.append) as seat:
        await seat.play(600)
        assert seat.app.sitting.texts.n_started >= 3
    hand_offs = [line for line in lines if "hand-off stage 0 -> 1: serial" in line]
    assert len(hand_offs) == len([line for line in lines if line.startswith("strata pipeline:")]) >= 2


async def test_before_the_first_window_the_screen_says_so() -> None:
    async with console() as seat:
        assert "waiting for the first window" in seat.screen and "none yet" in seat.screen


@pytest.mark.parametrize("width", [1, 7, 20, 79])
def test_wrapped_text_loses_nothing_and_fits(width: int) -> None:
    wide = "\u4f60\u597d\u4e16\u754c\u4f60\u597d"
    words = f"the quick brown fox\njumps over {wide} averyveryverylongword\n\n  indented"
    whole, pieces = Wrapped(width), Wrapped(width)
    whole.feed(words, "text")
    for character in words:
        pieces.feed(character, "text")
    lines = ["".join(text for text, _ in line) for line in whole.lines]
    assert lines == ["".join(text for text, _ in line) for line in pieces.lines], "however it came"
    assert all(cell_len(line) <= max(2, width) for line in lines)
    assert "".join("".join(lines).split()) == "".join(words.split())
    if width >= 20:
        assert any("averyveryverylongword"[:20] in line for line in lines), "words stay whole"


def test_wrapped_text_is_bounded() -> None:
    text = Wrapped(10, max_lines=50, max_pieces=100)
    for i in range(1000):
        text.feed(f"line {i}\n", "text")
    assert len(text.lines) == 50
    assert text.line(text.end - 2) == [("line 999", "text")] and text.line(text.begin - 1) == []
    text.rewrap(5)
    assert len(text.lines) <= 50


@pytest.mark.parametrize("glyphs", [COLOUR, ASCII])
async def test_the_head_says_where_it_is_cut(glyphs: Glyphs) -> None:
    label = replace(opened(FakeEngine()).label, name="A model of a long name, " * 2, emulated=True)
    async with console(glyphs=glyphs, label=label) as seat:
        for width, is_cut in ((80, True), (200, False)):
            await seat.pilot.resize_terminal(width, 24)
            await seat.play(300)
            head = seat.screen.split("\n")[0]
            assert (f"{glyphs.ellipsis}  EMULATED" in head) == is_cut
            assert ("context 4096" in head) != is_cut and "live" in head


@pytest.mark.parametrize("glyphs", [COLOUR, MONO, ASCII])
def test_a_lane_is_drawn_with_the_legends_characters_whatever_its_height(glyphs: Glyphs) -> None:
    for state in LaneState:
        for height in (1, 2, 3):
            assert glyphs.lane(state, height - 1, height) == glyphs.lane(state, 0, 1), state
            assert all(
                glyphs.lane(state, row, height) in (" ", glyphs.lane(state, 0, 1)) for row in range(height)
            )


async def test_a_layer_alone_is_named_as_one() -> None:
    for width, alone in ((80, " 1 11 "), (120, " stage 1  layer 11 ")):
        label = opened(FakeEngine()).label
        stages = tuple(
            replace(stage, first_layer=i, last_layer=i) for i, stage in enumerate(label.stages, start=10)
        )
        async with console(size=(width, 40), label=replace(label, stages=stages)) as seat:
            await seat.play(1000)
            assert alone in seat.screen and "11-11" not in seat.screen
            await seat.press("y", ms=300)
            assert "(layer 1" in seat.screen and "11-11" not in seat.screen
