"""Each rule says what its figures mean, and stays silent without them."""

from typing import Any

import pytest

from strata_tui.analysis.findings import Situation, bottleneck, findings
from strata_tui.analysis.guesses import GuessCounts
from strata_tui.analysis.why import PARTS

EVEN = (("run", 1, 0.4), ("run", 0, 0.39), ("draft", 0, 0.2))


def stage(run: float = 0.9, **parts: float) -> dict[str, float]:
    return dict.fromkeys(PARTS, 0.0) | {"run": run} | parts


def of(*stages: dict[str, float], **changes: Any) -> Situation:
    fields: dict[str, Any] = {
        "stages": stages,
        "switches": {"pipeline_windows": 0, "overlap": True, "theta": 0.2, "rate": 0},
        "pipeline_max": 4,
        "guesses": GuessCounts(),
        "path": EVEN,
        "over_full": None,
        "drafted": 100,
        "accepted": 60,
    }
    switches = fields["switches"] | changes.pop("switches", {})
    return Situation(**{**fields, **changes, "switches": switches})


WAITS = (stage(0.4, idle_verdict=0.46), stage(0.4, idle_hand_off=0.46))
IN_FLIGHT = {"pipeline_windows": 2}


@pytest.mark.parametrize(
    ("situation", "text", "key"),
    [
        (of(*WAITS), "stage 0 waits 46% of the time for a verdict: w puts a second window in flight", "w"),
        (of(*WAITS, pipeline_max=0), "--pipeline-max 2", ""),
        (of(*WAITS, switches=IN_FLIGHT), "no guess was built", "d"),
        (of(*WAITS, switches=IN_FLIGHT, guesses=GuessCounts(built=40, gated=32)), "gates 32 of 40", "g"),
        (
            of(*WAITS, switches=IN_FLIGHT, guesses=GuessCounts(built=40, late=30)),
            "30 of 40 guesses are late",
            "-",
        ),
        (
            of(
                *WAITS,
                switches=IN_FLIGHT,
                guesses=GuessCounts(
                    built=60, launched=60, kept=12, rolled_back=48, draft_wrong=40, bonus_wrong=8
                ),
            ),
            "12 of 60 guesses came true (missed 40 by a draft, 8 by the bonus)",
            "-",
        ),
        (
            of(
                *WAITS,
                switches=IN_FLIGHT,
                guesses=GuessCounts(built=60, launched=60, kept=50, rolled_back=10),
            ),
            "w puts one more window in flight",
            "w",
        ),
        (
            of(
                *WAITS,
                switches=IN_FLIGHT,
                pipeline_max=2,
                guesses=GuessCounts(built=60, launched=60, kept=50, rolled_back=10),
            ),
            "as there is memory for (83% of the guesses come true)",
            "",
        ),
        (
            of(
                stage(0.4, idle_verdict=0.28),
                stage(0.3, idle_hand_off=0.36),
                switches=IN_FLIGHT,
                guesses=GuessCounts(built=89, gated=80, launched=9),
            ),
            "stage 1 waits 36% for its input: theta=0.2 gates 80 of 89 guesses; g changes the gate",
            "g",
        ),
        (
            of(
                stage(0.88),
                stage(0.5, idle_hand_off=0.4),
                switches=IN_FLIGHT,
                guesses=GuessCounts(built=20, launched=20, kept=18, rolled_back=2),
            ),
            "stage 1 waits 40% for its input, mostly from stage 0, which runs 88%",
            "",
        ),
        (
            of(stage(0.8, idle_host=0.12), stage(), switches={"overlap": False}),
            "o launches the next stage ahead",
            "o",
        ),
        (of(stage(0.8, idle_host=0.12), stage()), "--threads", ""),
        (of(stage(0.7, idle_draft=0.2), stage()), "20% of the time for the draft chain (60% of drafts", "-"),
        (of(stage(0.8, undo=0.06, idle_undo=0.02), stage()), "undos cost stage 0 8% of the time", "g"),
        (of(stage(0.5, idle_no_work=0.4), stage(), switches={"rate": 20}), "the cap of 20 tok/s", "]"),
        (
            of(stage(0.3), stage(0.9), path=(("run", 1, 0.61), ("run", 0, 0.2))),
            "61% of the critical path is stage 1's run: balance first",
            "",
        ),
        (of(stage(0.9), path=(("run", 0, 0.9),)), "one stage, which runs 90% of the time", ""),
        (
            of(stage(), stage(), over_full=1.04),
            "1.04 x what these stages and verdicts allow: nothing to flip",
            "",
        ),
    ],
)
def test_the_heaviest_finding(situation: Situation, text: str, key: str) -> None:
    first = findings(situation)[0]
    assert text in first.text and first.key == key


def test_findings_come_by_weight_and_a_share_too_small_is_not_told() -> None:
    told = findings(of(stage(0.5, idle_verdict=0.3, idle_host=0.04), stage(0.6, idle_draft=0.2)))
    assert [round(finding.weight, 2) for finding in told] == [0.3, 0.2]


def test_the_bottleneck_stands_out_or_there_is_none() -> None:
    assert bottleneck(of(stage(), stage())) is None
    assert bottleneck(of(stage(), stage(), path=(("run", 0, 0.5), ("run", 1, 0.3)))) == (0, 0.5)
    assert bottleneck(of(stage(), path=(("run", 0, 1.0),))) is None
