"""Histograms: differences, sums of unlike buckets, quantiles within buckets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.statistics.histograms import Spread, merged, quantile, since, spread_of


def histogram(*counts, bounds=(1.0, 2.0, 4.0), total=0.0):
    return spread_of({"count": sum(counts), "sum": total, "bounds": list(bounds), "counts": list(counts)})


def test_what_came_between_two_states():
    found = since(histogram(1, 2, 0, 0, total=4.0), histogram(1, 5, 1, 0, total=12.0))
    assert found == Spread(4, 8.0, {(1.0, 2.0): 3, (2.0, 4.0): 1})


@pytest.mark.parametrize("now", [histogram(0, 1, 0, 0), histogram(9, 0, 0, 0), histogram(5, 5, bounds=(3.0,))])
def test_one_that_began_anew_counts_whole(now):
    assert since(histogram(1, 2, 0, 0), now) == now


def test_quantiles_lie_within_their_bucket():
    spread = histogram(0, 10, 0, 10)
    assert quantile(spread, 50) == 2.0
    assert quantile(histogram(10, 0, 0, 0), 50) == 0.5
    assert quantile(spread, 99) == 4.0  # the last bucket has no end
    assert quantile(spread_of({"count": 3, "sum": 1.0}), 50) is None


def test_what_is_no_number_is_passed_over():
    assert spread_of({"count": 2, "sum": "NaN", "bounds": ["Infinity"], "counts": [1, 1]}) == Spread(2, 0.0, {})
    assert spread_of({}) == Spread(0, 0.0, {})


spreads = st.builds(
    histogram,
    *[st.integers(0, 50)] * 4,
    bounds=st.sampled_from([(1.0, 2.0, 4.0), (1.5, 2.0, 9.0)]),
    total=st.floats(-1e308, 1e308),
)


@given(st.lists(spreads, min_size=1, max_size=6), st.randoms())
def test_the_order_of_spreads_does_not_show(parts, random):
    shuffled = random.sample(parts, len(parts))
    one, other = merged(parts), merged(shuffled)
    assert (one.observations, one.total, dict(one.buckets)) == (other.observations, other.total, dict(other.buckets))
    assert math.isfinite(one.total)
    assert [quantile(one, p) for p in (50, 95, 99)] == [quantile(other, p) for p in (50, 95, 99)]


@given(spreads)
def test_packing_keeps_everything(spread):
    assert Spread.unpacked(spread.packed()) == spread
