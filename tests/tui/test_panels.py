"""What stands in the middle of the screen: text, log, why, the table of windows."""

from tests.tui.console import console
from tests.tui.fake_engine import FakeEngine

from strata_tui.tui.glyphs import COLOUR


async def test_l_shows_the_log_in_place_of_the_text() -> None:
    lines: list[str] = []
    async with console(max_tokens=100, log=lines.append) as seat:
        await seat.play(400)
        await seat.press("l", "w", ms=800)
        assert not seat.app.face.text_panel.display
        assert "verdict w" in seat.app.face.log_panel.text and "chain w" in seat.app.face.log_panel.text
        assert "hand-off stage 0 -> 1" in seat.app.face.log_panel.text
        assert "verdict w" in seat.screen
        await seat.press("pageup", ms=0)
        assert seat.app.face.log_panel._held and not seat.app.face.text_panel._held
        await seat.press("l", ms=100)
        assert seat.app.face.text_panel.display and not seat.app.face.log_panel.display
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
        assert not seat.app.face.text_panel.display
        assert "waits" in seat.screen and "for a verdict: w puts a second window" in seat.screen
        assert "bottleneck: stage" in seat.screen and "ms/window" in seat.screen
        await seat.press("space", ms=0)
        held = seat.app.face.why_panel._lines
        await seat.play(2000)
        assert seat.app.face.why_panel._lines == held, "a frozen view has one explanation"
        await seat.press("space", "w", ms=600)
        assert "since pipeline-windows=2" in seat.screen
        await seat.press("l", ms=100)
        assert seat.app.face.log_panel.display and not seat.app.face.why_panel.display
        await seat.press("y", "y", ms=100)
        assert seat.app.face.text_panel.display and not seat.app.face.why_panel.display


async def test_why_scrolls_where_it_has_no_room() -> None:
    async with console(FakeEngine(stage_ms=(1.0,) * 8), size=(80, 24)) as seat:
        await seat.play(1000)
        await seat.press("y", ms=600)
        assert "path " not in seat.screen
        await seat.press("pagedown", "pagedown", "pagedown", ms=0)
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
        log = seat.app.sitting.view.windows.rows
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


async def test_pages_look_back_in_the_text() -> None:
    async with console(size=(80, 24)) as seat:
        await seat.play(3000)
        end = seat.screen
        await seat.press("pageup", "pageup", ms=0)
        assert seat.screen != end
        await seat.press(*["pagedown"] * 3, ms=0)
        assert not seat.app.face.text_panel._held


async def test_a_frozen_view_keeps_its_figures_and_calls_live_what_goes_on() -> None:
    async with console(FakeEngine(acceptance=0.85), size=(120, 50)) as seat:
        await seat.play(1000)
        await seat.press("w", ms=1500)
        await seat.press("y", "space", ms=300)

        def figures() -> list[str]:
            panel = seat.app.face.figures
            return [panel.render_line(y).text for y in range(panel.size.height)]

        held = figures()
        assert " live, not told apart yet: " in seat.screen
        assert "what switches gave, measured, live" in seat.screen
        await seat.play(1500)
        assert figures() == held
        await seat.press("space", ms=500)
        assert figures() != held
        assert "live, not" not in seat.screen and "measured, live" not in seat.screen
