"""Made-up events of a decode run: what the engine would record, for any number of windows, without an engine.

Times are what a rig of equal stages gives; tokens count up, modulo a vocabulary. Nothing here is read from
our own code but the dtype and the numbers in it.
"""

from typing import Any

import numpy as np

from strata_tui.events import DRAFT_LANE, EVENT_DTYPE, HOST_LANE, Events, Kind, SwitchId, WindowFate

STAGE_NS = 400_000
HOP_NS = 7_003  # between a stage's end and the next one's begin
DRAFT_NS = 60_000
START_NS = 8_123_456_789_012  # the clock did not begin with the run


VOCABULARY = 8192


def make(
    kind: Kind, start_ns: Any, dur_ns: Any = 0, window: Any = 0, stage: Any = HOST_LANE, **rest: Any
) -> Events:
    """Events of one kind from columns that broadcast; `rest` = rows, a, b."""
    fields = dict(start_ns=start_ns, dur_ns=dur_ns, window=window, kind=int(kind), stage=stage, **rest)
    columns = np.broadcast_arrays(*fields.values())
    events = np.zeros(columns[0].size, EVENT_DTYPE)
    for name, column in zip(fields, columns, strict=True):
        events[name] = column.reshape(-1)
    return events


def decode_run(windows: int, stages: int = 2, rows: int = 4, seed: int = 1, overlap: bool = False) -> Events:
    """One request, serial or overlapped, each window with rows - 1 drafts of which some are accepted.

    Per window: stages x (stage_inputs, launch, run, commit), stages - 1 x (wait_ready, publish), a sync, a
    verdict, rows - 1 x (draft_step, draft_token), the tokens; a toggle in the middle. Sorted by start.
    """
    rng = np.random.default_rng(seed)
    accepted = rng.integers(0, rows, windows)  # 0 .. rows - 1
    ids = np.arange(1, windows + 1)
    period = stages * (STAGE_NS + HOP_NS) + 30_000 + (rows - 1) * DRAFT_NS + 20_000
    begin = START_NS + 1_000_000 + np.arange(windows) * period
    position = 16 + np.concatenate([[0], np.cumsum(accepted + 1)[:-1]])
    parts = [make(Kind.request_begin, START_NS, window=1, a=16, b=0)]
    parts.append(make(Kind.window, begin, window=ids, rows=rows, a=position, b=WindowFate.fresh))
    for stage in range(stages):
        run = begin + 10_000 + stage * (STAGE_NS + HOP_NS)
        ahead = overlap and stage > 0
        launched = begin + 5_000 + stage * 1_500 if overlap else run - 3_000
        parts.append(make(Kind.stage_inputs, launched - 1_200, 700, ids, stage, rows=rows))
        parts.append(make(Kind.launch, launched, 500, ids, stage, rows=rows, a=int(ahead)))
        parts.append(make(Kind.run, run, STAGE_NS, ids, stage, rows=rows, a=position))
        if stage:
            waited = launched + 1_000
            parts.append(make(Kind.wait_ready, waited, run - waited - 100, ids, stage, rows=rows))
        if stage < stages - 1:
            parts.append(make(Kind.publish, run + STAGE_NS - 2_000, 2_000, ids, stage, rows=rows))
    end = begin + 10_000 + stages * (STAGE_NS + HOP_NS) - HOP_NS
    parts.append(make(Kind.sync, end, 4_000, ids, stages - 1))
    parts.append(make(Kind.verdict, end + 4_000, 6_000, ids, rows=rows, a=accepted, b=accepted + 1))
    for stage in range(stages):
        parts.append(make(Kind.commit, end + 10_000, 3_000, ids, stage, rows=accepted + 1))
    for draft in range(1, rows):
        step, token = end + 12_000 + (draft - 1) * DRAFT_NS, (position + draft) % VOCABULARY
        parts.append(make(Kind.draft_step, step, DRAFT_NS, ids, DRAFT_LANE, a=draft, b=token))
        parts.append(make(Kind.draft_token, begin, window=ids, rows=draft, a=token, b=900_000))
    for t in range(rows):
        kept = accepted >= t
        token = (position[kept] + t) % VOCABULARY
        parts.append(make(Kind.token, end[kept] + 9_000, window=ids[kept], a=token, b=position[kept] + t + 1))
    middle = slice(windows // 2, windows // 2 + 1)
    parts.append(make(Kind.toggle, begin[middle], window=ids[middle], a=SwitchId.overlap, b=1))
    last = int(end[-1]) if windows else START_NS
    parts.append(make(Kind.request_end, last + 20_000, window=1, a=2, b=int((accepted + 1).sum())))
    events = np.concatenate(parts)
    return events[np.argsort(events["start_ns"], kind="stable")]
