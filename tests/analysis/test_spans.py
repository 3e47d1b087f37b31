"""The bounded stores."""

import numpy as np
import pytest

from strata_tui.analysis.spans import SPAN_DTYPE, Ring, SpanTrack


@pytest.mark.parametrize("capacity", [1, 3, 100, 5000])
def test_a_ring_keeps_the_last_rows_and_counts_the_rest(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    ring = Ring(np.dtype([("n", "<i8")]), capacity)
    said: list[int] = []
    for _ in range(60):
        batch = np.zeros(int(rng.integers(0, 300)), [("n", "<i8")])
        batch["n"] = np.arange(len(said), len(said) + len(batch))
        said += batch["n"].tolist()
        ring.append(batch)
        assert ring.rows["n"].tolist() == said[-capacity:]
        assert ring.dropped == max(0, len(said) - capacity)
    assert len(ring._rows) <= 2 * capacity + 1024


def test_a_track_is_sorted_however_the_producers_were_drained() -> None:
    rng = np.random.default_rng(3)
    track, every = SpanTrack(), np.zeros(0, SPAN_DTYPE)
    for batch in range(40):
        spans = np.zeros(25, SPAN_DTYPE)
        spans["start"] = batch * 100 + rng.integers(-150, 150, 25)
        spans["end"] = spans["start"] + rng.integers(0, 400, 25)
        track.add(spans)
        every = np.concatenate([every, spans])
        t0 = int(rng.integers(0, 3000))
        t1 = t0 + int(rng.integers(1, 500))
        expected = every[(every["start"] < t1) & (every["end"] > t0)]
        found = track.between(t0, t1)
        assert np.all(np.diff(found["start"]) >= 0)
        assert sorted(found.tolist()) == sorted(expected.tolist())
