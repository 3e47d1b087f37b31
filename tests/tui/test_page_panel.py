"""A page that has more lines than rows scrolls, and says so."""

from tests.tui.console import console, until_open
from tests.tui.fake_engine import FakeEngine


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
