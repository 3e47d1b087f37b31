"""Shapes: what is told by colour is told by shape too."""

from dataclasses import dataclass

from strata_tui.analysis.fate import Fate
from strata_tui.analysis.lane_state import LaneState

BLOCKS = " ▁▂▃▄▅▆▇█"
# A lane is a level meter: the nearer to useful work, the higher. In eighths of the lane's lowest row, so that
# the legend shows what is drawn; what is full fills all rows.
LEVELS = {
    LaneState.WAIT: 2,
    LaneState.HOST: 4,
    LaneState.VERDICT: 5,
    LaneState.COMMIT: 6,
    LaneState.DRAFT: 8,
    LaneState.RUN_EVEN: 8,
    LaneState.RUN_ODD: 8,
}


@dataclass(frozen=True)
class Glyphs:
    """One set of shapes. `patterns` fill a lane's whole height; states without one are levels."""

    patterns: dict[LaneState, str]
    baseline: str  # idle, on the lowest row
    mark: str
    path: str  # the critical path over a lane
    cursor: tuple[str, str, str]  # first and last cell of a span; the only one
    flag: str  # above a mark, on the ruler
    tick: str
    accepted: str
    rejected: str
    fates: dict[int, str]  # Fate
    parts: dict[str, str]  # of a stage's time; the words are those of analysis.why
    spark: str  # nine levels
    to_do: str  # before what a person should look at first
    played: str  # of a replay's bar
    to_come: str
    handle: str
    done: str  # before what has been done
    failed: str
    pause: str
    live: str
    recording: str
    replay: str
    stopped: str
    dot: str
    times: str
    ellipsis: str  # where a line is cut

    def lane(self, state: LaneState, row: int, height: int) -> str:
        """The character of a state on a lane's row; row 0 is the top one."""
        if state in self.patterns:
            return self.patterns[state]
        if state == LaneState.IDLE:
            return self.baseline if row == height - 1 else " "
        level = LEVELS[state]
        return BLOCKS[level if row == height - 1 or level == 8 else 0]


_UNICODE_PATTERNS = {
    LaneState.COMMIT_AHEAD: "▸",
    LaneState.UNDO: "◂",
    LaneState.PREFILL: "▒",
    LaneState.LOST: "╳",  # noqa: RUF001
    LaneState.GUESS: "▞",
    LaneState.THROTTLED: "╱",  # noqa: RUF001
    LaneState.PAUSED: "╎",
    LaneState.IN_FLIGHT: "░",
    LaneState.UNKNOWN: " ",
}

COLOUR = Glyphs(
    patterns=_UNICODE_PATTERNS,
    baseline="▁",
    mark="┃",
    path="━",
    cursor=("[", "]", "*"),
    flag="▼",
    tick="╷",
    accepted="■",
    rejected="□",
    fates={
        Fate.FRESH: "○",
        Fate.KEPT_AFTER_FRESH: "◆",
        Fate.KEPT_AFTER_KEPT: "◈",
        Fate.PROMPT: "·",
        Fate.GUESS: "◇",
        Fate.IN_FLIGHT: "◌",
        Fate.ROLLED_BACK: "✕",
        Fate.GATED: "–",  # noqa: RUF001
        Fate.LATE: "◦",
        Fate.ENDED: "⊘",
    },
    parts={
        "run": "█",
        "commit": "▆",
        "undo": "◂",
        "idle_hand_off": "▂",
        "idle_verdict": "▒",
        "idle_draft": "▚",
        "idle_undo": "◃",
        "idle_host": "▄",
        "idle_no_work": "·",
    },
    spark=BLOCKS,
    to_do="▶",
    played="━",
    to_come="─",
    handle="●",
    done="✓",
    failed="✕",
    pause="▮▮",
    live="●",
    recording="◉",
    replay="▶",
    stopped="■",
    dot="·",
    times="×",  # noqa: RUF001
    ellipsis="…",
)

MONO = Glyphs(**{**COLOUR.__dict__, "patterns": {**_UNICODE_PATTERNS, LaneState.RUN_ODD: "▓"}})
"""NO_COLOR: neighbouring windows differ by shape."""

ASCII = Glyphs(
    patterns={
        LaneState.PAUSED: "z",
        LaneState.THROTTLED: "/",
        LaneState.IN_FLIGHT: ":",
        LaneState.HOST: "h",
        LaneState.VERDICT: "v",
        LaneState.WAIT: "-",
        LaneState.COMMIT_AHEAD: ">",
        LaneState.COMMIT: "c",
        LaneState.UNDO: "<",
        LaneState.DRAFT: "d",
        LaneState.PREFILL: "+",
        LaneState.LOST: "x",
        LaneState.GUESS: "?",
        LaneState.RUN_EVEN: "#",
        LaneState.RUN_ODD: "=",
        LaneState.UNKNOWN: " ",
    },
    baseline=".",
    mark="|",
    path="*",
    cursor=("[", "]", "@"),
    flag="v",
    tick="'",
    accepted="#",
    rejected="-",
    fates={
        Fate.FRESH: "o",
        Fate.KEPT_AFTER_FRESH: "k",
        Fate.KEPT_AFTER_KEPT: "K",
        Fate.PROMPT: ".",
        Fate.GUESS: "g",
        Fate.IN_FLIGHT: "?",
        Fate.ROLLED_BACK: "x",
        Fate.GATED: "~",
        Fate.LATE: "l",
        Fate.ENDED: "e",
    },
    parts={
        "run": "#",
        "commit": "c",
        "undo": "<",
        "idle_hand_off": "-",
        "idle_verdict": "v",
        "idle_draft": "d",
        "idle_undo": "u",
        "idle_host": "h",
        "idle_no_work": ".",
    },
    spark=" .:-=+*#@",
    to_do=">",
    played="=",
    to_come="-",
    handle="O",
    done="+",
    failed="!",
    pause="||",
    live="*",
    recording="(*)",
    replay=">",
    stopped="#",
    dot="-",
    times="x",
    ellipsis="...",
)
