"""Rows of statistics against a computation in exact arithmetic, however they were put together."""

import math
from collections import defaultdict
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.statistics.quantiles import PERCENT, quantiles
from jobs.statistics.rows import LARGEST, Rows

NAMES = tuple(field.name for field in fields(Rows))

values = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.1, LARGEST, -LARGEST, 5e-324])
tables = st.lists(st.tuples(st.integers(0, 3), values, st.booleans()), min_size=1, max_size=40)


def rows(table):
    """Points in the order of their series, as the shard hands them over."""
    series, value, valid = (np.array(column) for column in zip(*sorted(table, key=lambda row: row[0]), strict=True))
    return Rows.of_points(series.astype(np.int64), value, np.where(valid, value, 0.0), valid, valid)


def as_bytes(found):
    return [getattr(found, name).tobytes() for name in NAMES]


def close(found, exact, scale):
    """Equal but for rounding, in numbers of size `scale`; what is beyond the largest float is that."""
    wanted = max(-Fraction(LARGEST), min(Fraction(LARGEST), exact))
    return abs(Fraction(found) - wanted) <= Fraction(1, 10**13) * max(scale, Fraction(5e-324) * 10**14)


def assert_exact(found, table):
    """`found` has one row a series of the table, with its statistics."""
    points, groups = defaultdict(int), defaultdict(list)
    for series, value, valid in table:
        points[series] += 1
        groups[series] += [value] if valid else []
    assert found.series.tolist() == sorted(points)
    assert found.points.tolist() == [points[series] for series in sorted(points)]
    for row, series in enumerate(sorted(points)):
        group = groups[series]
        assert found.n[row] == len(group)
        if not group:
            continue
        exact = [Fraction(value) for value in group]
        largest, mean = max(map(abs, exact)), sum(exact) / len(exact)
        # The sum of the squares is kept, and cut to the largest float, not the variance.
        squares = min(Fraction(LARGEST), sum((value - mean) ** 2 for value in exact))
        variance = squares / max(1, len(exact) - 1)
        assert (found.min[row], found.max[row]) == (min(group), max(group))
        assert (found.first[row], found.last[row]) == (group[0], group[-1])
        assert close(found.sum[row], sum(exact), largest * len(exact))
        assert close(found.mean[row], mean, largest)
        assert close(found.variance[row], variance, largest**2)


@given(tables)
def test_points_give_what_exact_arithmetic_gives(table):
    assert_exact(rows(table).combined(), table)


# What is cut to the largest float in one pane can't be made good by another.
moderate = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 0.1, 5e-324])
panes_of_points = st.lists(
    st.lists(st.tuples(st.integers(0, 3), moderate, st.booleans()), min_size=1, max_size=40), min_size=1, max_size=5
)


@given(panes_of_points)
@example([[(0, 0.0, True), (0, 0.0, True), (0, 1.6421143998803137e154, True)]])
def test_panes_give_what_their_points_give(panes):
    merged = Rows.concatenated([rows(table).combined() for table in panes]).by_series().combined()
    whole = [row for table in panes for row in table]
    assert_exact(merged, whole)
    series = sorted({series for series, _, valid in whole if valid})
    if series:
        groups = [sorted(value for s, value, valid in whole if s == one and valid) for one in series]
        wanted = [[group[-(-len(group) * percent // 100) - 1] for group in groups] for percent in PERCENT]
        found = quantiles(merged.value, merged.weight, merged.length[merged.length > 0])
        assert [column.tolist() for column in found] == wanted


@given(tables)
def test_everything_is_finite(table):
    found = rows(table).combined()
    for name in NAMES:
        assert np.isfinite(getattr(found, name)).all(), name
    assert np.isfinite(found.variance).all()


def test_zero_of_either_sign_is_the_same():
    one = [(0, 0.0, True), (0, -0.0, True)]
    assert as_bytes(rows(one).combined()) == as_bytes(rows(one[::-1]).combined())


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e300, LARGEST, 123_456.789])
def test_equal_values_have_variance_zero(value):
    found = rows([(0, value, True)] * 7).combined()
    assert (found.mean[0], found.variance[0]) == (value, 0.0)


def test_a_small_spread_about_a_large_mean_is_not_cancelled():
    panes = [rows([(0, 1e9 + number % 2, True) for number in range(100)]).combined() for _ in range(10)]
    merged = Rows.concatenated(panes).by_series().combined()
    assert math.isclose(merged.variance[0], 250 / 999, rel_tol=1e-12)


def test_nothing_stays_nothing():
    assert len(Rows.empty().combined()) == 0
