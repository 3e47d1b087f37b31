"""Text after text: which prompt is next, what has come, when it ends."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from strata_tui.errors import StrataError

if TYPE_CHECKING:
    from strata_tui.record.recorder import Recorder
    from strata_tui.tui.opened import Decoder, Opened

Piece = tuple[str, str]  # text, style of the text panel

PROMPTS = (
    "The lighthouse keeper had not spoken to anyone for three weeks when, on the morning of the storm,",
    'def median(values):\n    """Return the middle value of a list of numbers."""\n',
    '"You may laugh," said the old captain, filling his pipe, "but I tell you that the house on the hill',
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n",
    "It was a cold, bright evening in November, and the train from London was an hour late. In the corner",
    "import argparse\nimport json\n\n\ndef main():\n    parser = argparse.ArgumentParser(description=",
    "Once upon a time there was a poor miller who had three daughters, and the youngest of them",
    "def read_config(path):\n    with open(path) as f:\n        for line in f:\n",
)
"""Openings in which the embedded model is at its best: prose and code, as it was trained on."""

CHAT_PROMPTS = (
    "Tell me a short story about a lighthouse keeper.",
    "Write a Python function that returns the median of a list, and explain it.",
    "What are three good things to do on a rainy day?",
    "Explain in a few sentences why the sky is blue.",
    "Write a polite letter that asks a neighbour to be quieter at night.",
    "List five animals and say where each of them lives.",
)
"""For models with a chat template."""


class Texts:
    """Writes one text after another on one session at a time, until told to stop.

    A prompt that a person gave comes first: it ends the text being written at a token, and after it the
    built-in prompts go on. Nothing here waits: `pump` is called at every refresh.
    """

    def __init__(self, opened: Opened) -> None:
        self.n_started = 0
        self.stopped = False
        self.chat = opened.chat  # the next prompt goes in by the chat template
        self.error = ""  # of the request that ended last
        self.ended: dict[str, Any] | None = None  # counters of a request that has just ended
        self._opened = opened
        self._given: deque[str] = deque()
        self._next_prompt = 0
        self._decoder: Decoder | None = None
        self._session = opened.engine.session()
        self._recorder: Recorder | None = None
        self._request: tuple[Any, ...] = ()  # that is being written: its prompt's tokens, prompt, sampling
        self._n_read = 0  # tokens of it that have been read
        self._written = ""  # their text

    def record_to(self, recorder: Recorder | None) -> None:
        """From now on; a text that is being written is recorded from where it is. None: no more."""
        self._recorder = recorder
        if recorder is not None and self.running:
            tokens, prompt, sampling = self._request
            now = self._opened.engine.now_ns()
            emitted = self._session.tokens[len(tokens) : len(tokens) + self._n_read]
            recorder.begin(now, tokens, prompt, sampling, self._opened.max_tokens, emitted)
            recorder.wrote(now, (), self._written)

    @property
    def n_tokens(self) -> int:
        """Of the prompt and of the text as far as it has been read; 0 = none is being written."""
        return len(self._request[0]) + self._n_read if self.running else 0

    @property
    def running(self) -> bool:
        """A text is being written."""
        return self._decoder is not None

    @property
    def prompts(self) -> tuple[str, ...]:
        """Those to go through."""
        return self._opened.chat_prompts if self.chat else self._opened.prompts

    def give(self, prompt: str) -> None:
        """Write on this prompt as soon as the present text can end."""
        self._given.append(prompt)
        self.stopped = False
        if self.running:
            self._session.cancel()

    def skip(self) -> None:
        """End the present text and go on with the next prompt."""
        self.stopped = False
        if self.running:
            self._session.cancel()

    def stop(self) -> None:
        """End the present text at a token and start no other."""
        self.stopped = True
        self._given.clear()
        if self.running:
            self._session.cancel()

    def pump(self) -> list[Piece]:
        """What has come since the last call; starts the next text when one has ended."""
        from strata_tui.tokenizer import printable  # not before the first paint

        pieces: list[Piece] = []
        if self._decoder is not None:
            ended = not self._session.running  # looked at before reading: nothing comes after it
            tokens = self._session.read()
            text = self._decoder.feed(tokens)
            if ended:
                text += self._decoder.flush()
            pieces.append((text, "text"))
            self._record(tokens, text, ended)
            if ended:
                pieces.append((f"\n{ending(self._session.finish)}\n\n", "note"))
                self._decoder = None
                self.ended = self._session.stats()
                self._settle()
        if self._decoder is None and not self.stopped:
            pieces += self._start()
        return [(printable(text), style) for text, style in pieces if text]

    def _record(self, tokens: list[int], text: str, ended: bool) -> None:
        self._n_read += len(tokens)
        self._written += text
        if self._recorder is None:
            return
        now = self._opened.engine.now_ns()
        self._recorder.wrote(now, tokens, text)
        if ended:
            self._recorder.end(now, self._session.finish, self._session.error, self._session.stats())

    def _settle(self) -> None:
        """After an error the session is over; the engine takes a new one."""
        if self._session.finish == "error":
            self.error = self._session.error
            self.stopped = True
            self._session = self._opened.engine.session()

    def _start(self) -> list[Piece]:
        opened = self._opened
        if self._given:
            prompt = self._given.popleft()
        else:
            prompt = self.prompts[self._next_prompt % len(self.prompts)]
            self._next_prompt += 1
        self.error = ""
        try:
            tokens = opened.encode(prompt, self.chat)
            sampling = opened.sampling(self.n_started)
            begun_ns = opened.engine.now_ns()
            self._session.start(tokens, opened.max_tokens, sampling, opened.end_tokens)
        except StrataError as error:
            self.error, self.stopped = str(error), True
            return [(prompt, "prompt"), ("\n[not begun]\n\n", "note")]
        self._decoder = opened.decoder()
        self._request, self._n_read, self._written = (tokens, prompt, sampling), 0, ""
        if self._recorder is not None:
            self._recorder.begin(begun_ns, tokens, prompt, sampling, opened.max_tokens)
        self.n_started += 1
        return [(prompt, "prompt")]


def ending(finish: str) -> str:
    """How a text ended, in words."""
    return {
        "stop": "[the text ended]",
        "length": "[as long as asked for]",
        "context": "[the context is full]",
        "cancel": "[ended by you]",
        "error": "[failed]",
    }.get(finish, f"[{finish}]")
