"""Streamed text in lines of a width: words stay whole, wide characters count two cells."""

from __future__ import annotations

from collections import deque

from rich.cells import cell_len, get_character_cell_size

Span = tuple[str, str]  # text, style name
TextLine = list[Span]


class Wrapped:
    """Greedy word wrap of styled text that comes in pieces; O(new) a piece, bounded memory.

    Args:
        width: cells a line, at least 1.
        max_lines: lines kept; the oldest go first.
        max_pieces: pieces kept for another width.
    """

    def __init__(self, width: int, max_lines: int = 4000, max_pieces: int = 40_000) -> None:
        self.width = max(1, width)
        self.lines: deque[TextLine] = deque([[]], max_lines)
        self.end = 1  # number of the line after the last one; numbers stay when the oldest lines go
        self._pieces: deque[Span] = deque(maxlen=max_pieces)

    def feed(self, text: str, style: str) -> None:
        """Add text behind what is there; the last line stays open."""
        text = text.expandtabs(4)
        if not text:
            return
        self._pieces.append((text, style))
        self._add(text, style)

    def rewrap(self, width: int) -> None:
        """The same text in lines of another width."""
        if width == self.width:
            return
        self.width = max(1, width)
        self.lines.clear()
        self.end = 0
        self._begin_line([])
        for text, style in self._pieces:
            self._add(text, style)

    def since(self, style: str) -> str:
        """What has come from the last piece of this style on, as it came; all that is kept where none has."""
        pieces = list(self._pieces)
        begin = max((i for i, piece in enumerate(pieces) if piece[1] == style), default=0)
        return "".join(text for text, _ in pieces[begin:])

    @property
    def begin(self) -> int:
        """Number of the oldest line kept."""
        return self.end - len(self.lines)

    def line(self, number: int) -> TextLine:
        """A line by its number; empty where there is none."""
        return self.lines[number - self.begin] if self.begin <= number < self.end else []

    def _begin_line(self, line: TextLine) -> None:
        self.lines.append(line)
        self.end += 1

    def _add(self, text: str, style: str) -> None:
        for i, part in enumerate(text.split("\n")):
            if i:
                self._begin_line([])
            if part:
                self.lines[-1].append((part, style))
                self._fold()

    def _fold(self) -> None:
        """Cut the open line while it is too long: only what lies behind the last cut is looked at again."""
        while cell_len(flat := "".join(text for text, _ in self.lines[-1])) > self.width:
            fits = _fitting(flat, self.width)
            space = flat.rfind(" ", 0, fits + 1)
            cut = space if space > 0 else fits
            if cut == len(flat):
                return  # a single character wider than the line
            head, tail = _split(self.lines[-1], cut)
            self.lines[-1] = head
            self._begin_line(_split(tail, 1)[1] if space > 0 else tail)


def _fitting(text: str, width: int) -> int:
    """How many characters fit into `width` cells; at least one, or nothing would ever move on."""
    cells = 0
    for i, character in enumerate(text):
        cells += get_character_cell_size(character)
        if cells > width:
            return max(1, i)
    return len(text)


def _split(line: TextLine, at: int) -> tuple[TextLine, TextLine]:
    head: TextLine = []
    tail: TextLine = []
    for text, style in line:
        if at > 0 and text[:at]:
            head.append((text[:at], style))
        if text[max(at, 0) :]:
            tail.append((text[max(at, 0) :], style))
        at -= len(text)
    return head, tail
