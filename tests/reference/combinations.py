"""Which combinations of a table's columns some of its rows have: by sets of values, as one would by hand."""

from collections.abc import Sequence
from typing import Any

Row = Sequence[Any]
Group = tuple[int, ...]  # columns whose values are looked at together


def missing(
    chosen: Sequence[Row], rows: Sequence[Row], groups: Sequence[Group]
) -> tuple[int, list[tuple[Any, ...]]]:
    """How many combinations occur in `rows`, and those of them that don't occur in `chosen`."""
    columns, chosen_columns = list(zip(*rows, strict=True)), list(zip(*chosen, strict=True))
    total, absent = 0, []
    for group in groups if rows else ():
        wanted = set(zip(*(columns[column] for column in group), strict=True))
        got = set(zip(*(chosen_columns[column] for column in group), strict=True)) if chosen else set()
        total += len(wanted)
        absent += sorted(wanted - got, key=str)
    return total, absent
