"""The windows of a session: what each drafted, what was accepted, what became of it, and when."""

import numpy as np
import numpy.typing as npt

from strata_tui.analysis.fate import CLASSES, Fate
from strata_tui.analysis.guesses import GuessCounts, count_guesses
from strata_tui.analysis.spans import Ring
from strata_tui.events import Events, Kind

MAX_DRAFTS = 7
NEWEST = 1024  # events nearly always concern one of these: what is older is searched only when it must be


WINDOW_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("id", "<u4"),
        ("request", "<u4"),
        ("position", "<i4"),  # of row 0
        ("rows", "<u2"),  # T
        ("fate", "u1"),  # Fate
        ("accepted", "<i2"),  # -1 before the verdict
        ("emitted", "<i2"),  # tokens it yielded
        ("start_ns", "<i8"),  # when it was built
        ("end_ns", "<i8"),  # end of its verdict, or when the guess was given up; 0 before
        ("busy_ns", "<i8"),  # verdict to verdict less what was held back; 0 before the verdict
        ("run_ns", "<i8"),  # device time of its programs, all stages
        ("drafts", "<i4", (MAX_DRAFTS,)),  # token ids of rows 1.., -1 = none
        ("probabilities", "<f4", (MAX_DRAFTS,)),
        ("guessed", "<i4"),  # a guess's row 0: the bonus that it assumes; -1 = none
        ("estimate", "<f4"),  # of a guess; -1 = none
        ("bonus", "<i4"),  # the last token that it yielded, -1 = none
        ("miss", "u1"),  # MissCause of the guess behind it; 0 = there was none, or it came true
        ("second_right", "?"),  # the draft's second choice was the bonus that was missed
    ],
    align=True,
)
WindowArray = npt.NDArray[np.void]
Int64 = npt.NDArray[np.int64]

# In the order of a guess's life: where events of several come together, the last one holds.
_BECOMES = {
    Kind.guess_launched: Fate.IN_FLIGHT,
    Kind.guess_gated: Fate.GATED,
    Kind.guess_late: Fate.LATE,
    Kind.guess_ended: Fate.ENDED,
    Kind.guess_rolled_back: Fate.ROLLED_BACK,
}


class WindowLog:
    """The last windows, newest last, filled in as events come; ids only rise, so a window is found by search.

    The counters cover every window since the last `clear_counters`, whatever the log has let go.
    """

    def __init__(self, capacity: int = 1 << 16) -> None:
        self._ring = Ring(WINDOW_DTYPE, capacity)
        self._last_verdict_ns = 0  # end of the verdict before, 0 at the start of a request
        self._held = np.zeros((0, 2), np.int64)  # [n, 2] held back from .. to, behind that verdict
        self.clear_counters()

    def clear_counters(self) -> None:
        """Begin to count anew."""
        self.decoded = self.drafted = self.accepted = self.emitted = 0
        self.busy_ns = 0
        self.decoded_by_class = np.zeros(len(CLASSES), np.int64)
        self.busy_ns_by_class = np.zeros(len(CLASSES), np.int64)
        self.guesses = GuessCounts()
        self.run_ns = self.wasted_ns = 0  # device time of all windows, and of those rolled back
        self.had_draft = np.zeros(MAX_DRAFTS, np.int64)  # windows that had a k-th draft, k = 1..
        self.hit_draft = np.zeros(MAX_DRAFTS, np.int64)  # windows whose first k drafts were accepted

    @property
    def rows(self) -> WindowArray:
        """What is kept, oldest first; dies with the next `take`."""
        return self._ring.rows

    def take(self, events: Events, request: int) -> None:
        """Account for the events of one request; in any order within a producer's lag, O(events)."""
        kind = events["kind"]
        built = events[kind == Kind.window]
        if len(built):
            self._ring.append(_new_rows(built, request))
        drafts = events[kind == Kind.draft_token]
        if len(drafts):
            at, known = self._find(drafts["window"])
            k = drafts["rows"].astype(np.int64) - 1
            ok = known & (k >= 0) & (k < MAX_DRAFTS)
            self.rows["drafts"][at[ok], k[ok]] = drafts["a"][ok]
            self.rows["probabilities"][at[ok], k[ok]] = drafts["b"][ok] / 1e6
            bonus = known & (k == -1)
            self.rows["guessed"][at[bonus]] = drafts["a"][bonus]
        self._take_runs(events[kind == Kind.run])
        self._take_bonuses(events[kind == Kind.token])
        told = ((kind >= Kind.guess_built) & (kind <= Kind.guess_ended)) | (kind == Kind.miss)
        if told.any():
            self._take_guesses(events[told])
        self._close(events[(kind == Kind.verdict) & (events["b"] > 0)], events)

    def fates(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
        """The fate of each of these windows by now; FRESH for those not kept."""
        at, known = self._find(ids)
        fates = np.zeros(len(ids), np.uint8)
        fates[known] = self.rows["fate"][at[known]]
        return fates

    def begin_request(self) -> None:
        """The next window has no verdict before it to be timed from."""
        self._last_verdict_ns = 0
        self._held = self._held[:0]

    def _take_runs(self, runs: Events) -> None:
        """Device time; a program of a guess may report back before and after the guess is rolled back."""
        if not len(runs):
            return
        at, known = self._find(runs["window"])
        run_ns = runs["dur_ns"].astype(np.int64)
        self.run_ns += int(run_ns.sum())
        at, run_ns = at[known], run_ns[known]
        np.add.at(self.rows["run_ns"], at, run_ns)
        self.wasted_ns += int(run_ns[self.rows["fate"][at] == Fate.ROLLED_BACK].sum())

    def _take_bonuses(self, tokens: Events) -> None:
        """Of each window's tokens the one at the last position."""
        if len(tokens):
            tokens = tokens[np.argsort(tokens["b"], kind="stable")]
            at, known = self._find(tokens["window"])
            self.rows["bonus"][at[known]] = tokens["a"][known]  # of several the last one stays

    def _take_guesses(self, events: Events) -> None:
        self.guesses += count_guesses(events)
        built = events[events["kind"] == Kind.guess_built]
        at, known = self._find(built["window"])
        self.rows["estimate"][at[known]] = built["a"][known] / 1e6
        missed = events[events["kind"] == Kind.miss]
        at, known = self._find(missed["window"])
        self.rows["miss"][at[known]] = missed["a"][known]
        self.rows["second_right"][at[known]] = missed["b"][known] == 1
        for kind, fate in _BECOMES.items():
            met = events[events["kind"] == kind]
            if not len(met):
                continue
            at, known = self._find(met["window"])
            at = at[known]
            self.rows["fate"][at] = fate
            if fate != Fate.IN_FLIGHT:
                self.rows["end_ns"][at] = met["start_ns"][known].astype(np.int64)
            if fate == Fate.ROLLED_BACK:
                self.wasted_ns += int(self.rows["run_ns"][at].sum())
        kept = events[events["kind"] == Kind.guess_kept]
        if len(kept):
            at, known = self._find(kept["window"])
            self.rows["fate"][at[known]] = kept["b"][known]

    def _find(self, ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        kept = self.rows["id"]
        first = max(0, len(kept) - NEWEST)
        if first and len(ids) and ids.min() < kept[first]:
            first = 0
        at = first + np.searchsorted(kept[first:], ids)
        known = at < len(kept)
        known[known] = kept[at[known]] == ids[known]
        return at, known

    def _close(self, verdicts: Events, events: Events) -> None:
        held = events[(events["kind"] == Kind.throttle) | (events["kind"] == Kind.paused)]
        since_then = np.stack([held["start_ns"], held["start_ns"] + held["dur_ns"]], axis=1).astype(np.int64)
        self._held = np.concatenate([self._held, since_then])
        if not len(verdicts):
            return
        end = (verdicts["start_ns"] + verdicts["dur_ns"]).astype(np.int64)
        at, known = self._find(verdicts["window"])
        first = self._last_verdict_ns
        if not first:
            first = int(self.rows["start_ns"][at[0]]) if known[0] else int(verdicts["start_ns"][0])
        held_from, held_to = self._held[np.argsort(self._held[:, 1], kind="stable")].T
        held_ns = np.maximum(
            held_to - np.maximum(held_from, first), 0
        )  # what lay before the first is not its
        held_by = np.concatenate([[0], np.cumsum(held_ns)])
        held_until = held_by[np.searchsorted(held_to, end, side="right")]
        since = np.diff(end, prepend=first) - np.diff(held_until, prepend=0)
        self._last_verdict_ns = int(end[-1])
        self._held = self._held[self._held[:, 1] > end[-1]]

        kept = at[known]
        self.rows["accepted"][kept] = verdicts["a"][known]
        self.rows["emitted"][kept] = verdicts["b"][known]
        self.rows["end_ns"][kept] = end[known]
        self.rows["busy_ns"][kept] = since[known]
        n_drafts = np.maximum(verdicts["rows"].astype(np.int64) - 1, 0)  # 0 rows: not known
        self.decoded += len(verdicts)
        self.drafted += int(n_drafts.sum())
        self.accepted += int(verdicts["a"].sum())
        self.emitted += int(verdicts["b"].sum())
        self.busy_ns += int(since.sum())
        fates = np.zeros(len(verdicts), np.int64)
        fates[known] = self.rows["fate"][kept]
        for i, fate in enumerate(CLASSES):
            self.decoded_by_class[i] += np.count_nonzero(fates == fate)
            self.busy_ns_by_class[i] += since[fates == fate].sum()
        depth = np.arange(1, MAX_DRAFTS + 1)
        self.had_draft += (n_drafts[:, None] >= depth).sum(axis=0)
        self.hit_draft += (verdicts["a"][:, None] >= depth).sum(axis=0)


def _new_rows(built: Events, request: int) -> WindowArray:
    rows = np.zeros(len(built), WINDOW_DTYPE)
    rows["id"] = built["window"]
    rows["request"] = request
    rows["position"] = built["a"]
    rows["rows"] = built["rows"]
    rows["fate"] = built["b"]
    rows["accepted"] = -1
    rows["start_ns"] = built["start_ns"]
    rows["drafts"] = rows["guessed"] = rows["estimate"] = rows["bonus"] = -1
    return rows[np.argsort(rows["id"], kind="stable")]
