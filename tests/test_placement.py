"""Splits against every split there is; what doesn't fit is refused with what was expected and what came."""

import itertools
import random
from dataclasses import dataclass, field

import pytest

from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE
from strata_tui.options import DeviceChoice, Pace, Placement
from strata_tui.placement import SharedCores, balanced_split, crowded, place, shared_cores


@dataclass
class Weights:
    layer_reads: list[int] = field(default_factory=lambda: [10] * 12)
    tail_reads: int = 10
    file_name: str = "m.gguf"

    @property
    def n_layers(self) -> int:
        return len(self.layer_reads)


def heaviest(layers: list[int], tail: int, split: tuple[int, ...]) -> int:
    edges = [0, *split, len(layers)]
    stages = [sum(layers[a:b]) for a, b in itertools.pairwise(edges)]
    return max([*stages[:-1], stages[-1] + tail])


@pytest.mark.parametrize("seed", range(30))
def test_the_balanced_split_is_the_best_of_all(seed: int) -> None:
    rng = random.Random(seed)
    layers = [rng.randrange(0, 100) for _ in range(rng.randrange(1, 9))]
    tail = rng.randrange(0, 200)
    for stages in range(1, len(layers) + 1):
        split = balanced_split(layers, tail, stages)
        assert len(split) == stages - 1
        assert all(a < b for a, b in itertools.pairwise((0, *split, len(layers))))
        every = itertools.combinations(range(1, len(layers)), stages - 1)
        assert heaviest(layers, tail, split) == min(heaviest(layers, tail, s) for s in every)


def test_the_default_is_two_stages_that_share_the_cores() -> None:
    assert place(Placement(), Weights(tail_reads=0), n_cores=8) == ((6,), (DeviceChoice(threads=4),) * 2)
    assert place(Placement(), Weights([7]), n_cores=8) == ((), (DeviceChoice(threads=8),))
    assert place(Placement(stages=3), Weights(), n_cores=2)[1] == (DeviceChoice(threads=1),) * 3


def test_the_number_of_stages_follows_from_split_stages_or_devices() -> None:
    assert place(Placement(split=(2, 5)), Weights(), 4)[0] == (2, 5)
    assert len(place(Placement(stages=4), Weights(), 4)[0]) == 3
    assert len(place(Placement(devices=(DeviceChoice(),) * 3), Weights(), 4)[0]) == 2
    pinned = (DeviceChoice(threads=2, cores=(0, 1)), DeviceChoice())
    assert place(Placement(devices=pinned, threads=3), Weights(), 4)[1] == (
        pinned[0],
        DeviceChoice(threads=3),
    )


@pytest.mark.parametrize(
    ("asked", "expected", "came"),
    [
        (Placement(stages=13), "1 to 12", "13"),
        (Placement(stages=-1), "1 to 12", "-1"),
        (Placement(split=(3, 3)), "ascend", "3,3"),
        (Placement(split=(0,)), "ascend from 1", "0"),
        (Placement(split=(12,)), "layers 0 to 11", "12"),
        (Placement(split=(3,), stages=3), "expected 2", "3"),
        (Placement(split=(3,), devices=(DeviceChoice(),) * 3), "1 or 2 devices", "3"),
        (Placement(threads=65), "at most 64 a stage", "65"),
        (Placement(devices=(DeviceChoice(), DeviceChoice(threads=65))), "at most 64 a stage", "65"),
    ],
)
def test_what_does_not_fit_is_refused(asked: Placement, expected: str, came: str) -> None:
    with pytest.raises(BadInput) as refused:
        place(asked, Weights(), n_cores=4)
    assert expected in str(refused.value)
    assert str(refused.value).endswith(f"got {came}")


def test_more_threads_than_cores_is_said() -> None:
    one, four, on_two = DeviceChoice(threads=1), DeviceChoice(threads=4), DeviceChoice("cpu", 3, (5, 6))
    assert crowded([four, one, DeviceChoice("cpu", 2, (5, 6))], n_cores=4) == []
    assert crowded([four] * 3, n_cores=2) == ["[device] every stage: 4 threads take turns on 2 usable cores"]
    assert crowded([one, four, on_two], n_cores=1) == [
        "[device] stage 1: 4 threads take turns on 1 usable core",
        "[device] stage 2: 3 threads take turns on 2 usable cores",
    ]


def test_a_file_without_layers_is_refused() -> None:
    with pytest.raises(BadInput, match="has 0 layers"):
        place(Placement(), Weights([]), n_cores=4)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("cpu", DeviceChoice()),
        (" cpu:3", DeviceChoice(threads=3)),
        ("cpu:1@5", DeviceChoice(threads=1, cores=(5,))),
        ("cpu:4@0-2+7", DeviceChoice(threads=4, cores=(0, 1, 2, 7))),
        ("even:10", DeviceChoice("even", pace=Pace((("forward", 10.0),)))),
        (
            "even:0.5+commit=0.2+draft=1@0+2",
            DeviceChoice("even", 0, (0, 2), Pace((("forward", 0.5), ("commit", 0.2), ("draft", 1.0)))),
        ),
        ("delayed:7", DeviceChoice("delayed", pace=Pace(seed=7))),
        (
            "delayed:0+only=undo/publish+chance=1+max=20@1",
            DeviceChoice("delayed", 0, (1,), Pace((), 0, ("undo", "publish"), 1.0, 20.0)),
        ),
    ],
)
def test_a_device_is_read(text: str, device: DeviceChoice) -> None:
    assert DeviceChoice.parse(text) == device


@pytest.mark.parametrize(
    "text", ["", "cpu:", "cpu:0", "cpu:-1", "cpu:1@", "cpu:1@a", "cpu:1@3-1", "cpu@0", "npu", "gpu:0"]
)
def test_a_bad_device_is_refused(text: str) -> None:
    refused_device(text, "cpu")


@pytest.mark.parametrize(
    "text",
    [
        "even",
        "even:",
        "even:x",
        "even:-1",
        "even:nan",
        "even:5001",
        "even:1+launch=1",
        "even:1+commit",
        "even:1+forward=2",
        "even:1+draft=1+draft=2",
        "even:1@",
        "delayed",
        "delayed:",
        "delayed:-1",
        "delayed:1.5",
        "delayed:18446744073709551616",
        "delayed:1+only=",
        "delayed:1+only=launch",
        "delayed:1+chance=1.1",
        "delayed:1+max=1001",
        "delayed:1+min=2",
        "delayed:1+max",
    ],
)
def test_a_bad_pace_is_refused(text: str) -> None:
    refused_device(text, text.partition(":")[0])


def test_a_pace_stays_when_threads_are_shared_out() -> None:
    even = DeviceChoice.parse("even:3")
    devices = place(Placement(stages=2, devices=(even,)), Weights(), n_cores=4)[1]
    assert devices == (DeviceChoice("even", 2, (), even.pace),) * 2


def refused_device(text: str, kind: str) -> None:
    with pytest.raises(BadInput) as refused:
        DeviceChoice.parse(text, "STRATA_SPLIT_DEVICE")
    assert str(refused.value).startswith(f"STRATA_SPLIT_DEVICE: expected {kind}")
    assert str(refused.value).endswith(f"got {text!r}")


def test_programs_run_side_by_side_as_far_as_their_teams_have_cores() -> None:
    def anywhere(*threads: int, cores: int) -> tuple[SharedCores, ...]:
        return shared_cores([DeviceChoice(threads=n) for n in threads], range(cores), True)

    assert anywhere(1, 1, 1, 1, cores=2) == (SharedCores((0, 1, 2, 3, DRAFT_LANE), 2),)
    assert anywhere(2, 3, cores=16) == (SharedCores((0, 1, DRAFT_LANE), 5),)
    assert anywhere(8, cores=2) == (SharedCores((0, DRAFT_LANE), 1),)
    assert anywhere(1, 1, cores=2) == (SharedCores((0, 1, DRAFT_LANE), 2),)
    assert anywhere(1, 1, cores=3) == (SharedCores((0, 1, DRAFT_LANE), 3),)


def test_pinned_stages_share_cores_with_those_that_overlap_them() -> None:
    """The draft layer runs on the last stage's cores."""

    def pinned(*cores: tuple[int, ...], draft: bool = True) -> tuple[SharedCores, ...]:
        return shared_cores([DeviceChoice(threads=1, cores=of) for of in cores], range(4), draft)

    assert pinned((0,), (1,)) == (SharedCores((0,), 1), SharedCores((1, DRAFT_LANE), 1))
    assert pinned((0,), (1,), draft=False) == (SharedCores((0,), 1), SharedCores((1,), 1))
    assert pinned((0, 1), (2,), (1, 2)) == (SharedCores((0, 1, 2, DRAFT_LANE), 3),)
    assert pinned((0,), ()) == (SharedCores((0, 1, DRAFT_LANE), 4),)
