"""Chat prompts by the model file's own template, in jinja2's sandbox: it is as untrusted as the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from strata_tui.errors import BadInput
from strata_tui.tokenizer import printable

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from strata_tui.gguf_file import ModelFile
    from strata_tui.tokenizer import Tokenizer

MAX_TEMPLATE = 1 << 18  # characters of a template
MAX_OUTPUT = 1 << 22  # characters of a prompt
MAX_STEPS = 1_000_000  # lines that a rendering may execute: a template can't hang the program
MAX_MEMORY = 512 << 20  # bytes that a rendering may take beside what the process has

# What a family's template writes, by the family's name; the first that fits.
_MARKS = {
    "llama3": "<|start_header_id|>",
    "chatml": "<|im_start|>",
    "mistral": "[INST]",
    "gemma": "<start_of_turn>",
    "command-r": "<|START_OF_TURN_TOKEN|>",
    "deepseek": "<\uff5cUser\uff5c>",
    "harmony": "<|channel|>",
    "phi": "<|end|>",
    "zephyr": "<|user|>",
}

Messages = Sequence[Mapping[str, str]]


def template_family(source: str) -> str:
    """The family whose marks a template writes; "other" where none is known."""
    return next((name for name, mark in _MARKS.items() if mark in source), "other")


class ChatTemplate:
    """The template of a model file.

    Raises:
        BadInput: there is none, or it is no template.
    """

    def __init__(self, model: ModelFile, tokenizer: Tokenizer) -> None:
        self._file_name = model.file_name
        source = model.text("tokenizer.chat_template")
        if source is None:
            raise BadInput(f"[chat] {model.file_name}: expected a tokenizer.chat_template, got none")
        if len(source) > MAX_TEMPLATE:
            raise BadInput(
                f"[chat] {model.file_name}: expected a chat template of {MAX_TEMPLATE} characters at most, "
                f"got {len(source)}"
            )
        self._source = source
        self._tokenizer = tokenizer
        try:
            with _memory_limit():
                self._template = _environment().from_string(source)
        except Exception as error:  # the compiler also computes what is constant in it
            raise BadInput(
                f"[chat] {model.file_name}: its chat template can't be read: {_line(error)}"
            ) from None
        self._variables = {
            "bos_token": "" if tokenizer.bos is None else tokenizer.piece(tokenizer.bos),
            "eos_token": "" if tokenizer.eos is None else tokenizer.piece(tokenizer.eos),
            "tools": None,
            "documents": None,
        }

    @property
    def has_thinking_switch(self) -> bool:
        return "enable_thinking" in self._source

    def render(
        self, messages: Messages, add_generation_prompt: bool = True, thinking: bool | None = None
    ) -> str:
        """The prompt as text.

        Args:
            thinking: whether the model should think first, where its template has a switch for that
                (enable_thinking); None: as the template has it.

        Raises:
            BadInput: the template refuses the messages, fails, or takes too long or too much.
        """
        size = 0
        pieces: list[str] = []
        try:
            with _memory_limit(), _step_limit():
                for piece in self._template.generate(
                    messages=[dict(message) for message in messages],
                    add_generation_prompt=add_generation_prompt,
                    **self._variables,
                    **({} if thinking is None else {"enable_thinking": thinking}),
                ):
                    size += len(piece)
                    if size > MAX_OUTPUT:
                        raise ValueError(f"it writes more than {MAX_OUTPUT} characters")
                    pieces.append(piece)
        except Exception as error:  # a template can raise anything
            raise BadInput(f"[chat] {self._file_name}: its chat template failed: {_line(error)}") from None
        return "".join(pieces)

    def encode(
        self, messages: Messages, add_generation_prompt: bool = True, thinking: bool | None = None
    ) -> list[int]:
        """The prompt as token ids; control tokens are read in the template's own text only.

        In messages their names are split by a mark until the control tokens have been found; it is then taken
        out, so that text and template are cut into tokens together.

        Raises:
            BadInput: as `render`.
        """
        mark = self._unused_character(messages)
        muted = [{**m, "content": self._tokenizer.muted(m["content"], mark)} for m in messages]
        text = self.render(muted, add_generation_prompt, thinking)
        ids = self._tokenizer.encode(text, parse_special=True, add_bos=False, drop=mark)
        bos = self._tokenizer.bos
        if self._tokenizer.add_bos and bos is not None and ids[:1] != [bos]:
            ids.insert(0, bos)  # a template that does not write it itself
        return ids

    def _unused_character(self, messages: Messages) -> str:
        """A private-use character that stands neither in the messages nor in the template."""
        used = set(self._source).union(*(message["content"] for message in messages))
        return next(c for c in map(chr, range(0xF0000, 0x110000)) if c not in used)


def _environment() -> ImmutableSandboxedEnvironment:
    """jinja2 as chat templates expect it (transformers' apply_chat_template), sandboxed."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**"])  # one step of them can take forever

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = [abs(n) for n in (left, right) if isinstance(n, (int, float))]
            if len(numbers) == 2 and (max(numbers) > 2**31 or (operator == "**" and numbers[1] > 32)):
                raise ValueError(f"{operator} of such large numbers")
            return super().call_binop(context, operator, left, right)

    environment = Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    del environment.globals["lipsum"]
    return environment


def _line(error: BaseException) -> str:
    text = " ".join(printable(str(error), newlines=False).split())
    return text[:200] or type(error).__name__


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Without the HTML escapes of jinja2's own."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> None:
    raise ValueError(message)


@contextmanager
def _step_limit() -> Iterator[None]:
    """Counts the lines that run in this thread: a template in a huge loop is stopped."""
    steps = 0

    def trace(frame: Any, event: str, arg: Any) -> Callable[..., Any]:
        nonlocal steps
        steps += 1
        if steps > MAX_STEPS:
            raise ValueError(f"it takes more than {MAX_STEPS} steps")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _memory_limit() -> Iterator[None]:
    """Lets the process grow by MAX_MEMORY, no further: a text doubled forty times becomes a MemoryError.

    Where the system can't limit a process, or does not say how large it is, there is no limit.
    """
    try:
        import resource

        with open("/proc/self/statm") as statm:
            size_bytes = int(statm.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limits = [n for n in (soft, hard, size_bytes + MAX_MEMORY) if n != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
