import copy
import json
from pathlib import Path

import pytest
from tests.bench.fake_runs import run
from tests.bench.test_bench_report import a_bench, faster

from strata_tui.bench.baseline import changes, per_cent, read_baseline, refuse_unlike
from strata_tui.bench.figures import figures
from strata_tui.bench.report import json_object, lines, settings
from strata_tui.errors import BadInput


@pytest.fixture
def former() -> dict:
    return json.loads(json.dumps(json_object(a_bench(faster))))


def test_the_same_again_is_accepted(former: dict) -> None:
    refuse_unlike(former, settings(a_bench(faster)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.update(model_sha256="00"), "model_sha256"),
        (lambda f: f["machine"].update(cores=4), "machine"),
        (lambda f: f.pop("machine"), "machine"),
        (lambda f: f["arms"].pop(), "arms"),
        (lambda f: f["arms"].reverse(), "arms"),
        (lambda f: f["arms"][1]["asked"]["placement"].update(kv="f32"), "overlap had other options: kv f16"),
        (lambda f: f["arms"][0].update(asked=3), "serial had other options"),
        (lambda f: f["prompt"].update(sha256="00"), "prompt"),
        (lambda f: f.update(max_tokens=1), "max_tokens"),
        (lambda f: f.update(fresh=True), "fresh"),
    ],
)
def test_another_bench_is_refused_with_the_reason(former: dict, change, said: str) -> None:
    change(former)
    with pytest.raises(BadInput, match=said):
        refuse_unlike(former, settings(a_bench(faster)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"{}",
        b"\xff\x00",
        b"[" * 100_000,
        b'{"arms": []}',
        b'{"arms": {"a": 1}}',
        b'{"arms": [{"tokens_per_s": 3}]}',
        b'{"arms": [{"tokens_per_s": {"median": NaN}}]}',
    ],
)
def test_what_is_no_bench_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "former.json"
    file.write_bytes(data)
    with pytest.raises(BadInput, match="expected the output of bench --json"):
        read_baseline(file)


def test_a_loss_above_the_limit_fails(former: dict) -> None:
    slower = a_bench(lambda arm, n: run({"serial": 10.2, "overlap": 8.4}[arm.name], kept=2))
    slower.changes = changes(former, figures(slower.results))
    assert [round(c.share, 4) for c in slower.changes] == [round(10 / 10.2 - 1, 4), round(8 / 8.4 - 1, 4)]
    assert not slower.failed, "no limit was given"
    slower.fail_above = 0.03
    assert [c.name for c in slower.too_slow] == ["overlap"]
    assert slower.failed
    text = "\n".join(lines(slower))
    assert "overlap: 4.8% slower than the baseline" in text
    assert "TOO SLOW: overlap, more than 3.0% below the baseline" in text
    again = copy.copy(slower)
    again.fail_above = 0.05
    assert not again.failed


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), ("3", 0.03), (" 0.5 % ", 0.005), ("0", 0.0)])
def test_shares(text: str, share: float) -> None:
    assert per_cent(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "x", "-1", "100%", "nan"])
def test_no_shares(text: str) -> None:
    with pytest.raises(BadInput, match="--fail-above"):
        per_cent(text)
