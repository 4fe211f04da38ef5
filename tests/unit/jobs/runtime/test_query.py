"""When a query's micro-batches begin."""

import pytest

from jobs.runtime.job import Query
from jobs.runtime.query import pause_seconds, rest_seconds

MINUTE = 1_000_020  # s since the epoch


@pytest.mark.parametrize(("now", "pause"), [(0, 5), (1.5, 3.5), (5, 0), (42, 0), (59.9, 0), (60, 5)])
def test_a_batch_waits_for_its_phase_only_at_the_begin_of_an_interval(now, pause):
    query = Query("archive", None, None, 60.0, phase_seconds=5.0)
    assert pause_seconds(query, MINUTE + now) == pytest.approx(pause)


def test_without_a_phase_nothing_waits():
    assert pause_seconds(Query("enrichment", None, None, 2.0), MINUTE) == 0


@pytest.mark.parametrize(("took", "rest"), [(0.2, 0), (0.25, 0), (0.3, 0.3), (1, 1), (1.5, 0.5), (2, 0), (9, 0)])
def test_who_works_half_of_the_time_rests_as_long(took, rest):
    query = Query("enrichment", None, None, 0.5, rests_within_seconds=2.0)
    assert rest_seconds(query, took) == pytest.approx(rest)


def test_by_default_nothing_rests():
    assert rest_seconds(Query("detector", None, None, 0.5), 0.4) == 0
