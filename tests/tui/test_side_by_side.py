"""Two recordings side by side: at a token both runs are where they wrote it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from tests.record.test_comparison import period_ns, run

from strata_tui.record.compare import compare
from strata_tui.record.recording import Recording
from strata_tui.tui.aligned import Aligned
from strata_tui.tui.glyphs import ASCII, COLOUR, Glyphs
from strata_tui.tui.side_by_side import SideBySide

SIZES = [(80, 24), (120, 40), (200, 50)]


def two(folder: Path) -> tuple[Recording, Recording]:
    """Windows of 4 rows against windows of 2, the same text."""
    return run(folder, 40, 4), run(folder, 60, 2, switches={"overlap": False, "draft_max": 1})


@pytest.fixture
def aligned(tmp_path: Path) -> Aligned:
    return Aligned(compare(*two(tmp_path)))


def screen(app: SideBySide) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def test_each_token_is_in_the_window_that_wrote_it(aligned: Aligned) -> None:
    assert aligned.tokens == list(range(aligned.n_tokens))
    for run_ in (aligned.a, aligned.b):
        emitted, token = run_.side.of("emitted").tolist(), 0
        for i, n in enumerate(emitted):
            for k in range(n):
                if token + k >= aligned.n_tokens:
                    break
                at = run_.at(token + k)
                assert (at.first, at.emitted) == (token, n)
                assert at.passed_ms == pytest.approx(run_.side.of("busy_ns")[: i + 1].sum() / 1e6)
            token += n


def test_how_far_apart_they_are_adds_up(aligned: Aligned) -> None:
    for parts in (1, 7, 40):
        lost = aligned.lost_ms(parts)
        assert lost.sum() == pytest.approx(aligned.behind_ms(aligned.n_tokens - 1))
    assert aligned.behind_ms(aligned.n_tokens - 1) == pytest.approx(
        sum(y - x for _, _, x, y in aligned.comparison.blocks())
    )
    assert period_ns(2) < period_ns(4)


def test_u_begins_where_they_differ_most(aligned: Aligned) -> None:
    lost = np.abs(aligned.lost_ms(16))
    order = aligned.most_different(16)
    assert sorted(order) == [aligned.n_tokens * i // 16 for i in range(16)]
    assert order[0] == aligned.n_tokens * int(lost.argmax()) // 16


def test_steps_are_windows_of_a(aligned: Aligned) -> None:
    firsts = [0, *np.cumsum(aligned.a.side.of("emitted")).tolist()]
    assert aligned.step(0, 1) == firsts[1] and aligned.step(0, 3) == firsts[3]
    assert aligned.step(firsts[3], -1) == firsts[2] and aligned.step(0, -1) == 0
    assert aligned.step(aligned.n_tokens - 1, 5) == aligned.n_tokens - 1


async def test_the_keys_move_both_runs_to_one_token(aligned: Aligned) -> None:
    app = SideBySide(aligned)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert (
            "token 1 of" in screen(app)
            and "A: window 1 of" in screen(app)
            and "B: window 1 of" in screen(app)
        )
        await pilot.press("right", "right")
        assert app.token == aligned.step(0, 2)
        a, b = aligned.a.at(app.token), aligned.b.at(app.token)
        assert f"A: window {a.window} of 4 rows" in screen(app)
        assert f"B: window {b.window} of 2 rows" in screen(app)
        assert screen(app).count(f"token {app.token + 1}") == 3, "in the head and as a mark in both lanes"
        for lanes, at in zip(app.lanes, (a, b), strict=True):
            picture = lanes._frame.picture
            column = picture.marks[-1][0]
            shown = picture.t0_ns + column * (picture.t1_ns - picture.t0_ns) // picture.columns
            assert abs(shown - at.end_ns) <= 2 * (picture.t1_ns - picture.t0_ns) // picture.columns
        await pilot.press("end")
        assert app.token == aligned.n_tokens - 1
        apart = f"B is {abs(aligned.behind_ms(app.token)):.1f} ms"
        assert apart in screen(app)
        span = app.span_ns
        await pilot.press("up")
        assert app.span_ns < span
        await pilot.press("down", "home", "u")
        assert app.token == aligned.most_different(16)[0]
        await pilot.press("u", "shift+left", "shift+right", "t", "pagedown", "pageup")
        assert app.theme == "strata-light"
        await pilot.press("q")
    assert app._exit


@pytest.mark.parametrize("size", [*SIZES, (40, 12), (20, 6)])
@pytest.mark.parametrize("glyphs", [COLOUR, ASCII])
async def test_every_line_fills_the_width(aligned: Aligned, size: tuple[int, int], glyphs: Glyphs) -> None:
    app = SideBySide(aligned, glyphs)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("u", "right")
        lines = screen(app).split("\n")
        assert {cell_len(line) for line in lines} == {size[0]}
        if glyphs is ASCII and size in SIZES:
            assert screen(app).isascii()


async def test_hostile_names_and_words_move_nothing(tmp_path: Path) -> None:
    a, b = two(tmp_path)
    a = replace(a, file_name="a\x1b[2J\u202e.strata", vocabulary={i: "w\x07\x1b[1m\n" for i in range(50)})
    app = SideBySide(Aligned(compare(a, b)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = screen(app)
        assert not any(mark in text for mark in ("\x1b", "\x07", "\u202e"))
        assert {cell_len(line) for line in text.split("\n")} == {80}
