"""Runs arms: an engine for each number of stages, live switches set, each text beside plain decoding's."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strata_tui.check.arms import ALL_FRONT_STAGES, Arm, Text
from strata_tui.check.compare import Outcome, finish_difference, state_difference, text_difference
from strata_tui.check.texts import PROMPTS
from strata_tui.engine import Engine
from strata_tui.errors import StrataError
from strata_tui.events import Events, Kind
from strata_tui.options import Sampling
from strata_tui.switches import MAX_DRAFTS

SHORT_READ = 64  # longer prompts are read in chunks
PLAIN = {
    "overlap": False,
    "pipeline_windows": 0,
    "draft": "none",
    "draft_max": 4,
    "theta": 0.2,
    "force_miss": 0,
    "spec_depth": ALL_FRONT_STAGES,
    "chain_ahead": True,
    "keep_drafting": True,  # a drafter that is never right is an arm too
    "short_read": SHORT_READ,
    "rate": 0.0,
}


@dataclass(frozen=True)
class Result:
    """What an arm gave: a text, a state, and what happened on the way."""

    arm: Arm
    outcome: Outcome
    differences: tuple[str, ...]
    in_force: Mapping[str, Any]
    stats: Mapping[str, Any]
    front_stages: Mapping[
        str, Sequence[int]
    ]  # "kept", "rolled_back": of each guess, those that it had reached
    cut_by_end: bool  # an end token came amid the accepted rows of a window
    seconds: float

    @property
    def identical(self) -> bool:
        return not self.differences

    @property
    def guesses(self) -> Mapping[str, int]:
        guesses: Mapping[str, int] = self.stats["guesses"]
        return guesses

    def fate(self, name: str) -> int:
        return self.guesses[name]


@dataclass
class Check:
    """Arms against plain decoding.

    Attributes:
        open_engine: an engine of so many stages; None: of the placement that was asked for.
        samplings: by the names that arms use.
        n_tokens: of a text.
        references: plain decoding's outcome by text, for each list of kernels by layer.
    """

    open_engine: Callable[[int], Engine]
    samplings: Mapping[str, Sampling]
    n_tokens: int
    references: dict[tuple[str, ...], dict[Text, Outcome]] = field(default_factory=dict)
    _end_tokens: dict[tuple[str, str], int] = field(default_factory=dict)
    _draft_cells: dict[tuple[Text, str, int], tuple[int, Arm]] = field(default_factory=dict)

    def refer(self, stages: int, texts: Sequence[Text]) -> Iterator[tuple[Text, Outcome, str]]:
        """Plain decoding of each text, twice; yields how the second differs ("": it doesn't).

        A text that is to end by a token comes after the same text to its limit: that says which token.
        """
        with self.open_engine(stages) as engine:
            found = self.references.setdefault(backend(engine), {})
            for text in texts:
                first, second = (self._decode(engine, text, PLAIN)[0] for _ in range(2))
                found[text] = first
                yield text, first, next(iter(_differences(first, second)), "")
                # The token that is new last: the text goes on as long as it can before it, and some way
                # behind it, so that a window that it ends has rows there too.
                early = first.tokens[: max(1, len(first.tokens) - MAX_DRAFTS)]
                self._end_tokens.setdefault(text[:2], list(dict.fromkeys(early))[-1])

    def run(self, arms: Sequence[Arm]) -> Iterator[Result]:
        """Each arm in turn; an engine is loaded where the number of stages changes."""
        for stages, placed in itertools.groupby(arms, lambda arm: arm.stages):
            with self.open_engine(stages) as engine:
                if backend(engine) not in self.references:
                    raise StrataError("[check] the placements differ in their kernels: name one by --split")
                for arm in placed:
                    yield self._run_arm(engine, arm)

    def _run_arm(self, engine: Engine, arm: Arm) -> Result:
        references = self.references[backend(engine)]
        reference = references[arm.text]
        to_its_limit = references[arm.prompt, arm.sampling, "limit"]  # drafts don't know that a token ends it
        begin = time.monotonic()
        # One window in flight means prompt windows only: there, every prompt is read through them.
        short_read = 1 << 20 if arm.pipeline_windows == 1 else SHORT_READ
        switches = {**arm.switches, "short_read": short_read}
        outcome, stats, events = self._decode(engine, arm.text, switches, to_its_limit.tokens)
        differences = [*_differences(reference, outcome), self._draft_difference(arm, outcome)]
        return Result(
            arm=arm,
            outcome=outcome,
            differences=tuple(filter(None, differences)),
            in_force=engine.switches.in_force(),
            stats=stats,
            front_stages={
                "kept": events["a"][events["kind"] == Kind.guess_kept].tolist(),
                "rolled_back": events["a"][events["kind"] == Kind.guess_rolled_back].tolist(),
            },
            cut_by_end=arm.ending == "token" and _cut_short(events),
            seconds=time.monotonic() - begin,
        )

    def _draft_difference(self, arm: Arm, outcome: Outcome) -> str:
        """Draft cells with other values than those of an arm with the same drafter and as many of them."""
        if outcome.draft_cells is None or outcome.error:
            return ""
        key = (arm.text, arm.draft, outcome.draft_length)
        cells, other = self._draft_cells.setdefault(key, (outcome.draft_cells, arm))
        if cells == outcome.draft_cells:
            return ""
        return f"the draft layer's {outcome.draft_length} cells differ from those of: {other.name}"

    def _decode(
        self, engine: Engine, text: Text, switches: Mapping[str, Any], replay: Sequence[int] = ()
    ) -> tuple[Outcome, dict[str, Any], Events]:
        prompt, sampling, ending = text
        for name, value in switches.items():
            setattr(engine.switches, name, value)
        tokens = engine.tokens_of(PROMPTS[prompt])
        limit, end_tokens = self.n_tokens, []
        if ending == "token":  # the limit should cut no window before it
            limit, end_tokens = limit + MAX_DRAFTS, [self._end_tokens[prompt, sampling]]
        # What has no room goes from the front: the end is what the text goes on from.
        tokens = tokens[-max(1, engine.context - limit) :]
        session = engine.session()
        engine.events()
        events = []
        session.start(tokens, limit, self.samplings[sampling], end_tokens, replay=replay)
        try:
            while session.running:
                session.wait(0.5)
                session.read()
                events.append(engine.events())
        finally:
            if session.running:
                session.cancel()
                session.to_the_end()
        events.append(engine.events())
        emitted = session.tokens[len(tokens) :]
        if session.finish == "error":
            outcome = Outcome(emitted, error=session.error)
        else:
            outcome = Outcome.of(emitted, session.fingerprint(), session.finish)
        return outcome, session.stats(), np.concatenate(events)


def _differences(plain: Outcome, other: Outcome) -> list[str]:
    if other.error:
        return [other.error]
    compared = (text_difference, finish_difference, state_difference)
    return [line for difference in compared if (line := difference(plain, other))]


def _cut_short(events: Events) -> bool:
    """Did a verdict count fewer tokens than it had accepted? An end token did that, or the limit."""
    verdicts = events[events["kind"] == Kind.verdict]
    return bool((verdicts["b"] < verdicts["a"] + 1).any())


def backend(engine: Engine) -> tuple[str, ...]:
    """The kernels of each layer: what a text depends on beside model, prompt and sampling."""
    return tuple(
        stage.numerics for stage in engine.stages for _ in range(stage.first_layer, stage.last_layer + 1)
    )


def tokens_sha256(*texts: Sequence[int]) -> str:
    """Of token ids in decimal, one a line, texts one after the other."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update("".join(f"{token}\n" for token in text).encode())
    return digest.hexdigest()
