"""What a counter grew by: steps, resets, wrap-around, first points."""

import numpy as np
import pytest

from jobs.statistics.counters import growth

SECOND = 1_000_000_000


def grown(before, now, seconds=5.0, before_time=10 * SECOND):
    time = before_time + round(seconds * SECOND)
    return growth(
        np.array([time]), np.array([float(now)]), np.array([before_time]), np.array([float(before)])
    )  # fmt: skip


def test_growth_over_time_is_the_rate():
    found = grown(100, 150)
    assert (found.amount[0], found.rate[0], found.known[0], found.fell[0]) == (50.0, 10.0, True, False)


@pytest.mark.parametrize(
    ("before", "now", "amount"),
    [
        (1000, 40, 40),  # reset
        (1000, 0, 0),
        (2**32 - 10, 15, 25),  # wrapped around
        (2**32 * 0.7, 15, 15),  # too far from the end: reset
        (2**32 - 10, 2**31, 2**31),  # came down too high: reset
        (2.0**64 - 4096, 4096, 8192),
        (5, -3, 0),  # no counter is negative
    ],
)
def test_a_fall_is_a_reset_or_a_wrap(before, now, amount):
    found = grown(before, now)
    assert (found.amount[0], found.fell[0], found.known[0]) == (amount, True, True)
    assert found.rate[0] == amount / 5


def test_the_first_point_has_no_rate():
    found = growth(np.array([SECOND]), np.array([7.0]), np.array([-1]), np.array([0.0]))
    assert (found.known[0], found.amount[0], found.fell[0]) == (False, 0.0, False)


def test_two_points_of_one_moment_have_no_rate_but_grow():
    found = grown(100, 150, seconds=0)
    assert (found.known[0], found.amount[0], found.rate[0]) == (False, 50.0, 0.0)
