"""The texts of a recording, as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from strata_tui.tui.texts import Piece, ending

if TYPE_CHECKING:
    from strata_tui.record.playback import Playback
    from strata_tui.record.recording import Request


MOST_PIECES = 2000  # shown at a time: behind a leap far on, what a panel would keep of them


class _Cue(NamedTuple):
    at_ns: int
    text: str
    style: str
    n_tokens: int = 0
    begins: bool = False
    ended: Request | None = None


class PlayedTexts:
    """What `Texts` is for a model, for a recording: the face is the same, but nothing can be asked for.

    A text that has been written in part when the recording begins is shown from there.
    """

    def __init__(self, tape: Playback) -> None:
        self.n_started = 0
        self.running = False
        self.n_tokens = 0  # of the prompt and of the text that has come
        self.stopped = False  # the recording has been played to its end
        self.error = ""
        self.ended: dict[str, Any] | None = None
        self._tape = tape
        cues = [cue for request in tape.recording.requests for cue in _cues(request)]
        self._cues = sorted(cues, key=lambda cue: cue.at_ns)
        self._next = 0

    def skip(self) -> None:
        """On to the next text."""
        self._tape.skip()

    def record_to(self, recorder: object) -> None:
        """A recording is not recorded again."""

    def pump(self) -> list[Piece]:
        """What has come since the last call."""
        from strata_tui.tokenizer import printable  # not before the first paint

        now = self._tape.now_ns()
        pieces: list[Piece] = []
        begin = self._next
        while self._next < len(self._cues) and self._cues[self._next].at_ns <= now:
            self._next += 1
        for cue in self._cues[begin : self._next]:
            pieces.append((cue.text, cue.style))
            self.n_tokens = cue.n_tokens if cue.begins else self.n_tokens + cue.n_tokens
            if cue.begins:
                self.n_started, self.running, self.error = self.n_started + 1, True, ""
            if cue.ended is not None:
                self.running, self.error, self.ended = False, cue.ended.error, cue.ended.stats
        if self._tape.ended and not self.stopped:
            self.stopped, self.running = True, False
            note = self._tape.recording.note
            pieces.append(("\n[the recording ends here" + (f": {note}" if note else "") + "]\n", "note"))
        return [(printable(text), style) for text, style in pieces[-MOST_PIECES:] if text]


def _cues(request: Request) -> list[_Cue]:
    n_begun = len(request.prompt_tokens) + len(request.emitted)
    cues = [_Cue(request.begin_ns, request.prompt, "prompt", n_begun, begins=True)]
    cues += [_Cue(piece.at_ns, piece.text, "text", len(piece.tokens)) for piece in request.pieces]
    if request.end_ns is not None:
        cues.append(_Cue(request.end_ns, f"\n{ending(request.finish)}\n\n", "note", ended=request))
    return cues
