"""A screen as SVG: small, the same wherever it is drawn, a line of the file for each colour and row.

Backgrounds and block characters are shapes; all other characters are text, each run in its own cells.
"""

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual._ansi_theme import DEFAULT_TERMINAL_THEME
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

W, H = 8, 16  # of a cell; an eighth of a block is two
BASE = 12  # where letters stand in it
BLOCKS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
FONTS = "'DejaVu Sans Mono',Menlo,Consolas,monospace"
Look = tuple[str, bool, bool, bool]  # colour, bold, italic, underlined


async def still(app: App, pilot: Pilot[None]) -> None:
    """No cursor blinks."""
    for line in app.screen.query(Input):
        line.cursor_blink = False
        line._cursor_visible = True
    await pilot.pause()


def svg(app: App) -> str:
    """What the app shows now."""
    behind: dict[str, list[str]] = defaultdict(list)  # of a colour: its rectangles
    blocks: dict[str, list[str]] = defaultdict(list)
    looks: dict[Look, str] = {}
    rows: list[str] = []
    width, height = app.size
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        words = []
        for x, text, style in _pieces(strip):
            colour, back = _colours(style)
            behind[back].append(_rectangle(x, H * y, cell_len(text), H))
            look = colour, bool(style.bold), bool(style.italic), bool(style.underline)
            for at, run in _runs(text):
                level = BLOCKS.find(run[0])
                if level > 0 and set(run) == {run[0]}:
                    top = H * y + H - 2 * level
                    blocks[colour].append(_rectangle(x + at, top, len(run), 2 * level))
                else:
                    name = looks.setdefault(look, f"t{len(looks)}")
                    words.append(_text(x + at, y, run, name))
        rows.append("".join(words))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W * width} {H * height}" '
        f'width="{W * width}" height="{H * height}">',
        f"<style>text{{font:13.3px {FONTS}}}{''.join(_rule(*item) for item in looks.items())}</style>",
        *(f'<path fill="{colour}" d="{"".join(paths)}"/>' for colour, paths in sorted(behind.items())),
        *(f'<path fill="{colour}" d="{"".join(paths)}"/>' for colour, paths in sorted(blocks.items())),
        *rows,
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def _pieces(strip: list[Segment]) -> Iterator[tuple[int, str, Style]]:
    """Column, text and style of neighbours of one style."""
    x = 0
    pieces: list[tuple[int, str, Style]] = []
    for text, style, _ in strip:
        style = style or Style()
        if pieces and pieces[-1][2] == style:
            pieces[-1] = pieces[-1][0], pieces[-1][1] + text, style
        elif text:
            pieces.append((x, text, style))
        x += cell_len(text)
    yield from pieces


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Column and characters of what is drawn at once: a block's neighbours, or words a blank apart."""
    run, begin, x = "", 0, 0
    for character in text:
        is_block = BLOCKS.find(character) > 0
        breaks = run and (
            (character == " " and (run[-1] == " " or run[0] in BLOCKS[1:]))
            or (is_block and character != run[0])
            or (run[0] in BLOCKS[1:] and character != run[0])
        )
        if breaks:
            yield begin, run.rstrip()
            run = ""
        if character == " " and not run:
            x += 1
            continue
        if not run:
            begin = x
        run += character
        x += cell_len(character)
    if run.strip():
        yield begin, run.rstrip()


def _colours(style: Style) -> tuple[str, str]:
    colour, back = (_hex(style.color, True), _hex(style.bgcolor, False))
    return (back, colour) if style.reverse else (colour, back)


def _hex(colour: Color | None, is_text: bool) -> str:
    return (colour or Color.default()).get_truecolor(DEFAULT_TERMINAL_THEME, foreground=is_text).hex


def _rectangle(x: int, top: int, cells: int, height: int) -> str:
    return f"M{W * x} {top}h{W * cells}v{height}h-{W * cells}z"


def _text(x: int, y: int, run: str, name: str) -> str:
    where = f'x="{W * x}" y="{H * y + BASE}" textLength="{W * cell_len(run)}"'
    return f'<text class="{name}" {where}>{escape(run, False)}</text>'


def _rule(look: Look, name: str) -> str:
    colour, bold, italic, underlined = look
    rule = f"fill:{colour}" + (";font-weight:700" if bold else "") + (";font-style:italic" if italic else "")
    return f".{name}{{{rule}{';text-decoration:underline' if underlined else ''}}}"
