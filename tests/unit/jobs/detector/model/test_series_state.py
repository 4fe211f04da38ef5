import numpy as np
import pytest

from jobs.detector.model.series_state import LAYOUT, SeriesState
from jobs.detector.model.statistics import STATISTICS


def numbered(series: int) -> SeriesState:
    """Every column holds numbers of its own."""
    return SeriesState.unpacked(
        {name: (np.arange(series) + 10 * at).astype(kind) for at, (name, kind) in enumerate(LAYOUT.items())}
    )


def same(one: SeriesState, other: SeriesState) -> bool:
    columns = zip(one.packed().items(), other.packed().items(), strict=True)
    return all(a == b and c.dtype == d.dtype and c.tolist() == d.tolist() for (a, c), (b, d) in columns)


def test_what_is_packed_is_unpacked() -> None:
    state = numbered(3)
    assert list(state.packed()) == list(LAYOUT)
    assert same(SeriesState.unpacked(state.packed()), state)
    assert {name: column.dtype for name, column in state.packed().items()} == LAYOUT


def test_each_statistic_has_a_tail() -> None:
    packed = numbered(2).packed()
    for statistic, tail in zip(STATISTICS, numbered(2).tails, strict=True):
        assert packed[f"{statistic.label}_windows"].tolist() == tail.windows.tolist()


def test_rows_are_taken_changed_and_put_back() -> None:
    state, rows = numbered(4), np.array([2, 0])
    part = state.take(rows)
    assert part.seen.tolist() == state.seen[rows].tolist()
    part.seen += 100
    part.normal = part.normal._replace(mu=part.normal.mu - 50.0)
    state.put(rows, part)
    changed = numbered(4)
    changed.seen[rows] += 100
    changed.normal.mu[rows] -= 50.0
    assert same(state, changed)


@pytest.mark.parametrize("more", [0, 2])
def test_series_are_appended(more: int) -> None:
    state = numbered(3).followed_by(SeriesState.zeros(more, LAYOUT))
    assert len(state) == 3 + more
    assert same(state.take(np.arange(3)), numbered(3))
    assert same(state.take(np.arange(3, 3 + more)), SeriesState.zeros(more, LAYOUT))
