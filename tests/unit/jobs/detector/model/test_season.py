import numpy as np
import pytest

from jobs.detector.model.season import BYTES_PER_SERIES, HOURS, NoSeason, Season, hour_of

DAY = 86400
ROW = np.zeros(1, np.int64)


def test_a_bin_is_an_hour_of_a_working_day_or_of_a_weekend() -> None:
    thursday, saturday = 0, 2 * DAY  # 1 and 3 January 1970
    times = np.array([thursday, thursday + 3 * 3600 + 1, saturday, saturday + DAY - 1, 4 * DAY])
    assert hour_of(times).tolist() == [0, 3, HOURS, 2 * HOURS - 1, 0]


def learned(visits: int) -> Season:
    """One series, which is 5 or 7 at hour 3."""
    season = Season()
    season.grow(1)
    for visit in range(visits):
        season.learn(ROW, np.array([3]), np.array([5.0 + 2.0 * (visit % 2)]), np.ones(1))
    return season


def test_an_hour_expects_what_it_has_seen() -> None:
    usual = learned(20).judge(ROW, np.array([3]), np.array([6.0]))
    assert usual.expected[0] == pytest.approx(6.0, abs=0.1)
    assert usual.score[0] < 1.0
    assert learned(20).judge(ROW, np.array([3]), np.array([16.0])).score[0] > 8.0


@pytest.mark.parametrize(("visits", "hour"), [(1, 3), (20, 4)])
def test_an_hour_that_is_hardly_known_says_nothing(visits: int, hour: int) -> None:
    assert learned(visits).judge(ROW, np.array([hour]), np.array([1e6])).score[0] == 0.0


def test_profiles_are_renumbered_with_their_series() -> None:
    season = learned(20)
    season.grow(2)
    season.retain(np.array([1, 0]))
    expected = [season.judge(np.array([row]), np.array([3]), np.zeros(1)).expected[0] for row in (0, 1)]
    assert expected == [0.0, pytest.approx(6.0, abs=0.1)]


def test_the_state_is_that_of_the_dump() -> None:
    season = learned(20)
    again = Season({name: column.copy() for name, column in season.dump().items()})
    both = [one.judge(ROW, np.array([3]), np.array([9.0])) for one in (season, again)]
    assert both[0] == both[1]
    assert sum(column.nbytes for column in season.dump().values()) == BYTES_PER_SERIES


def test_where_no_profile_is_kept_nothing_is_known() -> None:
    season = NoSeason()
    season.grow(3)
    season.learn(ROW, np.array([3]), np.array([5.0]), np.ones(1))
    assert len(season.profiles) == 0
    assert season.judge(ROW, np.array([3]), np.array([5.0])).score.tolist() == [0.0]
