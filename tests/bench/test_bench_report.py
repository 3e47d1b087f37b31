import hashlib
import json

from tests.bench.fake_runs import REQUEST, TEXT, FakeRunner, arm, run

from strata_tui.bench.interleaved import Results, interleave
from strata_tui.bench.report import Bench, json_object, lines, markdown, settings, table

CONTRACT = {"arms", "identical", "machine", "model_sha256", "emulated"}
OF_ARM = {"name", "switches", "tokens_per_s", "ms_per_window", "tokens_per_window"}


def a_bench(give, rounds: int = 5, names=("serial", "overlap")) -> Bench:
    arms = [arm(name) for name in names]
    results = Results(arms, rounds)
    requests = [REQUEST] * rounds
    for _ in interleave(arms, requests, FakeRunner(give), results):
        pass
    about = {"model": "m.gguf", "model_sha256": "ab" * 32, "arch": "llama", "version": "1.0"}
    machine = {"cpu": "a processor", "cores": 2, "kernels": "avx2", "system": "Linux x86_64"}
    return Bench(about, machine, requests, False, results, load=(0.5, 1.25))


def faster(arm, n):
    return run(8.0 if arm.name == "overlap" else 10.0, kept=2)


def test_the_json_of_the_contract() -> None:
    got = json.loads(json.dumps(json_object(a_bench(faster)), allow_nan=False))
    assert set(got) >= CONTRACT
    assert all(set(one) >= OF_ARM for one in got["arms"])
    rate = got["arms"][1]["tokens_per_s"]
    assert set(rate) == {"median", "min", "max", "runs"}
    assert rate["runs"] == [20 / 0.072] * 5
    against = got["arms"][1]["against_first"]
    assert against["distinguishable"]
    assert against["in_words"] == "faster than serial in 5 of 5 rounds"
    assert got["machine"]["cpu"] == "a processor"
    assert got["load_average"] == {"before": 0.5, "after": 1.25}
    text = "".join(f"{token}\n" for token in TEXT)
    assert got["arms"][0]["tokens_sha256"] == [hashlib.sha256(text.encode()).hexdigest()] * 5


def test_the_claim_carries_what_it_has_to() -> None:
    text = "\n".join(lines(a_bench(faster)))
    for part in (
        "m.gguf, sha256 abababababababab, strata-tui 1.0",
        "a processor, 2 cores, kernels avx2, Linux x86_64; load 0.50 before, 1.25 after",
        "5 of 5 rounds, arms in turn, in one process",
        "10 texts identical",
        "overlap: faster than serial in 5 of 5 rounds, tok/s 1.250 of serial's by round",
        "fresh 8.00 x 40, kept after fresh 4.00 x 10, kept after kept - x 0",
        "kept 10: 50% of guesses decided, 20% of all windows",
    ):
        assert part in text
    assert "emulated" not in text.lower()


def test_emulated_devices_are_named_in_every_line_with_figures() -> None:
    bench = a_bench(lambda arm, n: run(emulated=True, kept=1))
    figures = [line for line in lines(bench) if line.startswith(("serial", "overlap"))]
    assert len(figures) >= 5
    assert all("[emulated]" in line for line in figures)
    assert json_object(bench)["emulated"]
    assert not any("longer to compute" in line for line in lines(bench))


def test_emulated_devices_that_could_not_keep_their_times_are_told_of() -> None:
    bench = a_bench(lambda arm, n: run(emulated=True, programs=40, overruns=n))
    assert json_object(bench)["arms"][0]["overruns"] == {"programs": 200, "overran": 10}
    assert any(
        "serial [emulated]: 10 of 200 programs took longer to compute" in line for line in lines(bench)
    )


def test_markdown() -> None:
    rows = table(a_bench(faster))
    text = markdown(rows)
    assert text[0].count("|") == text[1].count("|") == len(rows[0]) + 1
    assert text[2].startswith("| serial | 9.000 | 2.00 | 222.2 | 1,000 | 1.000 | 1.000 |")


def test_a_bench_cut_short_says_so() -> None:
    bench = a_bench(faster)
    bench.results.runs["overlap"] = bench.results.runs["overlap"][:2]
    got = json_object(bench)
    assert got["interrupted"]
    assert len(got["arms"][1]["against_first"]["tokens_per_s"]["runs"]) == 2
    assert "2 of 5 rounds" in "\n".join(lines(bench))
    bench.results.runs["overlap"] = []
    assert json_object(bench)["arms"][1]["tokens_per_s"]["median"] is None
    assert "overlap: not measured beside serial" in "\n".join(lines(bench))


def test_settings_are_what_a_baseline_has_to_share() -> None:
    bench = a_bench(faster)
    assert set(settings(bench)) <= set(json_object(bench))
