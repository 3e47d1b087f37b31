"""The reference schedule against the published table, closed forms and schedules drawn by hand; no engine."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reference import turns
from reference.events import make
from reference.lower_bound import Verified, actual, lower_bound, measured
from reference.recorded import FATES, Committed, Recording, measured_rig, recorded
from reference.schedule_rules import broken_commits, broken_rules
from strata_tui.analysis.schedule import Rig, Switches, Verdict, Window, draws
from strata_tui.analysis.simulator import play, simulate
from strata_tui.events import Events, Kind, WindowFate

# The draft chain is 3 outputs of 0.5 ms together, or of 0.25 each. Hand-off and verdict of the fast pair are
# not published: 0.02 and 0.10 give the serial 8.07, the kept 3.70 and the bracketed ratios.
SOURCE_B = Rig(run=(9.02, 9.02, 9.02, 13.1), handoff=0.2, verdict=1.65, draft=0.5 / 3)
BALANCED = replace(SOURCE_B, run=(10.04,) * 4)
FAST_PAIR = Rig(run=(3.6, 3.6), handoff=0.02, verdict=0.1, draft=0.25)
RIGHT, WRONG = Verdict(3, True), Verdict(1, False)

# The table's means are of some 500 windows of one sequence of draws each. With three in flight on source B's
# stages a kept window takes 14.75 ms wherever it stands: that column tells how many of the 500 were fresh.
FRESH_OF_500 = {0.4: 306, 0.6: 199, 0.8: 100, 1.0: 1}  # the row ".4" was .388


def table_draws(k: float, seed: int) -> list[Verdict]:
    """500 verdicts with the table's number of fresh windows, in an order of our own."""
    right = np.arange(499) >= FRESH_OF_500[k] - 1
    np.random.default_rng(seed).shuffle(right)
    return [RIGHT if r else WRONG for r in right] + [WRONG]


def mean_ms(rig: Rig, switches: Switches, verdicts: Sequence[Verdict]) -> float:
    return sum(steps(simulate(rig, switches, verdicts))) / len(verdicts)


def steps(windows: Sequence[Window]) -> list[float]:
    """Verdict to verdict."""
    return np.diff([0.0, *(w.verdict_ms for w in windows if w.verified)]).round(9).tolist()


@pytest.mark.parametrize(
    ("rig", "k", "published"),
    [
        (SOURCE_B, 0.4, {0: 42.91, 2: 33.52, 3: 31.98, 4: 31.98}),
        (SOURCE_B, 0.6, {0: 42.91, 2: 29.12, 3: 25.96, 4: 25.96}),
        (SOURCE_B, 0.8, {0: 42.91, 2: 25.39, 3: 20.38, 4: 20.38}),
        (SOURCE_B, 1.0, {0: 42.91, 2: 21.83, 3: 14.81, 4: 14.81}),
        (BALANCED, 0.4, {0: 42.91, 2: 33.00, 3: 31.16, 4: 30.88}),
        (BALANCED, 0.6, {0: 42.91, 2: 28.65, 3: 25.20, 4: 24.20}),
        (BALANCED, 0.8, {0: 42.91, 2: 25.12, 3: 19.85, 4: 17.99}),
        (BALANCED, 1.0, {0: 42.91, 2: 21.83, 3: 14.80, 4: 11.75}),
        (FAST_PAIR, 0.4, {0: 8.07, 2: 6.71}),
        (FAST_PAIR, 0.6, {0: 8.07, 2: 5.95, "ahead": 5.45}),
        (FAST_PAIR, 0.8, {0: 8.07, 2: 5.25}),
        (FAST_PAIR, 1.0, {0: 8.07, 2: 4.54, "ahead": 3.71}),
    ],
)
def test_means_are_the_published_ones(rig: Rig, k: float, published: dict[int | str, float]) -> None:
    for windows, ms in published.items():
        switches = Switches(2, chain_ahead=True) if windows == "ahead" else Switches(int(windows))
        means = [mean_ms(rig, switches, table_draws(k, seed)) for seed in (1, 2)]
        # What is left is the order of the draws: kept behind kept costs more than kept behind fresh.
        assert np.mean(means) == pytest.approx(ms, rel=0.006), windows


@pytest.mark.parametrize(
    ("rig", "k", "ratio"),
    [
        (SOURCE_B, 0.4, 1.004),
        (SOURCE_B, 0.6, 1.009),
        (SOURCE_B, 0.8, 1.017),
        (SOURCE_B, 1.0, 1.027),
        (FAST_PAIR, 0.4, 1.05),
        (FAST_PAIR, 0.6, 1.09),
        (FAST_PAIR, 0.8, 1.15),
        (FAST_PAIR, 1.0, 1.23),
    ],
)
def test_ratios_to_the_lower_bound_are_the_bracketed_ones(rig: Rig, k: float, ratio: float) -> None:
    windows = simulate(rig, Switches(2), table_draws(k, 1))
    digits = 2 if rig is FAST_PAIR else 3
    assert actual(windows) / lower_bound(measured(windows), 1) == pytest.approx(ratio, abs=0.8 * 10**-digits)
    if rig is FAST_PAIR:
        ahead = simulate(rig, Switches(2, chain_ahead=True), table_draws(k, 1))
        assert actual(ahead) / lower_bound(measured(ahead), 1) == pytest.approx(1.0, abs=0.005)


def test_a_slow_draft_chain_is_the_bottleneck_of_four_windows() -> None:
    """Published: 16 % and 40 % above the bound, of a simulation that drops the step that runs at a verdict.

    The specification has it awaited, which gives 12 % and 42 %.
    """
    for running_step, excess in (("dropped", (0.16, 0.40)), ("awaited", (0.125, 0.42))):
        for rig, expected in zip((SOURCE_B, BALANCED), excess, strict=True):
            slow = replace(rig, draft=1.0)
            windows = simulate(slow, Switches(4, running_step=running_step), [RIGHT] * 500)
            ratio = actual(windows) / lower_bound(measured(windows), 3)
            assert ratio - 1 == pytest.approx(expected, abs=0.015)
            ahead = simulate(slow, Switches(4, chain_ahead=True, running_step=running_step), [RIGHT] * 500)
            assert actual(ahead) / lower_bound(measured(ahead), 3) < 1.01


def test_windows_by_class_are_the_closed_forms() -> None:
    t_fresh, t_kept = 42.91, 13.1 + 1.65
    loop = t_fresh - 0.5 + 7 * 0.5 / 3  # a guess starts behind a forced chain of 7 outputs
    assert steps(simulate(SOURCE_B, Switches(0), [RIGHT] * 4)) == pytest.approx([t_fresh] * 4)
    two = [t_fresh, t_kept, loop - t_kept, t_kept, loop - t_kept]
    assert steps(simulate(SOURCE_B, Switches(2), [RIGHT] * 5)) == pytest.approx(two)
    assert steps(simulate(SOURCE_B, Switches(4), [RIGHT] * 6)) == pytest.approx([t_fresh] + [t_kept] * 5)
    missed = simulate(SOURCE_B, Switches(4), [RIGHT, WRONG, WRONG, RIGHT])
    assert steps(missed) == pytest.approx([t_fresh, t_kept, t_fresh, t_fresh])


def test_three_stages_drawn_by_hand() -> None:
    """10 ms a stage, hand-off 1, verdict 2, draft output 1, windows of 2 rows; W1 comes true, then a miss.

    Chain: W0's draft at 1, W1's tokens at 3, W2's at 5. W1 follows W0 at 11, W2 follows W1 at 21. W0's
    verdict at 35, when W1's last stage begins. W3 needs a forced chain of 1 + 2 + 2 outputs: 40. The verdict
    of W1 at 35 + 12 = 47 is the miss; by then W3 has run on stage 0 since 40.
    """
    rig = Rig(run=(10, 10, 10), handoff=1, verdict=2, draft=1)
    verdicts = [Verdict(1, True), Verdict(0, False), Verdict(0, False)]
    windows = simulate(rig, Switches(3, rows=2), verdicts)
    assert [(w.fate, w.start_ms) for w in windows] == [
        ("fresh", [1, 12, 23]),
        ("kept after fresh", [11, 22, 35]),
        ("rolled back", [21, 32]),
        ("rolled back", [40]),
        ("fresh", [50, 61, 72]),  # its draft is there at 48; stage 0 is W3's until 50
        ("ended", [60, 71]),
        ("ended", [70, 81]),
    ]
    assert [w.verdict_ms for w in windows if w.verified] == [35, 47, 84]
    assert [w.slot for w in windows] == [0, 1, 2, 0, 1, 2, 0]
    cut = simulate(replace(rig, cut=0.5), Switches(3, rows=2), verdicts)
    assert cut[3].end_ms == [47.5] and cut[4].start_ms[0] == 48


def test_commits_and_undos_take_their_place_in_the_queues() -> None:
    """W0 is committed on stage 0 before W1 runs there; the miss at 31 undoes that before W2 runs."""
    rig = Rig(run=(10, 20), verdict=1, commit=2, undo=3, draft=0)
    windows = simulate(rig, Switches(2), [WRONG, RIGHT])
    assert (windows[0].start_ms, windows[1].start_ms, windows[0].verdict_ms) == ([0, 10], [12], 31)
    assert windows[2].start_ms == [34, 44]
    assert windows[0].committed == {0} and windows[2].fate == "fresh"
    serial = simulate(rig, Switches(0), [WRONG, WRONG])
    assert serial[1].start_ms == [33, 43]  # the commit of both stages is queued at 31
    kept = simulate(rig, Switches(2), [RIGHT, WRONG])
    assert kept[1].start_ms == [12, 33]


def test_a_commit_that_was_right_need_not_be_undone() -> None:
    """The drafts were right and the bonus wrong: W0's own commit stands, W1's behind it does not."""
    rig = Rig(run=(10, 10, 10), undo=5)
    bonus_wrong = [Verdict(3, False), WRONG]
    for windows, again, start in ((2, True, 35), (2, False, 30), (3, True, 35), (3, False, 35)):
        text = simulate(rig, Switches(windows, undo_again=again), bonus_wrong)
        assert [w.start_ms[0] for w in text if w.verified] == [0, start], (windows, again)


def test_a_verdict_waits_for_the_running_step_or_the_next_chain_does() -> None:
    """Two stages of 10 ms, a draft output of 4, windows of 2 rows: W0 starts at 4, W1 is built at 12.

    The kept verdict at 24 begins a forced chain: 28, 32, 36; the next verdict is due at 34, amid a step.
    """
    rig = Rig(run=(10, 10), draft=4)
    verdicts = [Verdict(1, True), Verdict(0, False), Verdict(0, False)]
    for running_step, verdict, start in (("awaited", 36, 40), ("queued", 34, 40), ("dropped", 34, 38)):
        text = simulate(rig, Switches(2, rows=2, running_step=running_step), verdicts)
        verified = [w for w in text if w.verified]
        assert (verified[1].verdict_ms, verified[2].start_ms[0]) == (verdict, start), running_step


def test_a_guess_goes_no_deeper_than_it_may() -> None:
    verdicts = [RIGHT] * 3
    for depth in (0, 1, 2, 3):
        guess = simulate(SOURCE_B, Switches(2, spec_depth=depth), verdicts)[1]
        on_time = sum(start < 42.91 for start in guess.start_ms)
        assert (guess.fate, on_time) == (("kept after fresh", depth) if depth else ("late", 0))


def test_estimates_below_theta_are_gated_and_nothing_is_built_behind() -> None:
    low, high = Verdict(3, True, estimate=0.1), Verdict(3, True, estimate=0.3)
    windows = simulate(SOURCE_B, Switches(4, theta=0.2), [high, low, high, high, high])
    assert [w.fate for w in windows[:3]] == ["fresh", "kept after fresh", "gated"]
    assert not windows[2].start_ms
    for chain_ahead in (False, True):
        never = simulate(SOURCE_B, Switches(4, theta=2, chain_ahead=chain_ahead), [high] * 5)
        assert Counter(w.fate for w in never) == {"fresh": 5, "gated": 15}
        assert steps(never) == pytest.approx([42.91] * 5)


def test_every_nth_guess_is_forced_to_miss() -> None:
    always = simulate(SOURCE_B, Switches(2, force_miss=1), [RIGHT] * 9)
    assert not any(w.kept for w in always) and sum(w.fate == "rolled back" for w in always) == 8
    third = simulate(SOURCE_B, Switches(2, force_miss=3), [RIGHT] * 60)
    assert [w.fate for w in third if w.forced_to_miss] == ["rolled back"] * 19 + ["ended"]


def test_more_windows_than_stages_and_a_single_stage() -> None:
    seven, two = (simulate(FAST_PAIR, Switches(n), [RIGHT] * 5) for n in (7, 2))
    assert steps(seven) == steps(two)
    one = simulate(Rig(run=(5,), draft=0.5), Switches(2), [WRONG] * 3)
    assert [w.start_ms for w in one] == [[1.5], [8.0], [14.5]]
    assert simulate(SOURCE_B, Switches(4), []) == []
    undrafted = simulate(SOURCE_B, Switches(0, rows=1), [Verdict(0, True)] * 2)
    assert steps(undrafted) == pytest.approx([42.41] * 2)


def test_a_text_of_limited_length_ends_with_its_last_token() -> None:
    for windows in (0, 2, 4):
        built = simulate(SOURCE_B, Switches(windows, first_rows=1, tokens=10), [RIGHT] * 9)
        verified = [w for w in built if w.verified]
        assert [w.rows for w in verified] == [1, 4, 4, 1]
        assert sum(w.accepted + 1 for w in verified) == 10
        assert not any(w.fate == "ended" for w in built)  # no guess goes beyond the limit


RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("case", range(40))
def test_any_rig_keeps_the_rules_of_the_schedule(case: int) -> None:
    n = int(RANDOM.integers(2, 9))
    rig = Rig(
        run=tuple(RANDOM.uniform(1, 12, n)),
        handoff=RANDOM.uniform(0, 1),
        verdict=RANDOM.uniform(0, 2),
        draft=RANDOM.uniform(0, 2),
        commit=RANDOM.choice([0, 0.3]),
        undo=RANDOM.choice([0, 0.5]),
        launch=RANDOM.choice([0, 0.2]),
        cut=RANDOM.choice([None, 0, 0.4]),
    )
    switches = Switches(
        windows=int(RANDOM.integers(0, 6)),
        allocated=int(RANDOM.integers(0, 9)),
        overlap=bool(RANDOM.integers(2)),
        chain_ahead=bool(RANDOM.integers(2)),
        running_step=str(RANDOM.choice(["awaited", "queued", "dropped"])),
        late_catch_up=bool(RANDOM.integers(2)),
        undo_again=bool(RANDOM.integers(2)),
        spec_depth=int(RANDOM.choice([1, 2, 32])),
        force_miss=int(RANDOM.choice([0, 3])),
    )
    windows = simulate(rig, switches, draws(RANDOM.uniform(0.2, 1), 60, seed=case))
    fates = Counter(w.fate for w in windows)
    verified = [w for w in windows if w.verified]
    assert len(verified) == 60 and fates["guess"] == 0
    for before, window in itertools.pairwise(verified):
        chain_ms = (window.rows - 1) * rig.draft
        assert window.kept or window.start_ms[0] >= before.verdict_ms + chain_ms - 1e-9
    guesses = min(max(switches.windows, 1), n) - 1
    assert broken_rules(windows, guesses) == []
    assert actual(windows) >= lower_bound(measured(windows), guesses) * (1 - 1e-9)
    assert lower_bound(measured(windows), guesses) >= lower_bound(measured(windows)) * (1 - 1e-9)


def random_text(seed: int) -> tuple[Rig, Switches, list[Verdict]]:
    """Whatever rig and switches; of every other one times are halves, so that many things happen at once."""
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(1, 7)), int(rng.integers(1, 6))

    def ms(low: float, high: float) -> float:
        return float(rng.integers(2 * low, 2 * high + 1)) / 2 if seed % 2 else float(rng.uniform(low, high))

    def one_of(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    rig = Rig(
        run=[ms(1, 12) for _ in range(n)],
        handoff=[ms(0, 1) for _ in range(n - 1)],
        verdict=ms(0, 2),
        draft=ms(0, 3),
        catch_up=one_of(None, ms(0, 3)),
        commit=one_of(0.0, 0.3),
        undo=one_of(0.0, 0.5),
        launch=one_of(0.0, 0.2),
        cut=one_of(None, 0.0, 0.4),
    )
    switches = Switches(
        windows=one_of(0, 1, 2, 3, 4, 5),
        rows=rows,
        first_rows=one_of(None, 1),
        allocated=one_of(None, 0, 3, 8),
        overlap=one_of(False, True),
        chain_ahead=one_of(False, True),
        running_step=one_of("awaited", "queued", "dropped"),
        late_catch_up=one_of(False, True),
        undo_again=one_of(False, True),
        theta=one_of(0.0, 0.5),
        spec_depth=one_of(0, 1, 2, 32),
        force_miss=one_of(0, 1, 3),
        tokens=one_of(None, int(rng.integers(1, 120))),
    )
    keeps, own_times, own_rows = rng.uniform(0.2, 1), one_of(False, True), one_of(False, True)
    verdicts = []
    for _ in range(60):
        right, of = bool(rng.random() < keeps), int(rng.integers(1, rows + 1)) if own_rows else rows
        verdicts.append(
            Verdict(
                of - 1 if right else int(rng.integers(0, of)),
                right,
                ms(0, 1),
                run=[ms(1, 12) for _ in range(n)] if own_times else None,
                rows=of if own_rows else None,
            )
        )
    if switches.first_rows is not None:  # the first window then has no drafts
        verdicts[0] = verdicts[0]._replace(accepted=0, rows=None)
    return rig, switches, verdicts


@pytest.mark.parametrize("seed", range(200))
def test_from_moment_to_moment_is_turn_by_turn(seed: int) -> None:
    text = random_text(seed)
    windows, steps = play(*text)
    plain_windows, plain_steps = turns.play(*text)
    assert [repr(window) for window in windows] == [repr(window) for window in plain_windows]
    assert steps == plain_steps


@pytest.mark.parametrize(
    ("window", "broken", "said"),
    [
        (0, {"end_ms": [12.0, 20.0, 30.0]}, "stage 0 ran windows 0 and 1 at once"),
        (0, {"start_ms": [0.0, 9.0, 20.0]}, "window 0 began on stage 1 before its input"),
        (
            1,
            {"start_ms": [10.0, 20.0, 28.0]},
            "window 1, kept after fresh, ran on stage -1 before the verdict of 0",
        ),
        (1, {"depth": 3}, "guess 1 was launched 3 windows behind"),
        (0, {"accepted": 2}, "window 1 was kept behind 2 of 3 drafts"),
        (2, {"start_ms": [20.0, 30.0, 40.0], "end_ms": [30.0, 40.0, 50.0]}, "ran on 3 of 3 stages"),
        (4, {"start_ms": [39.0, 50.0, 60.0]}, "window 4, fresh, ran on stage 0 before the verdict of 1"),
    ],
)
def test_a_broken_rule_is_said(window: int, broken: dict[str, object], said: str) -> None:
    text = simulate(Rig(run=(10, 10, 10)), Switches(3), [RIGHT, WRONG, WRONG])
    assert broken_rules(text, 2) == []
    for name, value in broken.items():
        setattr(text[window], name, value)
    assert any(said in line for line in broken_rules(text, 2)), broken_rules(text, 2)


def test_a_stage_that_holds_other_rows_than_the_verdicts_say_is_named() -> None:
    text = simulate(Rig(run=(10, 10)), Switches(2), [WRONG, WRONG])
    commits = [
        Committed(Kind.commit, 0, 0, 4, True, 0.0),
        Committed(Kind.undo, 0, 0, 2, False, 0.0),
        Committed(Kind.commit, 0, 1, 2, False, 0.0),
        Committed(Kind.commit, 2, 0, 2, False, 0.0),
        Committed(Kind.commit, 2, 1, 2, False, 0.0),
    ]
    assert broken_commits(Recording(text, commits=commits)) == []
    missing = Recording(text, commits=[*commits[:1], *commits[2:]])
    assert broken_commits(missing) == ["window 0 left stage 0 with 4 rows, its verdict says 2"]
    assert "committed twice" in broken_commits(Recording(text, commits=[*commits, commits[-1]]))[0]
    assert "not committed there" in broken_commits(Recording(text, commits=commits[1:]))[0]


def test_the_lower_bound_is_the_longest_path() -> None:
    fresh = Verified(False, (2, 3), (1,), 4, 5)
    kept = Verified(True, (2, 3), (1,), 4, 0)
    assert lower_bound([]) == 0
    assert lower_bound([fresh]) == 5 + 2 + 1 + 3 + 4
    assert lower_bound([fresh, fresh], 1) == 30
    assert lower_bound([fresh, kept], 1) == 15 + 3 + 4  # verdict -> last stage
    assert lower_bound([fresh, kept], 0) == 15 + 2 + 1 + 3 + 4  # no place before the verdict
    assert lower_bound([fresh, Verified(True, (20, 3), (1,), 4, 0)], 1) == 7 + 20 + 1 + 3 + 4  # stage order
    slow_first = Verified(True, (12, 3), (1,), 4, 0)
    assert lower_bound([fresh, kept, slow_first], 1) == 15 + 12 + 1 + 3 + 4  # a place from the 1st verdict on


def events_of(windows: Sequence[Window], rig: Rig) -> Events:
    """What an engine that kept exactly to a simulated schedule would have recorded."""

    def ns(ms: float) -> int:
        return 10**9 + round(ms * 1e6)

    fates = {fate: kind for kind, fate in FATES.items() if fate}
    parts = [make(Kind.request_begin, 10**9, window=1, a=1)]
    for w in windows:
        born = WindowFate.fresh if w.fate == "fresh" else 4
        parts.append(make(Kind.window, ns(w.built_ms), 0, w.id, rows=w.rows, b=born))
        for stage, (start, end) in enumerate(zip(w.start_ms, w.end_ms, strict=True)):
            parts.append(make(Kind.run, ns(start), ns(end) - ns(start), w.id, stage, rows=w.rows))
        if w.verified:
            parts.append(make(Kind.verdict, ns(w.verdict_ms) - 10, 10, w.id, rows=w.rows, a=w.accepted))
            parts.append(make(Kind.commit, ns(w.verdict_ms), 0, w.id, len(rig.run) - 1))
        if w.kept:
            kept = WindowFate.kept_after_fresh if w.fate == "kept after fresh" else WindowFate.kept_after_kept
            parts.append(make(Kind.guess_kept, ns(w.start_ms[-1]), 0, w.id, b=kept))
        elif w.fate != "fresh":
            parts.append(make(fates[w.fate], ns(w.built_ms) + 1, 0, w.id))
    return np.concatenate(parts)


@pytest.mark.parametrize("windows", [0, 2, 3])
def test_a_recording_gives_back_the_windows_and_the_rig(windows: int) -> None:
    rig = replace(SOURCE_B, draft=0.0)
    text = simulate(rig, Switches(windows), draws(0.6, 40))
    recording = recorded(events_of(text, rig))
    assert [(w.id, w.fate, w.rows) for w in recording.windows] == [(w.id, w.fate, w.rows) for w in text]
    for ours, theirs in zip(recording.windows, text, strict=True):
        assert ours.start_ms == pytest.approx(theirs.start_ms, abs=1e-5)
        assert ours.end_ms == pytest.approx(theirs.end_ms, abs=1e-5)
        assert ours.verdict_ms == pytest.approx(theirs.verdict_ms, abs=1e-5, nan_ok=True)
    again = measured_rig(recording, cut=None)
    assert again.run == pytest.approx(rig.run, abs=1e-5)
    assert (again.handoff, again.verdict) == pytest.approx((rig.handoff, rig.verdict), abs=1e-5)
    verdicts = recording.verdicts(own_times=True)
    assert steps(simulate(again, Switches(windows), verdicts)) == pytest.approx(steps(text), abs=1e-4)


def test_a_window_that_came_late_on_its_device_is_simulated_with_its_own_time() -> None:
    late = Verdict(3, True, run=(3.6, 9.0))
    assert steps(simulate(FAST_PAIR, Switches(2), [RIGHT, late, RIGHT]))[1] == pytest.approx(9.0 + 0.1)
