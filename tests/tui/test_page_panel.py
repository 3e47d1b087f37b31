"""A page that has more lines than rows scrolls, and says so."""

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from tests.tui.console import console, until_open
from tests.tui.fake_engine import FakeEngine

from strata_tui.tui.about import About, StageAbout
from strata_tui.tui.glyphs import ASCII, COLOUR, Glyphs
from strata_tui.tui.window_table import _cut


async def test_why_of_four_stages_loses_no_line_at_80x24() -> None:
    engine = FakeEngine(stage_ms=(2.0, 2.5, 2.0, 5.0), acceptance=0.85)
    engine.switches.pipeline_windows = 4
    async with console(engine, size=(80, 24)) as seat:
        await seat.play(1500)
        await seat.press("y", ms=300)
        await seat.press("space", ms=0)
        panel = seat.app.face.why_panel
        lines = ["".join(text for _, text in line).rstrip() for line in panel._lines]
        assert len(lines) > panel.size.height, "or this tests nothing"
        left = len(lines) - panel.room
        assert f"{left} more below: pgdn" in panel.render_line(panel.size.height - 1).text
        seen: list[str] = []
        for _ in range(10):
            seen += [panel.render_line(y).text.rstrip() for y in range(panel.room)]
            if "below" not in panel.render_line(panel.size.height - 1).text:
                break
            await seat.press("pagedown", ms=0)
        assert set(lines) <= set(seen)
        assert "more above: pgup" in panel.render_line(panel.size.height - 1).text
        await seat.pilot.resize_terminal(200, 60)
        await seat.pilot.pause()
        assert "more" not in panel.render_line(panel.size.height - 1).text


async def test_a_remapped_key_is_the_one_that_is_told() -> None:
    from tests.tui.fake_model import opened, opening

    from strata_tui.tui.app import Console

    app = Console(opening(opened(FakeEngine())), auto_refresh=False, keys={"look-on": "f8"})
    async with app.run_test(size=(80, 12)) as pilot:
        await until_open(app, pilot)
        assert app.face.why_panel.page_keys == ("pgup", "f8")
    app.close()


@pytest.mark.parametrize("glyphs", [COLOUR, ASCII], ids=["colour", "ascii"])
async def test_a_line_that_is_cut_says_so_in_every_panel(glyphs: Glyphs) -> None:
    long = About((), (StageAbout("0-5", "4 gdn, " * 30), StageAbout("6", "short")))
    engine = FakeEngine(acceptance=0.85)
    engine.switches.pipeline_windows = 2
    async with console(engine, size=(80, 24), glyphs=glyphs, about=lambda: long) as seat:
        await seat.play(1500)
        await seat.press("a", ms=100)
        panel = seat.app.face.model_panel
        cut, whole = (panel.render_line(y).text for y in (2, 4))
        assert len(cut) == 80 and cut.endswith(glyphs.ellipsis) and "short" in whole
        assert glyphs.ellipsis not in whole
        for key in "yvla":
            await seat.press(key, ms=100)
            (panel,) = (panel for panel in seat.app.face.panels.all if panel.display)
            for length, ends in ((80, False), (81, True)):
                text = panel.strip([Segment("x" * (length - 1)), Segment("y"), Segment("  ")]).text
                assert len(text) == 80 and text.endswith(glyphs.ellipsis) == ends


@pytest.mark.parametrize("mark", ["…", "..."])
def test_drafts_fill_their_column_and_say_that_they_are_cut(mark: str) -> None:
    for words in (["ab", "cde"], ["ab", "cdef"], ["ab", "cdefg", "h"], ["日本語日本語"], []):
        parts = list(_cut((("value", f"{word} ") for word in words), 7, mark))
        text, whole = "".join(part for _, part in parts), " ".join(words)
        assert cell_len(text) == 7
        assert text.endswith(mark) == (cell_len(whole) > 7)
        assert text.rstrip() == whole or text.endswith(mark)
