"""Chat prompts by the model file's own template, in jinja2's sandbox: the template is as untrusted as the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from strata_tui.errors import BadInput

if TYPE_CHECKING:
    from strata_tui.gguf_file import ModelFile
    from strata_tui.tokenizer import Tokenizer

MAX_TEMPLATE = 1 << 18  # characters of a template
MAX_OUTPUT = 1 << 22  # characters of a prompt
MAX_STEPS = 1_000_000  # lines that a rendering may execute: a template can't hang the program

# What a user wrote is set between these while the template runs, so that it can be told from the template's own text
# afterwards: control tokens are read in the latter only.
_OPEN, _CLOSE = "\ue0f0\ue0f1", "\ue0f1\ue0f0"


class ChatTemplate:
    """The template of a model file.

    Raises:
        BadInput: there is none, or it is no template.
    """

    def __init__(self, model: ModelFile, tokenizer: Tokenizer) -> None:
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        source = model.get("tokenizer.chat_template")
        self._file_name = model.file_name
        if not isinstance(source, str):
            raise BadInput(f"[chat] {model.file_name}: expected a tokenizer.chat_template, got none")
        if len(source) > MAX_TEMPLATE:
            raise BadInput(
                f"[chat] {model.file_name}: expected a chat template of {MAX_TEMPLATE} characters at most, "
                f"got {len(source)}"
            )
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._tokenizer = tokenizer
        try:
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise BadInput(f"[chat] {model.file_name}: its chat template can't be read: {_line(error)}") from None
        name = tokenizer.piece
        self._globals = {
            "bos_token": name(tokenizer.bos) if tokenizer.bos is not None else "",
            "eos_token": name(tokenizer.end_tokens[0]) if tokenizer.end_tokens else "",
        }

    def render(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
        """The prompt as text."""
        return self._render(messages, add_generation_prompt).replace(_OPEN, "").replace(_CLOSE, "")

    def encode(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> list[int]:
        """The prompt as token ids; control tokens are read in the template's text, never in a message."""
        marked = [
            {**message, "content": _OPEN + _unmark(message["content"]) + _CLOSE} for message in messages
        ]
        ids: list[int] = []
        inside = False
        # A piece of the template's text beside a message is tokenized with it only where no mark stands between:
        # the marks are cuts, as the control tokens of every known template are.
        for part in self._split(self._render(marked, add_generation_prompt)):
            if part in (_OPEN, _CLOSE):
                inside = part == _OPEN
            elif part:
                ids += self._tokenizer.encode(part, parse_special=not inside, add_bos=False)
        if self._tokenizer.add_bos and self._tokenizer.bos is not None and ids[:1] != [self._tokenizer.bos]:
            ids.insert(0, self._tokenizer.bos)
        return ids

    @staticmethod
    def _split(text: str) -> list[str]:
        parts: list[str] = []
        while text:
            cuts = [(at, mark) for mark in (_OPEN, _CLOSE) if (at := text.find(mark)) >= 0]
            if not cuts:
                return [*parts, text]
            at, mark = min(cuts)
            parts += [text[:at], mark]
            text = text[at + len(mark) :]
        return parts

    def _render(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool) -> str:
        size = 0
        pieces: list[str] = []
        try:
            with _step_limit():
                for piece in self._template.generate(
                    messages=list(messages), add_generation_prompt=add_generation_prompt, **self._globals
                ):
                    size += len(piece)
                    if size > MAX_OUTPUT:
                        raise BadInput(
                            f"[chat] {self._file_name}: expected its chat template to write {MAX_OUTPUT} "
                            "characters at most, got more"
                        )
                    pieces.append(piece)
        except BadInput:
            raise
        except Exception as error:  # a template can raise anything
            raise BadInput(f"[chat] {self._file_name}: its chat template failed: {_line(error)}") from None
        return "".join(pieces)


def _unmark(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:200]


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **_: Any) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)


def _raise(message: str) -> None:
    raise ValueError(message)


class _step_limit:  # noqa: N801 - used as a word of the with statement
    """Counts lines that run in this thread; a template in an endless or huge loop is stopped."""

    def __enter__(self) -> None:
        import sys

        steps = 0

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps > MAX_STEPS:
                raise ValueError(f"it took more than {MAX_STEPS} steps")
            return trace

        self._before = sys.gettrace()
        sys.settrace(trace)

    def __exit__(self, *_: object) -> None:
        import sys

        sys.settrace(self._before)
