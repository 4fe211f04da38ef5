"""Window statistics against a computation in exact arithmetic."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.statistics.windows import LARGEST, NANO, Points, summarise, window_start

SIZE = 10 * NANO
FIELDS = (
    "series", "start", "count", "sum", "mean", "variance", "min", "max", "first", "last", "first_offset", "last_offset"
)  # fmt: skip

values = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.1, LARGEST, -LARGEST, 5e-324])
rows = st.tuples(
    st.integers(0, 3), st.integers(0, 3 * SIZE - 1) | st.sampled_from([0, SIZE, SIZE - 1]), values, st.integers(0, 50)
)
tables = st.lists(rows, min_size=1, max_size=40)


def points(table):
    series, time, value, offset = zip(*table, strict=True)
    return Points(
        np.array(series, np.int64), np.array(time, np.int64), np.array(value, np.float64), np.array(offset, np.int64)
    )


def as_rows(summary):
    columns = [getattr(summary, name).tolist() for name in FIELDS]
    return [dict(zip(FIELDS, row, strict=True)) for row in zip(*columns, strict=True)]


def as_bytes(summary):
    return [getattr(summary, name).tobytes() for name in FIELDS]


def close(found, exact, scale):
    """Equal but for rounding, in numbers of size `scale`; what is beyond the largest float is that."""
    wanted = max(-Fraction(LARGEST), min(Fraction(LARGEST), exact))
    return abs(Fraction(found) - wanted) <= Fraction(1, 10**13) * max(scale, Fraction(5e-324) * 10**14)


@given(tables)
def test_equals_exact_arithmetic(table):
    groups = defaultdict(list)
    for series, time, value, offset in table:
        groups[time - time % SIZE, series].append((time, value, offset))

    found = as_rows(summarise(points(table), SIZE))
    assert [(row["start"], row["series"]) for row in found] == sorted(groups)
    for row in found:
        group = groups[row["start"], row["series"]]
        exact = [Fraction(value) for _, value, _ in group]
        largest, mean = max(map(abs, exact)), sum(exact) / len(exact)
        variance = sum((value - mean) ** 2 for value in exact) / max(1, len(exact) - 1)
        assert row["count"] == len(group)
        assert (row["min"], row["max"]) == (min(exact), max(exact))
        assert close(row["sum"], sum(exact), largest * len(exact))
        assert close(row["mean"], mean, largest)
        assert close(row["variance"], variance, largest**2)
        assert row["first"] == min(group)[1]
        assert row["last"] == max(group)[1]
        assert (row["first_offset"], row["last_offset"]) == (min(g[2] for g in group), max(g[2] for g in group))


@given(tables)
def test_everything_is_finite(table):
    for row in as_rows(summarise(points(table), SIZE)):
        assert all(math.isfinite(value) for value in row.values()), row


@given(tables.flatmap(lambda table: st.tuples(st.just(table), st.permutations(table))))
def test_the_order_of_the_points_does_not_show(tables):
    one, other = tables
    assert as_bytes(summarise(points(one), SIZE)) == as_bytes(summarise(points(other), SIZE))


def test_zero_of_either_sign_is_the_same():
    one = [(0, 5, 0.0, 1), (0, 5, -0.0, 2)]
    assert as_bytes(summarise(points(one), SIZE)) == as_bytes(summarise(points(one[::-1]), SIZE))


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e300, LARGEST, 123_456.789])
def test_equal_values_have_variance_zero(value):
    (row,) = as_rows(summarise(points([(0, time, value, 0) for time in range(7)]), SIZE))
    assert (row["mean"], row["variance"]) == (value, 0.0)


def test_a_small_spread_about_a_large_mean_is_not_cancelled():
    (row,) = as_rows(summarise(points([(0, time, 1e9 + time % 2, 0) for time in range(1000)]), SIZE))
    assert row["variance"] == pytest.approx(250 / 999, rel=1e-12)


def test_one_value_has_variance_zero():
    (row,) = as_rows(summarise(points([(2, SIZE + 1, 42.0, 9)]), SIZE))
    assert row == {
        "series": 2, "start": SIZE, "count": 1, "sum": 42.0, "mean": 42.0, "variance": 0.0, "min": 42.0, "max": 42.0,
        "first": 42.0, "last": 42.0, "first_offset": 9, "last_offset": 9,
    }  # fmt: skip


def test_no_points_have_no_windows():
    assert as_rows(summarise(Points.empty(), SIZE)) == []


def test_a_window_begins_at_its_start_and_ends_before_the_next():
    times = np.array([0, SIZE - 1, SIZE, 2 * SIZE - 1], np.int64)
    assert window_start(times, SIZE).tolist() == [0, 0, SIZE, SIZE]
