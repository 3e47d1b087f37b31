"""Fuzzes what builds a tokenizer from a file's keys: build_tokenizer.py RUNS [SEED]

Keys are mutated, not bytes (the reader has its own fuzzer): a seeded mutator, guided by the lines of the
tokenizer's modules that follow one another. A tokenizer is built or refused in one line; one that was built
encodes any text to ids in range, and decoding never fails. Exit code 1 and the keys on stderr at the first
that does otherwise.
"""

import random
import sys
import time
from typing import Any

import numpy as np
from tests.reference.gguf_files import tokenizer_keys
from tests.reference.sentencepiece import SPACE, sentencepiece_keys

from strata_tui import byte_level, spm, tokenizer, vocabulary
from strata_tui.errors import BadInput
from strata_tui.tokenizer import Tokenizer

WATCHED = {module.__file__ for module in (byte_level, spm, tokenizer, vocabulary)}
PREFIX = "tokenizer.ggml."
TEXTS = ("the <|im_end|> 12\n<think>", "é \x00東 </s><|im_")
WORDS = (
    "",
    " ",
    "a",
    "the",
    "<|im_end|>",
    "</s>",
    "<0x0A>",
    "<0xZZ>",
    SPACE,
    f"{SPACE}the",
    "東",
    "a b",
)
NUMBERS = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 257, 1 << 31, (1 << 63) - 1)


class Keys:
    """A model file as the tokenizer sees it, of a dictionary."""

    file_name = "fuzz.gguf"

    def __init__(self, keys: dict[str, Any]) -> None:
        self._keys = keys

    def get(self, key: str, default: Any = None) -> Any:
        value = self._keys.get(key, default)
        if isinstance(value, (list, np.ndarray)):  # short arrays come as lists, long ones only when asked for
            return list(value) if len(value) <= 64 else default
        return value

    def text(self, key: str) -> str | None:
        value = self.get(key)
        return value if isinstance(value, str) else None

    def array(self, key: str) -> Any:
        value = self._keys.get(key)
        if value is None:
            return None
        if not isinstance(value, (list, np.ndarray)):
            raise BadInput(f"[gguf] fuzz.gguf: key {key} is no array")
        return value

    def array_length(self, key: str) -> int:
        found = self.array(key)
        return 0 if found is None else len(found)


def small(keys: dict[str, Any]) -> dict[str, Any]:
    """Without the bytes that the texts don't hold: many more executions a second."""
    used = {*"".join(TEXTS)}
    kept = [
        i
        for i, token in enumerate(keys[f"{PREFIX}tokens"])
        if (len(token) > 1 and not token.startswith("<0x")) or token in used
    ]
    for name in ("tokens", "token_type", "scores"):
        if values := keys.get(f"{PREFIX}{name}"):
            keys[f"{PREFIX}{name}"] = [values[i] for i in kept]
    return keys


def corpus() -> list[dict[str, Any]]:
    """Small tokenizers of every kind, in the types that the native reader gives."""
    special = {"control": ["<|im_end|>", "</s>"], "user_defined": ["<think>"], "bos_token_id": 3}
    merges = ["t h", "th e", "1 2"]
    found = [
        small(tokenizer_keys(pre, merges, **special))
        for pre in (None, "qwen2", "llama-bpe", "smollm", "deepseek-coder")
    ]
    letters = {letter: -100.0 - i for i, letter in enumerate(f"{SPACE}abeht")}
    scores = letters | {"th": -1.0, "the": -2.0, f"{SPACE}the": -3.0}
    found.append(small(sentencepiece_keys(scores, ["</s>"], ["<think>"])))
    found.append(sentencepiece_keys(letters, ["</s>"]))
    for keys in found:
        for name, kind in (("token_type", np.int32), ("scores", np.float32)):
            if f"{PREFIX}{name}" in keys:
                keys[f"{PREFIX}{name}"] = np.array(keys[f"{PREFIX}{name}"], kind)
    return found


def any_value(rng: random.Random) -> Any:
    return rng.choice(
        [
            rng.choice(WORDS),
            rng.choice(NUMBERS),
            rng.random() < 0.5,
            float("nan"),
            [],
            [[1], [2]],
            [rng.choice(WORDS)],
            np.array([rng.choice((0, 3, 6))], np.int32),
            np.zeros(3, np.float32),
            rng.choice(WORDS).encode("utf-8", "replace"),
        ]
    )


def change_list(value: list[Any], rng: random.Random, other: Any) -> list[Any]:
    if not value or not isinstance(value[0], (str, bytes)):  # arrays of a file hold one kind of thing
        return [rng.choice(WORDS)]
    value = list(value)
    at = rng.randrange(len(value) + 1)
    match rng.randrange(7):
        case 0:
            value.insert(at, rng.choice(WORDS))
        case 1 if value:
            value[at % len(value)] = rng.choice(WORDS)
        case 2 if value:
            del value[at % len(value) :][: rng.choice((1, 1, 5))]
        case 3 if value:
            value[at % len(value)] = rng.choice(value)  # one token twice
        case 4 if value:
            word = str(value[at % len(value)])
            cut = rng.randrange(len(word) + 1)
            value[at % len(value)] = word[:cut] + rng.choice(WORDS) + word[cut:]
        case 5 if value:
            value[at % len(value)] = b"\xff\xfe"
        case _ if isinstance(other, list) and other and isinstance(other[0], (str, bytes)):
            value[at:at] = rng.choices(other, k=2)
    return value


def change(keys: dict[str, Any], rng: random.Random, other: dict[str, Any]) -> dict[str, Any]:
    keys = dict(keys)
    for _ in range(1 << rng.randrange(3)):
        name = rng.choice([*keys, *other, f"{PREFIX}eot_token_id", f"{PREFIX}add_space_prefix"])
        value = keys.get(name)
        match rng.randrange(8):
            case 0:
                keys[name] = any_value(rng)
            case 1:
                keys.pop(name, None)
            case 2:
                keys[name] = other.get(name)
                if keys[name] is None:
                    del keys[name]
            case _ if isinstance(value, list):
                keys[name] = change_list(value, rng, other.get(name))
            case _ if isinstance(value, np.ndarray) and len(value):
                value = value.copy()
                value[rng.randrange(len(value))] = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, -1))
                keys[name] = value
            case _ if isinstance(value, str):
                keys[name] = rng.choice((*byte_level.PATTERNS, "llama", "gpt2", "bert", ""))
            case _ if isinstance(value, int):
                keys[name] = rng.choice(NUMBERS)
    return keys


def check(keys: dict[str, Any]) -> None:
    """Builds and uses the tokenizer of these keys; raises whatever is no refusal in one line."""
    try:
        built = Tokenizer(Keys(keys))  # type: ignore[arg-type]
        muted = built.muted(TEXTS[0], "\0")
        for ids in (*map(built.encode, TEXTS), built.encode(muted, True, drop="\0")):
            assert all(0 <= token < built.n_vocab for token in ids), ids
            built.decode(ids)
    except BadInput as refused:
        assert "\n" not in str(refused) and len(str(refused)) < 2000, refused
        return
    assert all(0 <= token < built.n_vocab for token in built.end_tokens)
    built.decode(range(-1, built.n_vocab + 1))


class Coverage:
    """Pairs of lines of the watched modules that ran one after the other."""

    def __init__(self) -> None:
        self.edges: set[tuple[str, int, int]] = set()

    def run(self, keys: dict[str, Any]) -> bool:
        """Checks the keys; True if they reached something new."""
        edges = self.edges
        n = len(edges)

        def line(frame: Any, event: str, arg: Any) -> Any:
            code = frame.f_code
            last = 0

            def follow(frame: Any, event: str, arg: Any) -> Any:
                nonlocal last
                edges.add((code.co_name, last, frame.f_lineno))
                last = frame.f_lineno
                return follow

            return follow if code.co_filename in WATCHED else None

        sys.settrace(line)
        try:
            check(keys)
        finally:
            sys.settrace(None)
        return len(edges) > n


def main(runs: str, seed: str = "1") -> int:
    n_runs, rng = int(runs), random.Random(int(seed))
    coverage, kept = Coverage(), corpus()
    for keys in kept:
        coverage.run(keys)
    late = last = 0
    begin = time.perf_counter()
    for i in range(1, n_runs + 1):
        keys = change(rng.choice(kept if rng.random() < 0.5 else kept[-16:]), rng, rng.choice(kept))
        try:
            fresh = coverage.run(keys)
        except BaseException as error:  # a panic of the package is no Exception
            print(f"execution {i}: {type(error).__name__}: {error}\n{keys}", file=sys.stderr)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        if fresh:
            kept.append(keys)
            last, late = i, late + (i > n_runs - n_runs // 10)
    seconds = time.perf_counter() - begin
    print(
        f"tokenizer: {n_runs} executions in {seconds:.0f} s, {n_runs / seconds:.0f} a second; "
        f"{len(coverage.edges)} edges, {len(kept)} inputs kept; the last new one at execution {last}, "
        f"{late} in the last tenth; no crash"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
