"""The schedule that the engine records keeps the rules of the reference in every arm, whatever the clock."""

from pathlib import Path

import pytest

from reference.recorded import recorded
from reference.schedule_rules import broken_commits, broken_rules
from strata_tui import Engine

MODEL = Path(__file__).parent / "data/oracles/micro-qwen35-friendly.gguf"
PROMPT, TOKENS = [1, 2, 3], 96


@pytest.fixture(scope="module")
def text() -> list[int]:
    with Engine.open(MODEL, draft="none") as engine:
        return list(engine.session().generate(PROMPT, max_tokens=TOKENS, ignore_eos=True))


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("chain_ahead", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_windows_commits_and_fates(stages: int, chain_ahead: bool, overlap: bool, text: list[int]) -> None:
    """On devices whose programs last: otherwise all guesses of so small a model would come too late."""
    with Engine.open(
        MODEL,
        devices=["even:1"] * stages,
        pipeline_max=stages,
        draft="replay:0.85",
        draft_max=3,
        theta=0.0,
        chain_ahead=chain_ahead,
        overlap=overlap,
    ) as engine:
        for windows in (0, *range(2, stages + 1)):
            for settings in ({"spec_depth": 32, "force_miss": 0}, {"spec_depth": 1, "force_miss": 3}):
                engine.set_switches({"pipeline_windows": windows, **settings})
                engine.events()
                session = engine.session()
                session.start(PROMPT, max_tokens=TOKENS, replay=text)
                session.to_the_end()
                assert session.tokens == PROMPT + text
                recording = recorded(engine.events())
                assert broken_rules(recording.windows, max(1, windows) - 1, overlap) == [], settings
                assert broken_commits(recording) == [], settings
                guesses = session.stats()["guesses"]
                fates = [window.fate for window in recording.windows if window.fate != "fresh"]
                assert guesses["built"] == len(fates) and "guess" not in fates
                assert guesses["kept"] == sum(window.kept for window in recording.windows)
                for fate in ("gated", "late", "rolled back", "ended"):
                    assert guesses[fate.replace(" ", "_")] == fates.count(fate)
