"""Quantiles of many runs at once: exact where few values, bounded in rank where many."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.statistics.quantiles import LIMIT, PERCENT, quantiles, sort_runs, thin

finite = st.floats(allow_nan=False, allow_infinity=False)
ragged = st.lists(st.lists(finite, min_size=1, max_size=70), min_size=1, max_size=6)
even = st.integers(1, 20).flatmap(
    lambda size: st.lists(st.lists(finite, min_size=size, max_size=size), min_size=2, max_size=6)
)
runs = ragged | even


def columns(runs):
    value = np.array([value for run in runs for value in run])
    return value, np.ones(len(value), np.int64), np.array([len(run) for run in runs], np.int64)


@given(runs)
def test_each_run_is_sorted_by_itself(runs):
    value, weight, length = columns(runs)
    found, _ = sort_runs(value, weight, length)
    assert found.tolist() == [value for run in runs for value in sorted(run)]


@given(runs)
def test_quantiles_are_the_nearest_rank(runs):
    value, weight, length = columns(runs)
    value, weight = sort_runs(value, weight, length)
    for percent, found in zip(PERCENT, quantiles(value, weight, length), strict=True):
        assert found.tolist() == [sorted(run)[-(-len(run) * percent // 100) - 1] for run in runs]


@given(runs, st.data())
def test_a_weight_stands_for_so_many_values(runs, data):
    value, _, length = columns(runs)
    weight = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(value), max_size=len(value))), np.int64)
    ends = np.cumsum(length)
    repeated = [
        np.repeat(value[end - size : end], weight[end - size : end]).tolist()
        for end, size in zip(ends, length, strict=True)
    ]
    expected = quantiles(*sorted_columns(repeated))
    found = quantiles(*sort_runs(value, weight, length), length)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


def sorted_columns(runs):
    value, weight, length = columns(runs)
    return *sort_runs(value, weight, length), length


def test_long_runs_are_thinned_within_the_bound_and_short_ones_left_alone():
    rng = np.random.default_rng(3)
    long, short = rng.lognormal(size=10_000), rng.normal(size=LIMIT)
    value, weight, length = sorted_columns([long.tolist(), short.tolist()])
    thinned, weights, kept = thin(value, weight, length)
    assert kept.tolist() == [LIMIT, LIMIT]
    assert weights[:LIMIT].sum() == 10_000
    assert thinned[LIMIT:].tolist() == sorted(short.tolist())
    ordered = np.sort(long)
    for percent, found in zip(PERCENT, quantiles(thinned, weights, kept), strict=True):
        rank = int(np.searchsorted(ordered, found[0]))
        assert abs(rank - percent * 100) <= 10_000 / (2 * LIMIT) + 1


def test_weighted_runs_are_thinned_as_their_values_repeated():
    rng = np.random.default_rng(4)
    sizes = np.array([300, 5, LIMIT + 1])
    value = np.concatenate([np.sort(rng.normal(size=size)) for size in sizes])
    weight = rng.integers(1, 5, len(value))
    weight[300:305] = 1
    ends = np.cumsum(sizes)
    repeated = np.array([part.sum() for part in np.split(weight, ends[:-1])])
    found = thin(value, weight, sizes)
    expected = thin(np.repeat(value, weight), np.ones(weight.sum(), np.int64), repeated)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]
