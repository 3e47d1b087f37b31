"""Why it takes as long as it does: the bottleneck, what to flip, where each stage's time went, the bounds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from strata_tui.terminal_text import layers
from strata_tui.tui.glyphs import COLOUR, Glyphs
from strata_tui.tui.page_panel import Line, PagePanel, Part

if TYPE_CHECKING:
    from strata_tui.analysis.why import Why
    from strata_tui.tui.frame import StageLabel

PARTS = {
    "run": ("run", "run"),
    "commit": ("cmt", "commit"),
    "undo": ("undo", "undo"),
    "idle_hand_off": ("hand", "hand-off"),
    "idle_verdict": ("verd", "verdict"),
    "idle_draft": ("draft", "draft"),
    "idle_undo": ("undo", "undo"),
    "idle_host": ("host", "host"),
    "idle_no_work": ("none", "no work"),
}
"""In the order of analysis.why.PARTS, short and in full."""
_ALWAYS = ("run", "idle_hand_off", "idle_verdict", "idle_host")
_FULL_NAMES_FROM = 120  # cells
LABEL_WIDTH = 9
LEAST_BAR = 18  # cells; columns of the least weight make room for it


class WhyPanel(PagePanel):
    """Lines that change a few times a second at most: they are for reading."""

    PREFIX = "why"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"why--{part.replace('_', '-')}" for part in PARTS} | {
        "why--title",
        "why--dim",
        "why--value",
        "why--finding",
        "why--to-do",
    }

    def __init__(self, glyphs: Glyphs = COLOUR, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._why: Why | None = None
        self._stages: tuple[StageLabel, ...] = ()
        self._flips: tuple[str, ...] = ()
        self._modelled = ""
        self._goes_on = False

    def show(
        self,
        why: Why | None,
        stages: tuple[StageLabel, ...],
        flips: tuple[str, ...] = (),
        modelled: str = "",
        goes_on: bool = False,
    ) -> None:
        """Draw this.

        Args:
            flips: what each switch gave, a line each, the newest first.
            modelled: what each switch is predicted to give.
            goes_on: the rest is of a frozen moment, while flips are still measured.
        """
        self._why, self._stages, self._flips, self._modelled = why, stages, flips, modelled
        self._goes_on = goes_on
        self.tell(list(self._told()))

    def on_resize(self) -> None:
        self.tell(list(self._told()))

    def _told(self) -> Iterator[Line]:
        if self._why is None:
            yield (("dim", " why: waiting for the first windows"),)
            return
        modelled, goes_on = self._modelled, self._goes_on
        yield from lines(
            self._why, self._stages, self._flips, modelled, self.glyphs, self.size.width, goes_on
        )


def lines(
    why: Why,
    stages: Sequence[StageLabel],
    flips: Sequence[str],
    modelled: str,
    glyphs: Glyphs,
    width: int,
    goes_on: bool = False,
) -> Iterator[Line]:
    """The page, the most important first: what it says in a few lines is said in the first few."""
    yield _title(why, width)
    first, *others = why.findings
    yield from _finding(first.text, glyphs, width, "finding")
    yield from _bottleneck(why, stages)
    yield from _table(why, stages, glyphs, width)
    if why.bounds is not None:
        yield from _wrapped("bound", _bounds(why), width)
        yield from _wrapped("path", _path(why), width)
    if why.guesses.built:
        yield from _wrapped("guesses", _guesses(why), width)
    if modelled:
        yield from _wrapped("modelled", modelled, width)
    if others:
        yield ()
        yield (("dim", " also"),)
        for finding in others[:4]:
            yield from _finding(finding.text, glyphs, width, "title")
    if flips:
        yield ()
        yield (("dim", f" what switches gave, measured{', live' if goes_on else ''}"),)
        for flip in flips:
            yield from _wrapped("", flip, width)


def _title(why: Why, width: int) -> Line:
    since = f" since {why.since}" if why.since else ""
    left = f" why: the last {why.seconds:.1f} s, {why.windows} windows{since}"
    right = f"{why.stages_busy:.2f} of {len(why.stages)} stages at work " if len(why.stages) > 1 else ""
    gap = width - len(left) - len(right)
    return (("dim", left), *((("dim", " " * gap + right),) if gap > 1 else ()))


def _finding(text: str, glyphs: Glyphs, width: int, style: str) -> Iterator[Line]:
    for i, line in enumerate(
        textwrap.wrap(text[:1].upper() + text[1:], max(20, width - 4), break_on_hyphens=False)
    ):
        yield ("to-do", f" {glyphs.to_do} " if i == 0 else "   "), (style, line)


def _wrapped(name: str, text: str, width: int) -> Iterator[Line]:
    for i, line in enumerate(textwrap.wrap(text, max(20, width - LABEL_WIDTH - 2), break_on_hyphens=False)):
        yield ("dim", f" {name if i == 0 else '':<{LABEL_WIDTH}}"), ("title", line)


def _bottleneck(why: Why, stages: Sequence[StageLabel]) -> Iterator[Line]:
    runs = [(stage, share) for part, stage, share in why.path if part == "run"]
    if len(stages) < 2 or not runs:
        return
    stage, share = runs[0]
    about = stages[stage]
    text = f" ({layers(about.first_layer, about.last_layer)}), {share:.0%} of the critical path"
    if len(runs) > 1 and share < 1.15 * runs[1][1]:
        text += f", stage {runs[1][0]} close"
    yield ("dim", " bottleneck: "), ("value", f"stage {stage}"), ("title", text)


def _table(why: Why, stages: Sequence[StageLabel], glyphs: Glyphs, width: int) -> Iterator[Line]:
    names = list(PARTS)
    seen = [
        i
        for i, part in enumerate(names)
        if part in _ALWAYS or any(round(100 * shares[i]) for shares in why.stages)
    ]
    full = width >= _FULL_NAMES_FROM
    column = 11 if full else 7
    by_weight = sorted(seen, key=lambda i: -max(shares[i] for shares in why.stages))
    room = (width - LABEL_WIDTH - 2 - LEAST_BAR) // column
    seen = [i for i in seen if i in by_weight[: max(2, room)]]
    bar = max(0, width - LABEL_WIDTH - 2 - column * len(seen))
    head: list[Part] = [("dim", f"{'':{LABEL_WIDTH + 1}}{_bar_head(bar):<{bar}} ")]
    for i in seen:
        name = PARTS[names[i]][full]
        head += [
            ("dim", " " * (column - len(name) - 1)),
            (names[i].replace("_", "-"), glyphs.parts[names[i]]),
            ("dim", name),
        ]
    yield tuple(head)
    for about, shares in zip(stages, why.stages, strict=True):
        line: list[Part] = [("title", f" stage {about.index:<{LABEL_WIDTH - 6}}")]
        line += [
            (name.replace("_", "-"), glyphs.parts[name] * n)
            for name, n in zip(names, cells(shares, bar), strict=True)
            if n
        ]
        line.append(("dim", " "))
        percents = [round(100 * shares[i]) for i in seen]
        line += [("value" if percent else "dim", f"{percent:>{column}}") for percent in percents]
        yield tuple(line)


def _bar_head(width: int) -> str:
    words = ("% at work, then idle by what it waits for", "% work, idle by cause", "%", "")
    return next(text for text in words if len(text) <= width)


def cells(shares: Sequence[float], width: int) -> list[int]:
    """Cells of a bar that are each part's; they sum to `width` (the largest remainders are rounded up)."""
    total = sum(shares) or 1.0
    exact = [width * share / total for share in shares]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: whole[i] - exact[i])
    for i in by_remainder[: width - sum(whole)]:
        whole[i] += 1
    return whole


def _bounds(why: Why) -> str:
    """No kept window, no other depth: the bound of serial decoding is one figure."""
    bounds = why.bounds
    assert bounds is not None
    over = bounds.actual_ms / bounds.same_depth_ms
    text = f"{bounds.actual_ms:.1f} ms/window, {over:.2f} x the least at this depth"
    text += f" ({bounds.same_depth_ms:.1f})"
    if why.guesses.kept:
        over = bounds.actual_ms / bounds.full_depth_ms
        text += f", {over:.2f} x at full depth ({bounds.full_depth_ms:.1f})"
    return text


def _path(why: Why) -> str:
    def word(part: str, stage: int) -> str:
        if part == "run":
            return f"stage {stage}'s run"
        if part == "hand_off":
            return f"hand-off to stage {stage}"
        return {"draft": "draft chain"}.get(part, part)

    return ", ".join(
        f"{share:.0%} {word(part, stage)}" for part, stage, share in why.path[:8] if share >= 0.005
    )


def _guesses(why: Why) -> str:
    g = why.guesses
    kept = f"{g.kept:,} of {g.decided:,} came true" if g.decided else "none decided"
    parts = [f"{g.built:,} built", f"{g.gated:,} gated", f"{g.late:,} late", kept]
    if g.misses:
        parts.append(f"misses: {g.draft_wrong:,} by a draft, {g.bonus_wrong:,} by the bonus alone")
    if g.second_choice_right:
        parts.append(f"{g.second_choice_right:,} second choices were right")
    return ", ".join(parts)
