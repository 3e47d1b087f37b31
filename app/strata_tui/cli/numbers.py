"""Numbers of options, which say what was expected."""

from __future__ import annotations

import re
from typing import Any

import click


class Whole(click.IntRange):
    """A whole number in decimal digits, within a range; Python alone takes `1_0` and digits of any script."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]{1,20}\s*", value):
            self.fail(f"expected a whole number, {self._describe_range()}, got {value[:60]!r}", param, ctx)
        return super().convert(value, param, ctx)
