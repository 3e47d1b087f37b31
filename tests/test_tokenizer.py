"""Tokens from text and back: each pre-tokenizer's rules, control tokens, UTF-8 in pieces, hostile keys."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.reference.gguf_files import spelled, tokenizer_keys, write_model

from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile, embedded_model_path
from strata_tui.tokenizer import PATTERNS, Tokenizer, printable

VECTORS = Path(__file__).parent / "data" / "pebble-Q4_K_M.vectors.json"

LLAMA3 = ("llama-bpe", "llama3", "llama-v3", "falcon3")
QWEN2 = ("qwen2", "deepseek-r1-qwen")
GPT2 = ("gpt-2", "phi-2", "mpt", "olmo")
DIGITS_FIRST = ("smollm", "starcoder", "refact", "command-r")


@pytest.fixture(scope="module")
def pebble() -> Tokenizer:
    return Tokenizer.from_model(ModelFile(embedded_model_path()))


@pytest.fixture
def built(tmp_path: Path) -> Any:
    """A tokenizer of the keys that `tokenizer_keys` makes of its arguments."""

    def build(pre: str, *args: Any, **more: Any) -> Tokenizer:
        return Tokenizer(ModelFile(write_model(tmp_path / "t.gguf", keys=tokenizer_keys(pre, *args, **more))))

    return build


def merges_of(*texts: str) -> list[str]:
    """Merges that make one token of each text, letter by letter from the left."""
    made: dict[str, None] = {}
    for text in map(spelled, texts):
        for i in range(1, len(text)):
            made[f"{text[:i]} {text[i]}"] = None
    return list(made)


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.piece(token) for token in tokenizer.encode(text, add_bos=False)]


@pytest.mark.parametrize("prompt", json.loads(VECTORS.read_text())["prompts"], ids=lambda p: p["name"])
def test_the_embedded_model_agrees_with_its_oracle(pebble: Tokenizer, prompt: dict[str, Any]) -> None:
    assert pebble.encode(prompt["text"], parse_special=True) == prompt["ids"]
    visible = [token for token in prompt["ids"] if token not in pebble.end_tokens]
    assert pebble.decode(prompt["ids"]) == (prompt["text"] if visible else "")


@pytest.mark.parametrize("pre", PATTERNS)
def test_every_rule_gives_the_text_back(built: Any, pre: str) -> None:
    tokenizer = built(pre, merges_of("the", " the", "12"))
    rng = random.Random(pre)
    alphabet = "the 12'sS\t\n\r .,é́हिन्दी東京🙂\x00\u3000\x85"
    for length in (0, 1, 2, 7, 200):
        text = "".join(rng.choice(alphabet) for _ in range(length))
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_numbers(built: Any) -> None:
    for pre in LLAMA3:
        assert pieces(built(pre, merges_of("12345", "45")), "12345") == ["123", "45"]  # groups of three
    merges = merges_of(" 12345")
    for pre in (*QWEN2, "qwen35", *DIGITS_FIRST):
        assert pieces(built(pre, merges), "12345") == ["1", "2", "3", "4", "5"]
    for pre in GPT2:
        assert pieces(built(pre, merges), " 12345") == [" 12345"]


def test_the_default_cuts_in_four_passes(built: Any) -> None:
    merges = merges_of("1234567", "456", " a", "a!", "!?", "$", " $", "ab7", "b7")
    for tokenizer in (built("default", merges), built(None, merges)):
        assert pieces(tokenizer, "1234567") == ["123", "456", "7"]  # three digits, from the left
        assert pieces(tokenizer, "ab7") == ["ab", "7"]  # numbers apart from words
        assert pieces(tokenizer, " a!?") == [" a", "!?"]  # punctuation first
        assert pieces(tokenizer, " $") == [" ", "$"]  # and these signs with it, the space without


def test_falcon_and_deepseek_coder(built: Any) -> None:
    merges = merges_of("`a", "a`", "1234", "\n\n", " ab", "\tab", "12")
    assert pieces(built("falcon", merges), "`a") == ["`", "a"]
    assert pieces(built("falcon", merges), "1234") == ["123", "4"]
    coder = built("deepseek-coder", merges)
    assert pieces(coder, "12\n\n ab\tab") == ["1", "2", "\n", "\n", " ab", "\tab"]


def test_many_names_are_found_in_a_long_text_at_once(built: Any) -> None:
    names = [f"<{i}>" for i in range(5000)]
    tokenizer = built("qwen2", user_defined=names, control=["<|end|>"])
    begin = time.monotonic()
    assert len(tokenizer.encode("<" * 50_000 + "<77>")) == 50_001
    assert tokenizer.muted("<" * 50_000 + "<|end|>", "\0").count("\0") == 1
    assert time.monotonic() - begin < 10  # a tenth of a second; an alternation of all names takes minutes


def test_words(built: Any) -> None:
    merges = merges_of("(word", " word", "wórd".replace("ó", "o\u0301"), "x\n\n", "'Ve", " .\n")
    combined = "wo\u0301rd"
    for pre in (*LLAMA3, *QWEN2, "qwen35"):
        assert pieces(built(pre, merges), "(word") == ["(word"]  # one sign before a word belongs to it
        assert pieces(built(pre, merges), "I'Ve")[1:] == ["'Ve"]  # contractions in capitals too
        assert pieces(built(pre, merges), " .\n")[-1] == " .\n"  # line ends stay with punctuation
    for pre in (*GPT2, *DIGITS_FIRST):
        assert pieces(built(pre, merges), "(word")[0] == "("
        assert pieces(built(pre, merges), "I'Ve")[1] == "'"
        assert pieces(built(pre, merges), "a word")[-1] == " word"
    assert pieces(built("qwen35", merges), combined) == [combined]  # marks are part of words
    assert pieces(built("qwen2", merges), combined) != [combined]


def test_a_whole_word_of_the_vocabulary_wins_in_llama3_only(built: Any) -> None:
    for pre in LLAMA3:
        assert pieces(built(pre, words=["zebra"]), "zebra") == ["zebra"]
        assert pieces(built(pre, control=["zebra"]), "zebra") == list("zebra")  # a control token is no word
    for pre in ("gpt-2", "qwen2", "smollm"):
        assert pieces(built(pre, words=["zebra"]), "zebra") == list("zebra")


def test_bos(built: Any) -> None:
    special = {"control": ["<s>", "</s>"], "bos_token_id": 257, "eos_token_id": 258}
    assert built("llama-bpe", **special).encode("a")[:1] == [257]  # by default
    assert built("gpt-2", **special).encode("a")[:1] != [257]
    assert built("gpt-2", add_bos_token=True, **special).encode("a")[:1] == [257]
    assert built("llama-bpe", add_bos_token=False, **special).encode("") == []
    assert built("llama-bpe", **special).encode("", add_bos=True) == [257]
    assert built("llama-bpe", **special).encode("a", add_bos=False)[:1] != [257]
    assert built("llama-bpe", control=["<s>"], bos_token_id=999).bos is None  # out of range


def test_control_tokens_are_read_only_when_asked_to(built: Any) -> None:
    tokenizer = built("qwen2", control=["<|im_end|>", "<|im_end|><"], user_defined=["<think>"])
    end, longer, think = 257, 258, 259
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [end]
    assert tokenizer.encode("a<|im_end|><", parse_special=True)[1:] == [longer]  # the longest
    assert end not in tokenizer.encode("<|im_end|>")
    assert tokenizer.encode("<think>") == [think]
    assert tokenizer.decode([end, think, end]) == "<think>"
    assert tokenizer.piece(end) == "<|im_end|>"


def test_muted_text_holds_no_control_token(built: Any) -> None:
    tokenizer = built("qwen2", control=["<|im_end|>", "aba", "bab", "<<", "c"])
    mark = "\U000f0000"
    special = set(range(257, 262))
    for text in ("<|im_end|>", "x<|im_end|>y", "ababab", "<<<<", "<<|im_end|>>", "ccc", "", "plain"):
        muted = tokenizer.muted(text, mark)
        assert muted.replace(mark, "") == text
        ids = tokenizer.encode(muted, parse_special=True, drop=mark)
        assert not special & set(ids)
        assert tokenizer.decode(ids) == text
    for head in ("<", "<|im_", "<|im_end|", "ab", "x<<|im_en"):  # nor one that what follows would complete
        ids = tokenizer.encode(tokenizer.muted(head, mark) + "|im_end|>ba<", parse_special=True, drop=mark)
        assert 257 not in ids[: len(head)]
        ids = tokenizer.encode(tokenizer.muted("<|im_", mark) + "end|>", parse_special=True, drop=mark)
        assert not special & set(ids)


def test_end_tokens(built: Any) -> None:
    tokenizer = built("qwen2", control=["<|endoftext|>", "<|im_end|>", "<|other|>"], eos_token_id=259)
    assert tokenizer.end_tokens == [257, 258, 259]
    assert tokenizer.eos == 259
    # A name without the type of a control token is text like any other.
    assert built("qwen2", words=["<|im_end|>"]).end_tokens == []


def test_streamed_text_is_the_whole_text(pebble: Tokenizer) -> None:
    text = "naïve 東京 🙂👩‍👩‍👧 \u0301 end"
    ids = pebble.encode(text)
    decoder = pebble.decoder()
    parts = [decoder.feed([token]) for token in ids]
    assert "".join(parts) + decoder.flush() == text
    assert "\ufffd" not in "".join(parts)


def test_broken_utf8_becomes_replacements(built: Any) -> None:
    tokenizer = built("gpt-2")
    half = list("東".encode()[:2])  # the first 256 tokens are the bytes in order
    decoder = tokenizer.decoder()
    assert decoder.feed(half) == ""
    assert decoder.flush() == "\ufffd"
    decoder = tokenizer.decoder()
    assert decoder.feed(half) + decoder.feed([ord("a"), 0xFF]) + decoder.feed([ord("b")]) == "\ufffda\ufffdb"
    assert tokenizer.decode([*half, 0xB1, 0xFF]) == "東\ufffd"


def test_ids_out_of_range_write_nothing(pebble: Tokenizer) -> None:
    assert pebble.decode([-1, pebble.n_vocab, 1 << 40]) == ""
    assert pebble.piece(pebble.n_vocab) == ""


def test_lone_surrogates_are_no_crash(pebble: Tokenizer) -> None:
    assert pebble.decode(pebble.encode("a\udcffb")) == "a?b"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"model": "bert"}, "expected tokenizer.ggml.model gpt2 (byte-level BPE) or llama (SPM), got bert"),
        ({"model": [1]}, "or llama (SPM), got [1]"),
        ({"model": "llama"}, "expected an array of floats at tokenizer.ggml.scores"),
        ({"pre": "new\x1b[0mone"}, "got new[0mone"),
        ({"pre": 7}, "default, llama-bpe, llama3"),
        ({"tokens": [1, 2]}, "expected an array of strings at tokenizer.ggml.tokens"),
        ({"tokens": "text"}, "key tokenizer.ggml.tokens is no array"),
        ({"token_type": [1, 2]}, "expected 257 entries in tokenizer.ggml.token_type, got 2"),
        ({"token_type": ["a"]}, "expected integers in tokenizer.ggml.token_type"),
        ({"merges": ["ab"]}, "expected merges of two parts, got 'ab'"),
        ({"merges": ["q q"]}, "expected merges of the vocabulary's tokens, got 'q q'"),
        # The tokenizers package would panic: the product is longer than every token.
        ({"merges": ["t h", "th e"]}, "expected merges of the vocabulary's tokens, got 'th e'"),
    ],
)
def test_bad_keys_are_refused(tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    keys = tokenizer_keys("gpt-2") | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    with pytest.raises(BadInput) as error:
        Tokenizer(ModelFile(write_model(tmp_path / "t.gguf", keys=keys))).encode("a")
    assert line in str(error.value)
    assert "\x1b" not in str(error.value)


def test_printable_leaves_nothing_that_moves_a_cursor() -> None:
    assert printable("a\tb\r\nc\rd\x1b[31m\x9b1m\x00\x7f\x85e") == "a    b\ncd[31m1me"
    assert printable("a\u202eb\u2066c\u200bd\ufeffe\u00adf\U000e0041g") == "abcdefg"
    assert printable("a\u2028b\nc") == "a\nb\nc"
    assert printable("a\nb", newlines=False) == "a b"
    assert printable("naïve 東京 🙂 e\u0301") == "naïve 東京 🙂 e\u0301"
    every = printable("".join(map(chr, range(0x110000))))
    assert not [c for c in every if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)]
    every.encode()  # no lone surrogates
