"""What if: recorded verdicts and times, played through the simulated schedule with other switches.

Every figure that comes from here is modelled, not measured; `basis` says what it rests on. What is known of
the text (which drafts were right) is in `tape`, what the parts cost in `costs`, the schedule in `simulator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from strata_tui.analysis.bound import actual_ns
from strata_tui.analysis.costs import Costs, read_costs
from strata_tui.analysis.crowd import Crowds
from strata_tui.analysis.passages import passages
from strata_tui.analysis.schedule import Rig, Switches, Verdict, Window
from strata_tui.analysis.simulator import play
from strata_tui.analysis.tape import Tape, read_tape
from strata_tui.errors import BadInput
from strata_tui.events import DRAFT_LANE, Events, Kind
from strata_tui.paced import HandOffTimes
from strata_tui.placement import SharedCores

ROUNDS = 6  # until a crowd and the schedule that it slows fit one another
DRAWS = 8  # of what the recording doesn't tell; their mean counts. Fewer for long texts, which vary less:
DRAWN_TOKENS = 8192
SAID_OFF = 0.02

# Where the engine leaves the letter of the specification, each time for less waiting: a verdict doesn't wait
# for a draft step, a tail is continued with no catch-up before it, a commit that was right isn't done again.
ENGINE: dict[str, Any] = {"running_step": "queued", "late_catch_up": True, "undo_again": False}


@dataclass(frozen=True)
class Setting:
    """What may be otherwise; the last four exist in predictions alone, or before a split is chosen."""

    overlap: bool = False
    pipeline_windows: int = 0
    theta: float = 0.2
    draft_max: int = 4
    draft_min_p: float = 0.0
    chain_ahead: bool = False
    spec_depth: int = 32
    allocated: int | None = None  # windows that there are slots for; None: as many as are in flight
    balanced: bool = False  # all stages take the same time
    hand_off_ms: float | None = None  # another link
    second_bonus: bool = False  # a guess follows the draft's second choice of the bonus too

    @classmethod
    def of(cls, switches: dict[str, Any], **other: Any) -> Setting:
        """From the values of the live switches."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in switches.items() if name in known} | other)


@dataclass(frozen=True)
class Prediction:
    """Modelled, not measured: means over what had to be drawn.

    Attributes:
        unsure: more stages at once than the cores that they move between, recorded one at a time: who would
            wait for whom is the system's choice, and may cost what guesses gain.
    """

    setting: Setting
    ms_per_window: float
    tokens_per_window: float
    windows: float
    launched: float  # guesses
    kept: float
    basis: tuple[str, ...]  # what it rests on, a line each
    unsure: bool = False
    modelled: bool = True

    @property
    def tokens_per_s(self) -> float:
        return self.tokens_per_window / self.ms_per_window * 1e3


@dataclass(frozen=True)
class _Played:
    """Means over what had to be drawn; ms from the first start to the last verdict."""

    windows: float
    ms: float
    launched: float
    kept: float


class WhatIf:
    """The model of one recorded text.

    Args:
        events: of one request.
        recorded: the setting that it ran with.
        shared: cores that stages and draft layer share; what is in none has cores of its own.
        hand_offs: of each stage, how long the rows take to it; None (or no entry): as recorded. An emulated
            device knows, and a recording of one kind does not tell the others.

    Attributes:
        off: of the model of the recorded setting, over what was measured, less 1; predictions are rid of it,
            but for settings that give each program a core where the recorded one didn't: it is the crowd's.

    Raises:
        BadInput: there is nothing to predict from.
    """

    def __init__(
        self,
        events: Events,
        n_stages: int,
        recorded: Setting,
        shared: Sequence[SharedCores] = (),
        hand_offs: Sequence[HandOffTimes | None] = (),
    ) -> None:
        windows = passages(events)
        self.n_stages, self.recorded, self.shared = n_stages, recorded, tuple(shared)
        self._drafting = bool((events["kind"] == Kind.draft_step).any())
        costs = read_costs(events, windows, n_stages, self._crowded_cores(recorded))
        if costs is None:
            raise BadInput("[what-if] expected a text with all its events, got none that is complete")
        self.costs: Costs = costs
        self.tape: Tape = read_tape(events, windows)
        self.hand_offs = [*hand_offs, *[None] * n_stages][1:n_stages]
        n_verified = sum(window.verified for window in windows)
        self.emitted_per_window = self.tape.tokens / n_verified
        own = self._played(recorded)
        took = actual_ns(windows, events, n_stages) / 1e6 / n_verified
        # The schedule of the recording itself, modelled, over what it took. What is left is not in the model:
        # other work on the machine, which every setting would meet alike; in a crowd, when which program gets
        # which core, above all.
        self.off = own.ms / own.windows / took - 1 if took > 0 else 0.0

    def predict(self, setting: Setting) -> Prediction:
        """What the same text would have taken.

        Raises:
            BadInput: drafts longer than the recorded ones.
        """
        if setting.draft_max > self.recorded.draft_max:
            raise BadInput(
                f"[what-if] expected at most the {self.recorded.draft_max} drafts of the recording, "
                f"got {setting.draft_max}"
            )
        played = self._played(setting)
        return Prediction(
            setting=setting,
            ms_per_window=played.ms / (1 + self._off(setting)) / played.windows,
            tokens_per_window=self.tape.tokens / played.windows,
            windows=played.windows,
            launched=played.launched,
            kept=played.kept,
            basis=tuple(self._basis(setting)),
            unsure=not self._crowded_cores(self.recorded)
            and any(cores.at_once > 1 for cores in self._crowded_cores(setting)),
        )

    def _crowded_cores(self, setting: Setting) -> list[SharedCores]:
        """Where more programs are at once than cores: stages of windows in flight, the draft layer."""
        if setting.pipeline_windows < 2:
            return []
        return [
            _settled(cores)
            for cores in self.shared
            for stages in [sum(lane != DRAFT_LANE for lane in cores.lanes)]
            for drafting in [self._drafting and DRAFT_LANE in cores.lanes]
            if min(setting.pipeline_windows, stages) + drafting > cores.at_once
        ]

    def _off(self, setting: Setting) -> float:
        was, would_be = self._crowded_cores(self.recorded), self._crowded_cores(setting)
        return 0.0 if was and not would_be else self.off

    def _played(self, setting: Setting) -> _Played:
        draws = max(1, min(DRAWS, DRAWN_TOKENS // self.tape.tokens)) if self.tape.unknown else 1
        texts = [self._simulate(setting, self.tape.drawn(seed)) for seed in range(draws)]
        fates = [window.fate for text in texts for window in text]
        launched = sum(fate.startswith("kept") or fate in ("rolled back", "ended") for fate in fates)
        return _Played(
            windows=float(np.mean([len(_verified(text)) for text in texts])),
            ms=float(np.mean([_verified(text)[-1].verdict_ms - text[0].start_ms[0] for text in texts])),
            launched=launched / draws,
            kept=sum(fate.startswith("kept") for fate in fates) / draws,
        )

    def _simulate(self, setting: Setting, tape: Tape) -> list[Window]:
        verdicts = tape.verdicts(setting.draft_max, setting.draft_min_p, setting.second_bonus)
        position, timed = tape.first, []
        guessed = False
        for verdict in verdicts:
            accepted, right, estimate, _, rows = verdict
            timed.append(
                Verdict(accepted, right, estimate, self._run(setting, position, rows or 1, guessed), rows)
            )
            guessed = right
            position += accepted + 1
        rig = self._rig(setting, tape.tokens / len(verdicts))
        switches = self._switches(setting, tape)
        windows, steps = play(rig, switches, timed)
        crowded = self._crowded_cores(setting)
        for _ in range(ROUNDS if crowded else 0):
            windows, steps = play(*self._crowded(crowded, rig, timed, windows, steps, switches))
        return windows

    def _crowded(
        self,
        shared: Sequence[SharedCores],
        rig: Rig,
        alone: Sequence[Verdict],
        windows: Sequence[Window],
        steps: Sequence[tuple[float, float]],
        switches: Switches,
    ) -> tuple[Rig, Switches, list[Verdict]]:
        """Rig, switches and verdicts with what each program loses in the crowd that was simulated last."""
        runs = [
            np.array([(w.start_ms[s], w.end_ms[s]) for w in windows if len(w.end_ms) > s]).reshape(-1, 2)
            for s in range(self.n_stages)
        ]
        drafts = np.array(steps).reshape(-1, 2)
        crowds = Crowds({**dict(enumerate(runs)), DRAFT_LANE: drafts}, shared)
        of_runs = [iter(crowds.lost_ms(s, *of.T).tolist()) for s, of in enumerate(runs)]
        lost = [[next(of_runs[s]) for s in range(len(window.end_ms))] for window in windows]
        of_verified = [ms for ms, window in zip(lost, windows, strict=True) if window.verified]
        verdicts = [
            verdict._replace(run=[a + b for a, b in zip(verdict.run or (), ms, strict=True)])
            for verdict, ms in zip(alone, of_verified, strict=True)
        ]
        mean = [float(np.mean([ms[s] for ms in lost if len(ms) > s] or [0.0])) for s in range(self.n_stages)]
        slower = float(np.mean(crowds.lost_ms(DRAFT_LANE, *drafts.T))) if steps else 0.0
        return (
            replace(
                rig,
                run=[a + b for a, b in zip(rig.run, mean, strict=True)],
                draft=rig.draft + slower,
                catch_up=(rig.catch_up or 0.0) + slower,
            ),
            switches,
            verdicts,
        )

    def _run(self, setting: Setting, position: int, rows: int, guessed: bool) -> Sequence[float]:
        """ms per stage; a guess of two branches has the rows of both on the front stages."""
        run = self.costs.of_window(position, rows)
        if setting.second_bonus and guessed:
            run = [*(self.costs.run(stage, 2 * rows) for stage in range(self.n_stages - 1)), run[-1]]
        return [sum(run) / len(run)] * len(run) if setting.balanced else run

    def _rig(self, setting: Setting, emitted_per_window: float) -> Rig:
        costs, rows = self.costs, setting.draft_max + 1
        return Rig(
            run=self._run(setting, -1, rows, guessed=True),
            handoff=self._hand_off(setting),
            verdict=costs.verdict,
            draft=costs.draft,
            catch_up=max(
                0.0,
                costs.catch_up + costs.catch_up_per_row * (emitted_per_window - self.emitted_per_window),
            ),
            commit=costs.commit,
            undo=costs.undo,
            launch=costs.launch,
            cut=costs.cut,
        )

    def _hand_off(self, setting: Setting) -> list[float]:
        """ms per boundary."""
        if setting.hand_off_ms is not None:
            return [setting.hand_off_ms] * (self.n_stages - 1)
        costs = self.costs
        recorded = costs.overlapped_hand_off if setting.overlap else costs.serial_hand_off
        return [
            ms if known is None else known.of(setting.overlap, setting.pipeline_windows > 1)
            for ms, known in zip(recorded, self.hand_offs, strict=True)
        ]

    @staticmethod
    def _switches(setting: Setting, tape: Tape) -> Switches:
        return Switches(
            windows=setting.pipeline_windows if setting.pipeline_windows > 1 else 0,
            rows=setting.draft_max + 1,
            first_rows=1,
            allocated=setting.allocated,
            overlap=setting.overlap,
            chain_ahead=setting.chain_ahead,
            theta=setting.theta,
            spec_depth=setting.spec_depth,
            tokens=tape.tokens,
            **ENGINE,
        )

    def _basis(self, setting: Setting) -> list[str]:
        lines = [f"{self.tape.tokens} tokens recorded with {_text(self.recorded)}"]
        if abs(self.off) >= SAID_OFF:
            rid = (
                "predictions are rid of that" if self._off(setting) else "taken as the crowd's, not there now"
            )
            lines.append(f"the model of the recorded setting is {self.off:+.0%} off; {rid}")
        if setting.pipeline_windows > 1 or setting.draft_max != self.recorded.draft_max:
            lines += self.tape.basis
        if setting.hand_off_ms is None:
            lines += self._basis_of_hand_offs(setting)
        if setting.pipeline_windows > 1 and self.recorded.pipeline_windows < 2:
            lines.append("stages taken as fast side by side as one after the other")
            for cores in self._crowded_cores(setting):
                lines.append(f"but for {_sharing(cores)}")
        if setting.balanced:
            lines.append("layers taken as divisible at will")
        if setting.second_bonus:
            seen = len(self.tape.second)
            rate = f"{self.tape.second_rate:.0%}"
            said = f"right in {rate} of {seen} misses" if seen else "never right: no misses recorded"
            lines.append(f"second choice of the bonus {said}; both branches drafted at the cost of one")
        return lines

    def _basis_of_hand_offs(self, setting: Setting) -> Iterator[str]:
        if not self.hand_offs:
            return
        if None not in self.hand_offs:
            yield "hand-offs taken as the emulated devices have them"
        elif setting.overlap and not self.recorded.overlap:
            ms = ", ".join(f"{ms:.3f}" for ms in self.costs.overlapped_hand_off)
            yield f"overlapped hand-offs taken as the recorded ones less the host's part: {ms} ms"


def _settled(cores: SharedCores) -> SharedCores:
    """Where only the draft layer has no core left, it is taken as beside the last stage, pinned or not.

    The system settles each program on a core and moves one that waits there only rarely, even to a core that
    is idle: so three programs on two cores do as those that are pinned to them do (tests/proofs/what_if.py).
    """
    stages = [lane for lane in cores.lanes if lane != DRAFT_LANE]
    if len(stages) != cores.at_once or DRAFT_LANE not in cores.lanes:
        return cores
    return SharedCores((stages[-1], DRAFT_LANE), 1)


def _sharing(cores: SharedCores) -> str:
    """Evenly is well known of one core; of several, which program waits for which is not modelled."""
    stages = [str(lane) for lane in cores.lanes if lane != DRAFT_LANE]
    who = f"stage{'s' * (len(stages) > 1)} {', '.join(stages)}"
    who += " and the draft layer" if DRAFT_LANE in cores.lanes else ""
    what = "a core" if cores.at_once == 1 else f"{cores.at_once} cores"
    return f"{what} that {who} share evenly" + (
        "" if cores.at_once == 1 else " (who gets one when is not modelled)"
    )


def _verified(windows: Sequence[Window]) -> list[Window]:
    return [window for window in windows if window.verified]


def _text(setting: Setting) -> str:
    parts = [f"{setting.pipeline_windows} windows in flight", f"{setting.draft_max} drafts"]
    return ", ".join(parts) + (", overlapped" if setting.overlap else "")
