"""Predictions: against texts whose every draft is known, against a real run, and what they rest on."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.events import make
from reference.simulated import bonus_miss, events_of, verdicts_of
from strata_tui import Engine
from strata_tui.analysis.costs import read_costs
from strata_tui.analysis.passages import last_text, passages
from strata_tui.analysis.schedule import Rig, Switches
from strata_tui.analysis.simulator import simulate
from strata_tui.analysis.tape import read_tape
from strata_tui.analysis.what_if import ENGINE, Setting, WhatIf
from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Events, Kind
from strata_tui.paced import HandOffTimes
from strata_tui.placement import SharedCores

MODEL = Path(__file__).parents[1] / "data/oracles/micro-qwen35-friendly.gguf"
RIG = Rig(run=(6.0, 7.0, 9.0), handoff=(0.2, 0.4), verdict=0.5, cut=0.6)
TOKENS = 240


def true_text(seed: int, share: float = 0.85) -> dict[int, bool]:
    rng = np.random.default_rng(seed)
    return {p: bool(rng.random() < share) for p in range(1, 2 * TOKENS)}


def played(setting: Setting, right: dict[int, bool], rig: Rig = RIG) -> list[Any]:
    """What would have happened, from the truth."""
    switches = Switches(
        windows=setting.pipeline_windows,
        rows=setting.draft_max + 1,
        first_rows=1,
        theta=setting.theta,
        chain_ahead=setting.chain_ahead,
        overlap=setting.overlap,
        tokens=TOKENS,
        **ENGINE,
    )
    return simulate(rig, switches, verdicts_of(right, TOKENS, setting.draft_max))


def ms_per_window(windows: list[Any]) -> float:
    verified = [window for window in windows if window.verified]
    return float(verified[-1].verdict_ms / len(verified))


SERIAL = Setting(draft_max=3, theta=0.0)
EVERY_LANE = (0, 1, 2, DRAFT_LANE)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("recorded", [0, 2, 3])
@pytest.mark.parametrize(
    "other",
    [
        SERIAL,
        replace(SERIAL, pipeline_windows=2),
        replace(SERIAL, pipeline_windows=3),
        replace(SERIAL, pipeline_windows=3, draft_max=1),
        replace(SERIAL, draft_max=2, pipeline_windows=2, overlap=True),
        replace(SERIAL, pipeline_windows=2, theta=2.0),
    ],
)
def test_what_was_recorded_gives_what_would_have_been(seed: int, recorded: int, other: Setting) -> None:
    right = true_text(seed)
    setting = replace(SERIAL, pipeline_windows=recorded)
    model = WhatIf(events_of(played(setting, right), RIG, right), 3, setting)
    truth = played(other, right)
    got = model.predict(other)
    # A serial run doesn't know the bonuses: they are drawn, with the rate of a few dozen drafts.
    known = recorded > 0 or (not other.pipeline_windows and other.draft_max == 3) or other.theta > 1
    assert got.ms_per_window == pytest.approx(ms_per_window(truth), rel=0.015 if known else 0.08)
    if known:
        assert got.windows == sum(window.verified for window in truth)
        assert got.kept == pytest.approx(sum(window.kept for window in truth), abs=2)
    assert got.tokens_per_window == pytest.approx(TOKENS / got.windows) and got.modelled
    assert got.tokens_per_s == pytest.approx(got.tokens_per_window / got.ms_per_window * 1e3)


def test_an_emulated_rig_tells_the_hand_offs_that_a_recording_does_not() -> None:
    """A serial text has its serial ones alone; taken from them, overlapped ones would cost as much."""
    right, known = true_text(1), HandOffTimes(serial=9.2, overlapped=0.2, polled=0.4)

    def rig(ms: float) -> Rig:
        return replace(RIG, handoff=(ms, ms))

    events = events_of(played(SERIAL, right, rig(9.2)), rig(9.2), right)
    model = WhatIf(events, 3, SERIAL, hand_offs=[None, known, known])
    for other, ms in (
        (replace(SERIAL, overlap=True), 0.2),
        (replace(SERIAL, pipeline_windows=3), 0.4),
        (replace(SERIAL, pipeline_windows=3, overlap=True), 0.2),
    ):
        truth = ms_per_window(played(other, right, rig(ms)))
        # A serial run doesn't know the bonuses: they are drawn.
        assert model.predict(other).ms_per_window == pytest.approx(truth, rel=0.08)
        assert "hand-offs taken as the emulated devices have them" in model.predict(other).basis
    unknown = WhatIf(events, 3, SERIAL, hand_offs=[None, None, known]).predict(replace(SERIAL, overlap=True))
    assert any("overlapped hand-offs taken as the recorded ones" in line for line in unknown.basis)


def test_one_stage_has_no_hand_offs_to_speak_of() -> None:
    right, alone = true_text(1), replace(RIG, run=(6.0,), handoff=())
    basis = WhatIf(events_of(played(SERIAL, right, alone), alone, right), 1, SERIAL).predict(SERIAL).basis
    assert not any("hand-off" in line for line in basis)


def test_what_the_model_misses_of_the_recording_is_missed_in_no_prediction() -> None:
    """Time that no part has: the machine did something else between two windows."""
    right = true_text(3)
    events = events_of(played(SERIAL, right), RIG, right)
    slow = events.copy()
    for name in ("start_ns", "dur_ns"):
        slow[name] = slow[name] * 5 // 4
    # Everything lasts a quarter longer, but for the stages' own times.
    slow["dur_ns"][slow["kind"] == Kind.run] = events["dur_ns"][slow["kind"] == Kind.run]
    model, late = WhatIf(events, 3, SERIAL), WhatIf(slow, 3, SERIAL)
    assert model.off == pytest.approx(0.0, abs=0.002)
    assert late.predict(SERIAL).ms_per_window == pytest.approx(
        model.predict(SERIAL).ms_per_window * 1.25, rel=0.01
    )
    assert model.predict(SERIAL).basis[1:] == ()
    assert late.off == 0 or any("taken off" in line for line in late.predict(SERIAL).basis) == (
        abs(late.off) >= 0.02
    )


def test_what_a_crowd_costs_beyond_even_shares_is_not_taken_along() -> None:
    """Three programs at once on two cores; what that took is no sign of what one at a time would."""
    right = true_text(3)
    crowded = replace(SERIAL, pipeline_windows=3)
    events = events_of(played(crowded, right), RIG, right)
    model = WhatIf(events, 3, crowded, [SharedCores(EVERY_LANE, 2)])
    alone, beside = model.predict(SERIAL).ms_per_window, model.predict(crowded).ms_per_window
    model.off = -0.3
    assert model.predict(SERIAL).ms_per_window == alone
    assert any("the crowd's" in line for line in model.predict(SERIAL).basis)
    assert model.predict(crowded).ms_per_window > beside * 1.25
    roomy = WhatIf(events, 3, crowded, [SharedCores(EVERY_LANE, 3)])
    undisturbed = roomy.predict(SERIAL).ms_per_window * (1 + roomy.off)
    roomy.off = -0.3
    assert roomy.predict(SERIAL).ms_per_window == pytest.approx(undisturbed / 0.7)


def test_of_more_programs_than_cores_to_move_between_nothing_is_sure() -> None:
    """Here no draft layer runs: with two windows in flight two programs do."""
    right, three = true_text(3), replace(SERIAL, pipeline_windows=3)
    serial = events_of(played(SERIAL, right), RIG, right)
    two_cores, pinned = (
        [SharedCores(EVERY_LANE, 2)],
        [SharedCores((0, 1), 1), SharedCores((2, DRAFT_LANE), 1)],
    )

    def unsure(events: Events, recorded: Setting, shared: list[SharedCores], setting: Setting) -> bool:
        return WhatIf(events, 3, recorded, shared).predict(setting).unsure

    assert unsure(serial, SERIAL, two_cores, three)
    assert not unsure(serial, SERIAL, two_cores, replace(SERIAL, pipeline_windows=2))
    assert not unsure(serial, SERIAL, two_cores, SERIAL)
    assert not unsure(serial, SERIAL, pinned, three), "a core shared evenly is known well"
    assert not unsure(events_of(played(three, right), RIG, right), three, two_cores, three), "recorded so"


def test_where_the_draft_layer_alone_has_no_core_it_is_beside_the_last_stage() -> None:
    """Four programs that move between three cores are taken as if they were pinned."""
    right = true_text(3)
    serial = events_of(played(SERIAL, right), RIG, right)
    step = make(Kind.draft_step, int(serial["start_ns"][-1]), 10, 1, DRAFT_LANE, rows=1, a=1, b=7)
    drafted = np.sort(np.concatenate([serial, step]), order="start_ns")
    two, three = (replace(SERIAL, pipeline_windows=n) for n in (2, 3))

    def crowds(lanes: tuple[int, ...], at_once: int, setting: Setting) -> list[SharedCores]:
        return WhatIf(drafted, 3, SERIAL, [SharedCores(lanes, at_once)])._crowded_cores(setting)

    assert crowds(EVERY_LANE, 3, three) == [SharedCores((2, DRAFT_LANE), 1)]
    assert not WhatIf(drafted, 3, SERIAL, [SharedCores(EVERY_LANE, 3)]).predict(three).unsure
    assert crowds(EVERY_LANE, 3, two) == crowds(EVERY_LANE, 4, three) == [], "a core for each"
    assert crowds(EVERY_LANE, 3, SERIAL) == []
    assert crowds((0, 1, 2), 3, three) == []
    for at_once in (1, 2):
        assert crowds(EVERY_LANE, at_once, three) == [SharedCores(EVERY_LANE, at_once)]


def test_a_pause_is_no_part_of_what_anything_costs() -> None:
    """One of a second, behind the tenth verdict."""
    right, second = true_text(3), 1_000_000_000
    events = np.sort(events_of(played(SERIAL, right), RIG, right), order="start_ns")
    verdict = events[events["kind"] == Kind.verdict][9]
    at = int(verdict["start_ns"] + verdict["dur_ns"])
    later = events.copy()
    later["start_ns"][events["start_ns"] >= at] += second
    paused = np.zeros(1, EVENT_DTYPE)
    paused["start_ns"], paused["dur_ns"], paused["kind"], paused["stage"] = at, second, Kind.paused, HOST_LANE
    model = WhatIf(np.sort(np.concatenate([later, paused]), order="start_ns"), 3, SERIAL)
    assert model.costs == WhatIf(events, 3, SERIAL).costs
    assert abs(model.off) < 0.02


def test_another_link_and_balanced_stages() -> None:
    right = true_text(7)
    model = WhatIf(events_of(played(SERIAL, right), RIG, right), 3, SERIAL)
    for other, rig in (
        (replace(SERIAL, hand_off_ms=0.05), replace(RIG, handoff=0.05)),
        (replace(SERIAL, balanced=True), replace(RIG, run=(22 / 3,) * 3)),
        (replace(SERIAL, balanced=True, hand_off_ms=3.0), replace(RIG, run=(22 / 3,) * 3, handoff=3.0)),
    ):
        assert model.predict(other).ms_per_window == pytest.approx(
            ms_per_window(played(SERIAL, right, rig)), rel=0.001
        )
    assert "divisible" in model.predict(replace(SERIAL, balanced=True)).basis[-1]


def test_a_second_choice_keeps_more_guesses() -> None:
    right = true_text(3, 0.7)
    setting = replace(SERIAL, pipeline_windows=2)
    text = played(setting, right)
    events = events_of(text, RIG, right)
    missed = [
        w
        for w, behind in pairwise(text)
        if w.verified and w.accepted == w.rows - 1 and behind.fate == "rolled back"
    ]
    assert len(missed) > 5
    two = replace(setting, second_bonus=True)
    never = WhatIf(events, 3, setting).predict(two)
    assert never.kept == WhatIf(events, 3, setting).predict(setting).kept
    assert "never right: no misses recorded" in never.basis[-1]
    always = np.concatenate([events, *(bonus_miss(w.id, True) for w in missed)])
    got = WhatIf(always, 3, setting).predict(two)
    assert got.kept >= never.kept + len(missed) - 1
    assert got.windows == never.windows  # a bare second branch: the text's windows are the same


def window(id: int, position: int, drafts: list[int], accepted: int, built: int) -> Events:
    rows = len(drafts) + 1
    parts = [make(Kind.window, built, window=id, rows=rows, a=position)]
    for row, token in enumerate(drafts, 1):
        parts.append(make(Kind.draft_token, built, window=id, rows=row, a=token, b=900_000 - token))
    parts += [make(Kind.run, built + 1, 10, id, stage, rows=rows) for stage in (0, 1)]
    parts.append(make(Kind.verdict, built + 20, 1, id, rows=rows, a=accepted, b=accepted + 1))
    parts += [
        make(Kind.token, built + 21, window=id, a=p, b=p)
        for p in range(position + 1, position + accepted + 2)
    ]
    return np.concatenate(parts)


# Token p stands at position p. Window 2 is accepted whole; 3 misses its second draft; 4 its first.
TEXT = np.concatenate(
    [
        window(1, 0, [], 0, 0),
        window(2, 1, [2, 3], 2, 100),
        window(3, 4, [5, 99], 1, 200),
        window(4, 6, [98, 8], 0, 300),
    ]
)


def test_a_tape_worked_out_by_hand() -> None:
    tape = read_tape(TEXT, passages(TEXT))
    assert (tape.first, tape.tokens) == (0, 7)
    assert tape.hit == {2: True, 3: True, 5: True, 6: False, 7: False}  # 8 was drafted behind a wrong 98
    assert tape.unknown == [4] and tape.rate == pytest.approx(1 / 2)  # of the second drafts
    assert "1 of 7 tokens have no recorded draft" in tape.basis[0]
    tape.hit[4] = True
    tape.probability[4] = 0.5
    long, short = tape.verdicts(2), tape.verdicts(1)
    assert [(v.rows, v.accepted, v.guess_right) for v in long] == [
        (1, 0, False),  # no draft stands at position 1
        (3, 2, True),
        (3, 1, False),
        (1, 0, False),  # the last token wanted
    ]
    assert [v.accepted for v in short] == [0, 1, 1, 0, 0]  # 1 | 2 3 | 4 5 | 6 | 7
    assert long[1].guess_right and long[1].estimate == pytest.approx(0.899998 * 0.899997 * 0.5)


def test_replayed_drafts_are_known_behind_wrong_ones_too() -> None:
    replayed = TEXT.copy()
    replayed["b"][replayed["kind"] == Kind.draft_token] = 800_000
    tape = read_tape(replayed, passages(replayed))
    assert tape.rate == pytest.approx(0.8) and "replayed drafts" in tape.basis[0]
    assert tape.hit == {2: True, 3: True, 5: True, 6: False, 7: False}  # the text has no token 8


def test_times_by_rows_and_of_the_very_window() -> None:
    costs = read_costs(TEXT, passages(TEXT), 2)
    assert costs is not None and costs.by_rows == [{1: 1e-5, 3: 1e-5}] * 2
    sloped = replace(costs, by_rows=[{1: 2.0, 4: 5.0}, {3: 4.0}], own={})
    assert [sloped.run(0, rows) for rows in (1, 2, 4, 8)] == [2, 3, 5, 9]
    assert [sloped.run(1, rows) for rows in (1, 3, 8)] == [4, 4, 4]
    assert costs.of_window(4, 3) == [1e-5, 1e-5]


def test_a_verdict_that_leaves_more_rows_takes_longer_to_catch_up_on() -> None:
    def step(start: int, ns: int, rows: int, token: int = 7, output: int = 0) -> Events:
        return make(Kind.draft_step, start, ns, 9, DRAFT_LANE, rows=rows, a=output, b=token)

    def slope(*steps: Events) -> float:
        events = np.concatenate([TEXT, *steps])
        costs = read_costs(events, passages(events), 2)
        assert costs is not None
        return costs.catch_up_per_row

    passes = [step(130, 10, 1), step(230, 16, 3), step(330, 13, 2)]
    assert slope(*passes) == pytest.approx(3e-6)
    assert slope(*passes, step(350, 90, 8, token=-1), step(450, 90, 1, output=1)) == pytest.approx(3e-6), (
        "a pass without an output and a step of the chain are none"
    )
    assert slope(step(130, 10, 2), step(230, 12, 2)) == 0
    assert slope(step(130, 10, 1), step(230, 5, 3)) == 0, "less for more rows is chance"
    assert slope(step(10, 90, 1), step(130, 10, 4), step(230, 10, 4)) == 0, "the prompt's finds caches cold"
    assert slope() == 0


def test_shorter_drafts_leave_fewer_rows_to_catch_up_on() -> None:
    what_if = WhatIf(TEXT, 2, Setting(draft_max=2))
    what_if.costs = replace(what_if.costs, catch_up=1.0, catch_up_per_row=0.2)
    assert what_if.emitted_per_window == pytest.approx(7 / 4)
    assert what_if._rig(Setting(draft_max=2), 7 / 4).catch_up == pytest.approx(1.0)
    assert what_if._rig(Setting(draft_max=1), 7 / 5).catch_up == pytest.approx(1.0 - 0.2 * (7 / 4 - 7 / 5))
    what_if.costs = replace(what_if.costs, catch_up=0.01)
    assert what_if._rig(Setting(draft_max=1), 1.0).catch_up == 0


def test_what_can_not_be_predicted_is_said() -> None:
    with pytest.raises(BadInput, match="all its events"):
        WhatIf(np.empty(0, EVENT_DTYPE), 2, SERIAL)
    with pytest.raises(BadInput, match="at most the 2 drafts of the recording, got 3"):
        WhatIf(TEXT, 2, Setting(draft_max=2)).predict(SERIAL)


def test_a_real_run_predicts_the_windows_of_another() -> None:
    """Which drafts are right does not hang on the clock, so the number of windows is exact."""

    def run(engine: Engine, **switches: Any) -> tuple[Events, dict[str, Any], Setting]:
        engine.set_switches(switches)
        engine.events()
        session = engine.session()
        session.start([1, 2, 3], max_tokens=60, replay=text)
        session.to_the_end()
        setting = Setting.of(engine.switches.in_force())
        return last_text(engine.events()), session.stats(), setting

    with Engine.open(MODEL, draft="none") as engine:
        text = list(engine.session().generate([1, 2, 3], max_tokens=60, ignore_eos=True))
    devices = ["even:2"] * 2
    with Engine.open(MODEL, devices=devices, pipeline_max=2, draft="replay:0.8", theta=0.0) as engine:
        events, _, guessing = run(engine, pipeline_windows=2, draft_max=3)
        _, stats, serial = run(engine, pipeline_windows=0)
        _, shorter, short = run(engine, draft_max=2)
    model = WhatIf(events, 2, guessing)
    assert model.predict(serial).windows == stats["windows"]
    assert model.predict(short).windows == shorter["windows"]
