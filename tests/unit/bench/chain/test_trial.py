"""A stage's way through a backlog: what of it is measured."""

import pytest

from infra.errors import UserError
from tests.bench.chain.trial import Look, warm_rate


def test_the_rate_is_that_of_the_part_in_which_a_stage_is_warm():
    looks = [Look(0, 0.0, 5), Look(20, 0.5, 15), Look(23, 0.7, 16), Look(24, 0.9, 17), Look(40, 1.0, 18)]
    assert warm_rate(looks, 1_000_000) == {"events_per_s": 100_000, "cpu_seconds_per_million": 5.0}


def test_a_backlog_that_is_too_short_to_be_measured_is_told():
    with pytest.raises(UserError, match="a backlog of 1,000 events was read between two looks"):
        warm_rate([Look(0, 0.0, 5), Look(2, 1.0, 6)], 1_000)
