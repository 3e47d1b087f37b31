"""Themes."""

import pytest
from tests.tui.console import console

from strata_tui.tui.themes import THEMES


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
