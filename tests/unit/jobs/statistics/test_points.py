import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.statistics.points import Points

PANE = 10
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, 2**40]),
        st.integers(0, 45) | st.integers(2**61, 2**61 + 20),
        st.sampled_from([-1.5, 0.0, 2.0, 1e300]),
    ),
    max_size=30,
)


def points(found):
    series, time, value = zip(*found, strict=True) if found else ((), (), ())
    return Points(np.array(series, np.int64), np.array(time, np.int64), np.array(value, np.float64))


def as_rows(some):
    return list(zip(some.series.tolist(), some.time.tolist(), some.value.tolist(), strict=True))


@given(rows)
def test_points_are_ordered_by_series_time_and_value(found):
    assert as_rows(points(found).ordered()) == sorted(found)


@given(rows)
def test_each_point_goes_into_its_pane_and_keeps_its_place_there(found):
    panes = dict(points(found).by_pane(PANE))
    assert list(panes) == sorted({time - time % PANE for _, time, _ in found})
    for start, some in panes.items():
        assert as_rows(some) == [one for one in found if start <= one[1] < start + PANE]
