"""Columns that the widgets of the console share, so that what belongs together lies in one line."""

from textual.widget import Widget


def label_width(widget: Widget) -> int:
    """Cells of the names at the left."""
    return 9 if widget.screen.has_class("-narrow") else 24
