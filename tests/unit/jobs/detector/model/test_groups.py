from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model.correlations import KINDS, MOST, PRIOR, pairs
from jobs.detector.model.groups import CAPACITIES, EMPTY, Groups


def rows_of(groups: Groups) -> dict[int, list[list[int]]]:
    """By machine the rows of its groups."""
    found: dict[int, list[list[int]]] = {}
    for table in groups.tables:
        for machine, rows in zip(table.machine.tolist(), table.rows.tolist(), strict=True):
            found.setdefault(machine, []).append([row for row in rows if row != EMPTY])
    return found


def correlation(groups: Groups, one: int, other: int) -> float:
    """Of the levels of two rows of one group."""
    for table in groups.tables:
        for at, rows in enumerate(table.rows.tolist()):
            if one in rows and other in rows:
                first, second = sorted((rows.index(one), rows.index(other)), reverse=True)
                return float(table.correlations[at, 0, first * (first + 1) // 2 + second])
    raise AssertionError(f"{one} and {other} are in no group together")


def add(groups: Groups, machines: list[int], first: int = 0) -> int:
    groups.add(first + np.arange(len(machines)), np.array(machines, np.int64))
    return first + len(machines)


def teach(groups: Groups, rows: int, lessons: int = 50) -> None:
    """Even rows move together, odd ones against them."""
    rng, windows = np.random.default_rng(2), np.append(np.full(rows, 20.0), 0.0)
    for _ in range(lessons):
        common = rng.normal() * np.append(np.where(np.arange(rows) % 2, -1.0, 1.0), np.nan)
        groups.learn(np.tile(common, (KINDS, 1)), windows)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_series_are_in_groups_of_their_machine_of_the_least_capacity() -> None:
    groups = Groups({})
    add(groups, [0, 1, 0, 0, 2, *[1] * 40, 0])
    found = rows_of(groups)
    assert found[0] == [[0, 2, 3, 45]]
    assert found[2] == [[4]]
    assert sorted(map(len, found[1])) == [9, MOST]
    assert [len(table) for table in groups.tables] == [2, 0, 1, 0, 1]


def test_new_series_go_where_there_is_room_and_what_is_known_is_kept() -> None:
    groups = Groups({})
    known = add(groups, [0] * 4 + [1] * 3)
    teach(groups, known)
    before = correlation(groups, 2, 1)
    assert before < -0.5
    known = add(groups, [0] * 30, known)
    assert sorted(map(len, rows_of(groups)[0])) == [2, MOST]
    assert correlation(groups, 2, 1) == before
    assert correlation(groups, 3, 8) == 0.0
    assert rows_of(groups)[1] == [[4, 5, 6]]


def test_evicted_series_leave_a_smaller_group_which_knows_the_rest() -> None:
    groups = Groups({})
    known = add(groups, [0] * 20 + [1] * 5 + [2] * 3)
    teach(groups, known)
    before = correlation(groups, 19, 4)
    kept = np.array([0, 4, 19, 20, 21, 22, 23, 24])
    groups.retain(kept, np.array([0, 1]), known)
    assert rows_of(groups) == {0: [[0, 1, 2]], 1: [[3, 4, 5, 6, 7]]}
    assert correlation(groups, 2, 1) == before


def test_a_series_that_begins_anew_has_no_correlations() -> None:
    groups = Groups({})
    known = add(groups, [0] * 6)
    teach(groups, known)
    groups.forget(np.array([2]))
    assert [correlation(groups, 2, other) for other in range(6)] == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert correlation(groups, 0, 1) < -0.5
    z = np.append(np.where(np.arange(6) == 2, 3.0, 0.0), 0.0)
    left = groups.residuals(np.tile(z, (KINDS, 1)))
    assert left[0, [0, 1, 3, 4, 5, 6]].tolist() == [0.0] * 6


def test_residuals_follow_what_was_learned_last_however_the_state_was_kept() -> None:
    groups = Groups({})
    known = add(groups, [0] * 9 + [1] * 40)
    teach(groups, known, lessons=7)
    z = np.append(np.random.default_rng(1).normal(size=known), 0.0)
    again = Groups({name: column.copy() for name, column in groups.dump().items()})
    both = [one.residuals(np.tile(z, (KINDS, 1))) for one in (groups, again)]
    assert (both[0] == both[1]).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=8), st.randoms())
def test_every_row_is_in_one_group_of_its_machine_whatever_came_and_went(
    arrivals: list[tuple[int, int]], chance: Any
) -> None:
    groups, owner = Groups({}), np.zeros(0, np.int64)
    for machine, number in arrivals:
        groups.add(len(owner) + np.arange(number), np.full(number, machine))
        owner = np.append(owner, np.full(number, machine))
        kept = np.array([row for row in range(len(owner)) if chance.random() < 0.8], np.int64)
        groups.retain(kept, np.arange(4), len(owner))
        owner = owner[kept]
    found = [(row, machine) for machine, parts in rows_of(groups).items() for part in parts for row in part]
    assert sorted(found) == list(enumerate(owner.tolist()))
    for capacity, table in zip(CAPACITIES, groups.tables, strict=True):
        assert table.correlations.shape == (len(table), KINDS, len(pairs(capacity)[0]))
        assert table.whitening.factor.shape == (capacity, capacity, KINDS, len(table))
    assert same(Groups(groups.dump()).dump(), groups.dump())


def test_the_prior_is_worth_lessons() -> None:
    groups = Groups({})
    known = add(groups, [0] * 2)
    teach(groups, known, lessons=1)
    assert 0 < -correlation(groups, 0, 1) < 9.0 / PRIOR
