"""SPM tokenizers: merges by score as the algorithm has them, spaces, bytes, hostile keys."""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.reference.gguf_files import write_model
from tests.reference.sentencepiece import SPACE, ids_of, sentencepiece_keys

from strata_tui.errors import BadInput
from strata_tui.gguf_file import ModelFile
from strata_tui.tokenizer import Tokenizer

LETTERS = {letter: -1000.0 - i for i, letter in enumerate(f"{SPACE}abcdehlorwt東")}
WORDS = {
    f"{SPACE}he": -1.0,
    "ll": -2.0,
    "he": -3.0,
    "lo": -5.0,
    f"{SPACE}hell": -6.0,
    SPACE * 2: -7.0,
}
BOS = 257 + len(LETTERS | WORDS)  # the first control token


@pytest.fixture
def built(tmp_path: Path) -> Any:
    def build(scores: dict[str, float] | None = None, **more: Any) -> Tokenizer:
        keys = sentencepiece_keys(LETTERS | WORDS if scores is None else scores, **more)
        return Tokenizer(ModelFile(write_model(tmp_path / "t.gguf", keys=keys)))

    return build


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer._tokens[token] for token in tokenizer.encode(text, add_bos=False)]


def test_the_best_score_merges_first(built: Any) -> None:
    assert pieces(built(), "hello") == [f"{SPACE}hell", "o"]  # "lo" comes after "ll" has taken the l
    assert pieces(built(), "lo") == [SPACE, "lo"]
    assert pieces(built(add_space_prefix=False), "hello") == ["he", "ll", "o"]


def test_spaces_are_letters(built: Any) -> None:
    tokenizer = built()
    assert pieces(tokenizer, " he") == [SPACE, f"{SPACE}he"]  # -1 beats -7
    assert tokenizer.decode(tokenizer.encode("he  he", add_bos=False)) == " he  he"
    assert tokenizer.encode("", add_bos=False) == []
    without = built(add_space_prefix=False)
    assert without.decode(without.encode("he  he", add_bos=False)) == "he  he"


def test_a_space_stands_before_the_text_after_each_special_token(built: Any) -> None:
    tokenizer = built(control=["<s>", "</s>"], user_defined=["<go>"])
    encode, he = tokenizer.encode, 257 + len(LETTERS)  # with its space
    assert encode("<s>he<go>he", parse_special=True, add_bos=False) == [BOS, he, BOS + 2, he]
    assert BOS not in encode("<s>he", add_bos=False)
    assert tokenizer.decode(encode("<s>he", add_bos=False)) == " <s>he"


def test_what_no_token_spells_becomes_bytes(built: Any) -> None:
    tokenizer = built(add_space_prefix=False)
    assert pieces(tokenizer, "a€\n") == ["a", "<0xE2>", "<0x82>", "<0xAC>", "<0x0A>"]
    assert tokenizer.decode(tokenizer.encode("a€\n🙂", add_bos=False)) == "a€\n🙂"
    assert pieces(tokenizer, "<0x0A>")[0] == "<0x3C>"  # the name of a byte token is text like any other
    decoder = tokenizer.decoder()
    parts = [decoder.feed([token]) for token in tokenizer.encode("東€", add_bos=False)]
    assert parts == ["東", "", "", "€"]


def test_bos_is_put_first_unless_the_file_says_otherwise(built: Any) -> None:
    special = {"control": ["<s>"], "bos_token_id": BOS}
    assert built(**special).encode("a")[0] == BOS
    assert built(add_bos_token=False, **special).encode("a")[0] != BOS


def test_any_text_is_cut_as_the_algorithm_says(built: Any) -> None:
    rng = random.Random(6)
    for round in range(30):
        alphabet = SPACE + "abcd"
        scores = {letter: -1e4 for letter in alphabet}
        while len(scores) < 60:
            first, second = rng.choices(list(scores), k=2)
            scores.setdefault(first + second, -float(len(scores)))
        tokenizer = built(scores, add_space_prefix=round % 2 == 0)
        ids = {token: i for i, token in enumerate(tokenizer._tokens)}
        for length in (1, 2, 3, 10, 60):
            text = "".join(rng.choices(" abcd€", k=length))
            prefix = " " if round % 2 == 0 else ""
            assert tokenizer.encode(text, add_bos=False) == ids_of(prefix + text, scores, ids)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"scores": [1, 2]}, "expected an array of floats at tokenizer.ggml.scores"),
        ({"scores": [1.0]}, "expected 276 entries in tokenizer.ggml.scores, got 1"),
        ({"token_type": [1]}, "expected 276 entries in tokenizer.ggml.token_type, got 1"),
    ],
)
def test_bad_keys_are_refused(tmp_path: Path, changes: dict[str, Any], line: str) -> None:
    keys = sentencepiece_keys(LETTERS | WORDS)
    keys |= {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    with pytest.raises(BadInput) as error:
        Tokenizer(ModelFile(write_model(tmp_path / "t.gguf", keys=keys)))
    assert line in str(error.value)


def test_without_bytes_an_unknown_token_is_needed(tmp_path: Path) -> None:
    keys = sentencepiece_keys(LETTERS | WORDS)
    keys["tokenizer.ggml.tokens"][1] = "<0xZZ>"
    model = write_model(tmp_path / "t.gguf", keys=keys)
    tokenizer = Tokenizer(ModelFile(model))
    assert tokenizer.encode("\x00a", add_bos=False)[1] == 0
    assert tokenizer.token_bytes(1) == b"<0xZZ>"
    del keys["tokenizer.ggml.unknown_token_id"]
    with pytest.raises(BadInput, match=r"expected a token for every byte .* got none for byte 0x00"):
        Tokenizer(ModelFile(write_model(model, keys=keys)))
