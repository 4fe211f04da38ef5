"""When a query's micro-batches begin."""

import pytest

from jobs.runtime.job import Query
from jobs.runtime.query import pause_seconds

MINUTE = 1_000_020  # s since the epoch


@pytest.mark.parametrize(("now", "pause"), [(0, 5), (1.5, 3.5), (5, 0), (42, 0), (59.9, 0), (60, 5)])
def test_a_batch_waits_for_its_phase_only_at_the_begin_of_an_interval(now, pause):
    query = Query("archive", None, None, 60.0, phase_seconds=5.0)
    assert pause_seconds(query, MINUTE + now) == pytest.approx(pause)


def test_without_a_phase_nothing_waits():
    assert pause_seconds(Query("enrichment", None, None, 2.0), MINUTE) == 0
