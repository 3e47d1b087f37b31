import numpy as np
import pytest

from strata_tui.bench.one_run import Request
from strata_tui.events import EVENT_DTYPE, Kind, WindowFate
from strata_tui.gguf_file import ModelFile, embedded_model_path
from strata_tui.options import DeviceChoice, Placement
from strata_tui.plan.measuring import common_rows, probe, stage_ms


def events(*rows: dict) -> np.ndarray:
    found = np.zeros(len(rows), EVENT_DTYPE)
    for i, row in enumerate(rows):
        for name, value in row.items():
            found[name][i] = value
    return found


def run(stage: int, rows: int, ms: float, prompt: bool = False) -> dict:
    return {"kind": Kind.run, "stage": stage, "rows": rows, "dur_ns": int(ms * 1e6), "b": prompt}


def test_times_of_stages_by_hand() -> None:
    found = events(
        *(run(0, 5, ms) for ms in (1, 2, 3, 4, 9)), run(0, 5, 50, prompt=True), run(0, 3, 70), run(1, 5, 6)
    )
    assert stage_ms(found, 3, 5, 0.5) == (3.0, 6.0, 0.0)
    assert stage_ms(found, 3, 5, 0.25) == (2.0, 6.0, 0.0)


def test_most_windows_have_these_rows() -> None:
    window = {"kind": Kind.window, "b": WindowFate.fresh}
    prompt = {"kind": Kind.window, "b": WindowFate.prompt, "rows": 8}
    found = events(*({**window, "rows": rows} for rows in (5, 3, 5, 5, 3)), *(prompt for _ in range(9)))
    assert common_rows(found) == 5
    assert common_rows(found[:0]) == 0


def test_layers_are_timed_once_a_device() -> None:
    model = ModelFile(embedded_model_path())
    request = Request(tokens=(5, 9, 200, 31), max_tokens=16)
    one, other = DeviceChoice("even", 1), DeviceChoice("cpu", 1)
    one = DeviceChoice.parse("even:2")
    found = probe(model, Placement(context=256), [other, one, other], request)
    assert found[0] is found[2]
    assert [len(times.layer_ms) for times in found] == [model.n_layers] * 3
    assert all(ms > 0 for ms in found[0].layer_ms)
    assert found[0].tail_ms > max(found[0].layer_ms), "the head reads the most"
    assert min(found[1].layer_ms) == pytest.approx(2.0, rel=0.5), "a stage of an even device lasts 2 ms"
