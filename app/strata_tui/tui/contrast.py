"""How well a text is told apart from what is behind it."""

from __future__ import annotations

Triplet = tuple[int, int, int]  # red, green, blue: 0 to 255


def contrast(a: Triplet, b: Triplet) -> float:
    """The ratio of WCAG 2 (relative luminances, each with 0.05 of stray light): 1 to 21; text wants 4.5."""
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Triplet) -> float:
    parts = [part / 255 for part in colour]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
