"""As many stages as there can be, one layer each: the text and the state stay plain decoding's."""

from pathlib import Path
from typing import Any

from reference.random_models import Shape, random_tensors, write_model
from strata_tui import Engine

STAGES = 32  # a bit a stage in the engine's sets
SHAPE = Shape(
    "qwen35", n_layers=STAGES, n_embd=64, n_heads=2, n_kv_heads=1, head_dim=32, n_rot=16, n_ff=64,
    n_vocab=256, state_size=16,
)  # fmt: skip
PROMPT, TOKENS = list(range(20)), 60


def text_and_state(engine: Engine) -> tuple[list[int], dict[str, Any], dict[str, Any]]:
    session = engine.session()
    text = list(session.generate(PROMPT, max_tokens=TOKENS, ignore_eos=True))
    state = session.fingerprint()
    return text, {name: state[name] for name in ("length", "layers")}, session.stats()


def test_windows_on_every_stage(tmp_path: Path) -> None:
    write_model(tmp_path / "random.gguf", SHAPE, random_tensors(SHAPE, "F32"))
    with Engine.open(tmp_path / "random.gguf", stages=1, draft="none") as engine:
        plain, state, _ = text_and_state(engine)
    with Engine.open(
        tmp_path / "random.gguf",
        stages=STAGES,
        devices=["even:0.3"] * STAGES,  # long enough that guesses are launched
        pipeline_max=STAGES,
        draft="replay:0.85",
        draft_max=3,
        theta=0.0,
    ) as engine:
        assert [stage.last_layer for stage in engine.stages] == list(range(STAGES))
        for windows, overlap in ((0, True), (STAGES, True)):
            engine.set_switches({"pipeline_windows": windows, "overlap": overlap})
            got, its_state, stats = text_and_state(engine)
            assert (got, its_state) == (plain, state), (windows, overlap)
            if windows:
                assert stats["guesses"]["kept"] > 5
                assert stats["guesses"]["rolled_back"] > 5
                assert stats["undone"] > STAGES
                assert sum(stats["kept_at_depth"][2:]) > 0  # behind other guesses
