"""What each switch is predicted to give: modelled from the last windows, in a thread, seldom."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.flips import verified_since
from strata_tui.analysis.why import last_flip
from strata_tui.tui.switches import shown

if TYPE_CHECKING:
    from strata_tui.analysis.view import View
    from strata_tui.events import Events
    from strata_tui.tui.frame import ModelLabel

FEWEST, MOST = 30, 80  # windows that a prediction rests on
OFTEN_NS = 20_000_000_000
COST_SHARE = 0.01  # of a core
MOST_OFF = 0.15  # of the measured time: a model that misses the present by more isn't asked about others
KEYS = {"overlap": "o", "pipeline_windows": "w", "theta": "g", "draft_max": "-"}
NAMES = tuple(KEYS)


@dataclass(frozen=True)
class Predicted:
    """Modelled: one switch set to `value`, all others as they are."""

    name: str
    value: Any
    gain: float  # of tok/s, against the same model of the present setting
    ms_per_window: float


@dataclass(frozen=True)
class Model:
    """What the model says.

    Attributes:
        off: its ms per window of the present setting over the measured ones, less 1.
        unsure: switches of which it says nothing: see `Prediction`.
    """

    predictions: tuple[Predicted, ...]
    off: float
    unsure: tuple[str, ...] = ()

    @property
    def gains(self) -> dict[str, float]:
        """By switch; empty where the model isn't to be trusted."""
        return {} if self.is_off else {p.name: p.gain for p in self.predictions}

    def beside(self, key: str) -> str:
        """What stands behind advice to press this key; "" where nothing is predicted of it."""
        gain = next((gain for name, gain in self.gains.items() if KEYS[name] == key), None)
        return "" if gain is None else f" (modelled: {gain:+.0%} tok/s)"

    @property
    def is_off(self) -> bool:
        return abs(self.off) > MOST_OFF


class Predicting:
    """Keeps the predictions of the setting in force; those of another one are not shown.

    Args:
        spawn: runs a call in a thread; in tests at once.
        spare: look at what it costs.
    """

    def __init__(
        self, view: View, label: ModelLabel, spawn: Callable[[Callable[[], None]], None], spare: bool = True
    ) -> None:
        self._view = view
        self._label = label
        self._spawn = spawn
        self._spare = spare
        self._running = False
        self._due_ns = 0
        self._of: tuple[Any, ...] = ()
        self._made = Model((), 0.0)

    def look(self, now_ns: int, in_force: dict[str, Any], asked: dict[str, Any]) -> None:
        """Predict anew where that is due; `asked`: what each key would set next, by switch."""
        setting = _setting(in_force)
        if self._running or (setting == self._of and now_ns < self._due_ns):
            return
        events = self._events()
        if events is None:
            return
        self._running = True
        self._spawn(lambda: self._predict(events, dict(in_force), asked, setting, now_ns))

    def of(self, in_force: dict[str, Any]) -> Model:
        """What is known of this setting; nothing while there is no prediction."""
        return self._made if _setting(in_force) == self._of else Model((), 0.0)

    def _events(self) -> Events | None:
        """Of the last windows of one text and one setting, a copy."""
        flip = last_flip(self._view.marks, 1 << 62)
        windows = verified_since(self._view, flip.at_ns if flip is not None else 0)
        windows = windows[windows["start_ns"] >= (flip.at_ns if flip is not None else 0)]
        if not len(windows):
            return None
        requests, counts = np.unique(windows["request"], return_counts=True)
        enough = requests[counts >= FEWEST]
        if not len(enough):
            return None
        mine = windows[windows["request"] == enough[-1]][-MOST:]
        fresh = np.flatnonzero(mine["fate"] == Fate.FRESH)  # nothing ahead of it is missed
        mine = mine[fresh[0] if len(fresh) else 0 :]
        begin, end = int(mine["start_ns"][0]), int(mine["end_ns"].max())
        events = self._view.events_between(begin, end)
        return events[events["start_ns"].astype(np.int64) >= begin] if len(mine) >= FEWEST else None

    def _predict(
        self,
        events: Events,
        in_force: dict[str, Any],
        asked: dict[str, Any],
        setting: tuple[Any, ...],
        now_ns: int,
    ) -> None:
        begin = time.thread_time_ns()
        try:
            made = predicted(events, self._label, in_force, asked)
        except Exception:  # a model that fails says nothing; the console goes on
            made = Model((), 0.0)
        cost_ns = time.thread_time_ns() - begin if self._spare else 0
        self._of, self._made = setting, made
        self._due_ns = now_ns + max(OFTEN_NS, int(cost_ns / COST_SHARE))
        self._running = False


def predicted(events: Events, label: ModelLabel, in_force: dict[str, Any], asked: dict[str, Any]) -> Model:
    """What each switch of `asked` would give, the best first.

    Raises:
        BadInput: nothing can be predicted from these events.
    """
    from strata_tui.analysis.what_if import Setting, WhatIf

    now = Setting.of(in_force, allocated=max(1, label.pipeline_max))
    model = WhatIf(events, len(label.stages), now, label.shared_cores, label.hand_offs)
    base = model.predict(now)
    if abs(model.off) > MOST_OFF:
        return Model((), model.off)
    made, unsure = [], []
    for name, value in asked.items():
        if value == in_force.get(name) or (name == "draft_max" and value > now.draft_max):
            continue
        other = model.predict(replace(now, **{name: value}))
        if other.unsure:
            unsure.append(name)
            continue
        gain = other.tokens_per_s / base.tokens_per_s - 1
        made.append(Predicted(name, value, gain, other.ms_per_window))
    return Model(tuple(sorted(made, key=lambda prediction: -prediction.gain)), model.off, tuple(unsure))


def _setting(in_force: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(in_force.get(name) for name in (*NAMES, "draft"))


def prediction_line(model: Model) -> str:
    """For a person; "" for none."""
    if model.is_off:
        return f"the model is {model.off:+.0%} off for what is in force: it predicts nothing here"
    parts = [
        f"{KEYS[p.name]} ({p.name.replace('_', '-')}={shown(p.name, p.value)}) {p.gain:+.0%} tok/s, "
        f"{p.ms_per_window:.1f} ms/window"
        for p in model.predictions
    ]
    if parts:
        parts[-1] += f" (of what is in force it is {model.off:+.0%} off)"
    if model.unsure:
        keys = " ".join(KEYS[name] for name in model.unsure)
        parts.append(f"{keys}: not predicted, more stages at once than cores, and not pinned to them")
    return "; ".join(parts)
