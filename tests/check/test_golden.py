"""A new build's serial text is the last one's."""

from collections.abc import Iterator

import pytest
from tests.proofs.golden import TEXTS, N, decode, plain_engine, read

from strata_tui import Engine, Sampling

GOLDEN = read()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with plain_engine() as engine:
        if engine.stages[0].numerics != GOLDEN["numerics"]:
            pytest.skip(
                f"made with {GOLDEN['numerics']}; this machine's kernels: {engine.stages[0].numerics}"
            )
        yield engine


def test_the_golden_texts_are_of_this_model(engine: Engine) -> None:
    assert engine.model.sha256 == GOLDEN["model_sha256"]
    assert {name: text["prompt"] for name, text in GOLDEN["texts"].items()} == {
        name: prompt for name, (prompt, _) in TEXTS.items()
    }


@pytest.mark.parametrize("name", TEXTS)
def test_the_serial_text_is_the_golden_one(engine: Engine, name: str) -> None:
    golden = GOLDEN["texts"][name]
    assert engine.tokens_of(golden["prompt"]) == golden["prompt_ids"]
    assert len(golden["token_ids"]) == N
    assert decode(engine, golden["prompt_ids"], Sampling(**golden["sampling"])) == golden["token_ids"]
