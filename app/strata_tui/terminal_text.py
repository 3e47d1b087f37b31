"""Text fit for a terminal: what comes from outside, counts, sizes."""

import re

# C0 and C1 controls, DEL; marks that turn or hide text: bidirectional controls, zero-width characters and
# joiners, BOM, soft hyphen, interlinear annotation, invisible tags; lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile("\r\n|[\u2028\u2029]")


def counted(number: int, noun: str) -> str:
    """`1 text`, `2,000 texts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def layers(first: int, last: int) -> str:
    """`layers 0-5`, `layer 11`."""
    return f"layer{'s' if last > first else ''} {span(first, last)}"


def span(first: int, last: int) -> str:
    """`0-5`, or `11` where that is all."""
    return f"{first}-{last}" if last > first else f"{first}"


def printable(text: str, newlines: bool = True) -> str:
    """A model's or a file's text, fit for a terminal: nothing in it can move a cursor, colour or hide.

    Args:
        newlines: keep line feeds (tabs become spaces); else a line feed becomes a space too.
    """
    text = _UNSAFE.sub("", _LINE_ENDS.sub("\n", text).replace("\t", "    "))
    return text if newlines else text.replace("\n", " ")


def size(n_bytes: float | None) -> str:
    """`12.3 MiB`; a dash where it is not known."""
    if n_bytes is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if n_bytes < 1000:
            return f"{n_bytes:.{1 if unit == 'MiB' else 0}f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"
