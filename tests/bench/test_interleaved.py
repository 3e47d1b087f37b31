from dataclasses import replace

from tests.bench.fake_runs import REQUEST, TEXT, FakeRunner, arm, run

from strata_tui.bench.arms import Arm
from strata_tui.bench.figures import figures
from strata_tui.bench.interleaved import Results, interleave
from strata_tui.bench.one_run import Run


def bench(runner: FakeRunner, arms, requests=(REQUEST,) * 3) -> Results:
    results = Results(arms, len(requests))
    for _ in interleave(arms, requests, runner, results):
        pass
    return results


def test_arms_take_turns() -> None:
    runner = FakeRunner(lambda arm, n: run())
    results = bench(runner, [arm("a"), arm("b")])
    assert [name for name, _ in runner.log] == ["a", "b"] * 3
    assert results.identical
    assert results.compared == 5
    assert not results.interrupted


def test_a_difference_names_arm_round_and_index() -> None:
    other = (*TEXT[:7], 5, *TEXT[8:])
    results = bench(
        FakeRunner(lambda arm, n: run(tokens=other if (arm.name, n) == ("b", 1) else TEXT)),
        [arm("a"), arm("b")],
    )
    assert results.identical is False
    assert results.differences == ["b, round 2: token 7 is 5, expected 107 (of a, round 1)"]


def test_a_text_that_ends_early_differs() -> None:
    results = bench(
        FakeRunner(lambda arm, n: run(tokens=TEXT[:-1] if arm.name == "b" else TEXT)),
        [arm("a"), arm("b")],
        [REQUEST],
    )
    assert results.differences == ["b, round 1: 19 tokens, expected 20 (of a, round 1)"]


def test_a_full_context_is_no_difference() -> None:
    """Whichever comes first: what it has is compared; the longest text is what others are held against."""
    room = {"small": 64, "large": 256, "larger": 512}
    lengths = {"small": 12, "large": 20, "larger": 20}

    def give(arm: Arm, n: int) -> Run:
        finish = "context" if arm.name == "small" else "length"
        return run(tokens=TEXT[: lengths[arm.name]], finish=finish, context=room[arm.name])

    for names in (("small", "large", "larger"), ("larger", "small", "large"), ("large", "larger", "small")):
        results = bench(FakeRunner(give), [arm(name) for name in names])
        assert results.identical is True and results.differences == [] and results.cut_short == {64: 12}
    lengths["larger"] = 19  # not cut off by its context
    results = bench(FakeRunner(give), [arm("small"), arm("large"), arm("larger")], [REQUEST])
    assert results.differences == ["larger, round 1: 19 tokens, expected 20 (of large, round 1)"]


def test_within_a_full_context_the_tokens_count() -> None:
    other = (*TEXT[:7], 5, *TEXT[8:12])

    def give(arm: Arm, n: int) -> Run:
        return run(tokens=other, finish="context", context=64) if arm.name == "small" else run()

    results = bench(FakeRunner(give), [arm("a"), arm("small")], [REQUEST])
    assert results.differences == ["small, round 1: token 7 is 5, expected 107 (of a, round 1)"]
    short = FakeRunner(lambda arm, n: run(tokens=TEXT[: 12 - n], finish="context", context=64))
    assert bench(short, [arm("a")]).identical is False, "of one context, one length"


def test_texts_of_other_cells_kernels_or_prompts_are_not_compared() -> None:
    texts = {"a": TEXT, "f32": TEXT[::-1], "portable": TEXT[3:]}
    kernels = {"portable": ("portable",) * 4}
    runner = FakeRunner(lambda arm, n: run(tokens=texts[arm.name], backend=kernels.get(arm.name, ("fma16",))))
    results = bench(runner, [arm("a"), arm("f32", kv="f32"), arm("portable")])
    assert results.identical
    assert results.compared == 6, "each with its own first text"
    assert [f.other_text for f in figures(results)] == [False, True, True]
    prompts = [replace(REQUEST, tokens=(n,)) for n in range(3)]
    assert bench(FakeRunner(lambda arm, n: run(tokens=(n,) * 9)), [arm("a")], prompts).identical is None


def test_a_replayed_text_is_computed_once() -> None:
    runner = FakeRunner(lambda arm, n: run())
    bench(runner, [arm("a"), arm("b", draft="replay:0.5"), arm("c", kv="f32", draft="replay:0.5")])
    assert [replay for name, replay in runner.log if name == "a"] == [(), (), ()]
    assert [replay for name, replay in runner.log if name == "b"] == [TEXT] * 3, "arm a has it already"
    assert [replay for name, replay in runner.log if name == "c"] == [(), TEXT, TEXT], "of its own cells"


def test_a_load_that_comes_and_goes_cancels_in_the_ratio() -> None:
    load = [1.0, 3.0, 1.2, 2.0, 5.0]
    times = {"a": 10.0, "b": 8.0}
    runner = FakeRunner(lambda arm, n: run(times[arm.name] * load[n]))
    a, b = figures(bench(runner, [arm("a"), arm("b")], (REQUEST,) * 5))
    assert b.window_time.show(".3f") == "0.800"
    assert b.speed.show(".3f") == "1.250"
    assert a.speed.runs == (1.0,) * 5
    assert b.rates["ms_per_window"].runs == (8.0, 24.0, 9.6, 16.0, 40.0)


def test_keep_rates_have_both_denominators() -> None:
    of_arm = figures(bench(FakeRunner(lambda arm, n: run(kept=3)), [arm("a")]))[0]
    assert of_arm.kept_of_decided == 9 / 12
    assert of_arm.kept_of_windows == 9 / 30
    assert {name: (n, s.median) for name, (n, s) in of_arm.classes.items()} == {
        "fresh": (21, 10.0),
        "kept_after_fresh": (9, 5.0),
        "kept_after_kept": (0, None),
    }
