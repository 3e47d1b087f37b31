"""Runs on the real engine: switches of an arm hold for it alone, engines are shared, kept and closed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from strata_tui.bench import engines as module
from strata_tui.bench.arms import Arm, sharing_engines
from strata_tui.bench.engines import FreshProcesses, KeptEngines, engine_bytes
from strata_tui.bench.one_run import Request
from strata_tui.errors import BadInput, StrataError
from strata_tui.gguf_file import ModelFile, embedded_model_path
from strata_tui.options import DeviceChoice, Placement, RunOptions, parse_split

REQUEST = Request(tokens=(5, 9, 200, 31), max_tokens=16)


@pytest.fixture(scope="module")
def model() -> ModelFile:
    return ModelFile(embedded_model_path())


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def kept(model: ModelFile, notes: list[str]) -> Iterator[KeptEngines]:
    engines = KeptEngines(model, notes.append)
    yield engines
    engines.close()


def arm(name: str, split: str = "6", **switches) -> Arm:
    windows = switches.get("pipeline_windows", 0)
    placement = Placement(split=parse_split(split), threads=1, context=256, pipeline_max=windows)
    return Arm(name, "", RunOptions(placement=placement, switches=switches))


def test_arms_share_an_engine_that_has_room_for_all_of_them(kept: KeptEngines) -> None:
    serial, deep, other = sharing_engines([arm("s"), arm("d", pipeline_windows=2), arm("o", split="4")])
    assert serial.placement == deep.placement != other.placement
    assert kept.engine(serial.placement) is kept.engine(deep.placement)
    assert kept.engine(deep.placement).pipeline_max == 2
    assert kept.engine(other.placement) is not kept.engine(deep.placement)


def test_a_switch_of_one_arm_does_not_hold_for_the_next(kept: KeptEngines) -> None:
    plain, odd = arm("p", draft=None, overlap=None), arm("o", draft="none", overlap=True, draft_max=2)
    before = kept.run(plain, REQUEST)
    between = kept.run(odd, REQUEST)
    after = kept.run(plain, REQUEST)
    assert before.in_force["draft"] == after.in_force["draft"] == "mtp"
    assert (between.in_force["draft"], between.in_force["overlap"]) == ("none", True)
    assert not after.in_force["overlap"]
    assert before.tokens == between.tokens == after.tokens
    assert len(after.tokens) == 16
    assert between.stats["drafted"] == 0 < after.stats["drafted"]


def test_a_bound_is_told_where_it_is_asked_for(model: ModelFile, kept: KeptEngines) -> None:
    engines = KeptEngines(model, bound=True)
    replayed = arm("a", pipeline_windows=2, draft="replay:0.8", theta=0.0)
    for _ in range(2):
        run = engines.run(replayed, REQUEST)
        assert run.bound
        assert run.bound["full_depth_ms"] <= run.bound["same_depth_ms"] <= run.bound["actual_ms"]
        assert run.over_bound("same_depth") == run.bound["actual_ms"] / run.bound["same_depth_ms"]
        # Of this text alone, although the one that drafts come from was decoded just before.
        assert run.bound["actual_ms"] == pytest.approx(run.stats["window_ns"] / 1e6, rel=0.2)
    engines.close()
    assert kept.run(arm("b"), REQUEST).over_bound("same_depth") is None


def test_every_run_reads_its_prompt_anew(kept: KeptEngines) -> None:
    for _ in range(2):
        assert kept.run(arm("a"), REQUEST).stats["cached_tokens"] == 0


def test_engines_are_closed_for_want_of_memory(
    kept: KeptEngines, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kept.engine(arm("a").placement)
    too_few = engine_bytes(first) // 2
    monkeypatch.setattr(module, "available_memory", lambda: too_few)
    second = kept.engine(arm("b", split="4").placement)
    with pytest.raises(StrataError):
        first.session()
    second.session()
    kept.engine(arm("a").placement)
    assert len(notes) == 1
    assert "not enough memory to keep all engines" in notes[0]


def test_a_fresh_process_gives_the_same_text(model: ModelFile, kept: KeptEngines) -> None:
    here, there = kept.run(arm("a"), REQUEST), FreshProcesses(model).run(arm("a"), REQUEST)
    assert there.tokens == here.tokens
    assert there.backend == here.backend
    assert there.stats["windows"] == here.stats["windows"]


def test_an_error_of_a_fresh_process_arrives(model: ModelFile) -> None:
    long = Request(tokens=(1,) * 300, max_tokens=4)
    with pytest.raises(BadInput, match="300"):
        FreshProcesses(model).run(arm("a"), long)


def test_a_fresh_process_that_dies_is_an_error(model: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_run_in_child", len)  # takes one argument: the child fails at its start
    with pytest.raises(StrataError, match=r"a: its process ended without a result \(exit code 1\)"):
        FreshProcesses(model).run(arm("a"), REQUEST)


@pytest.mark.parametrize(("ms", "all_overrun"), [("0.001", True), ("200", False)])
def test_overruns_are_those_of_the_run(kept: KeptEngines, ms: str, all_overrun: bool) -> None:
    devices = (DeviceChoice.parse(f"even:{ms}"),) * 2
    even = Arm("e", "", RunOptions(placement=Placement(devices=devices, threads=1, context=256)))
    request = replace(REQUEST, max_tokens=2)
    run, again = kept.run(even, request), kept.run(even, request)
    assert run.emulated
    assert run.programs == again.programs > 0, "counted anew each time"
    assert run.overruns == (run.programs if all_overrun else 0)
    assert kept.run(arm("a"), REQUEST).programs == 0


def test_replayed_drafts_record_their_text_first(kept: KeptEngines) -> None:
    right = kept.run(arm("r", draft="replay:1"), REQUEST)
    plain = kept.run(arm("p", draft="none"), REQUEST)
    given = kept.run(arm("r", draft="replay:1"), REQUEST, replay=plain.tokens)
    assert right.tokens == plain.tokens == given.tokens
    assert right.stats["accepted"] == given.stats["accepted"] > 8
