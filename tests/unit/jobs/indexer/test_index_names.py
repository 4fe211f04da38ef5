from datetime import UTC, datetime

import pytest

from infra.contract.indices import Lifecycle
from jobs.indexer.index_names import IndexName, covering, is_expired

DAY = 86_400_000
NOON = int(datetime(2026, 9, 21, 12, tzinfo=UTC).timestamp() * 1000)
MIDNIGHT = NOON - DAY // 2
DAILY = Lifecycle(period="1d", retention="3d", documents=10, bytes=10, name="1m")


def days(*numbers: int, part: int = 1, group: str = "1m") -> list[IndexName]:
    return [IndexName("kappa-x-live", group, MIDNIGHT + n * DAY, MIDNIGHT + (n + 1) * DAY, part) for n in numbers]


@pytest.mark.parametrize(
    ("period", "group", "text"),
    [
        ("1d", "1m", "kappa-x-live.1m.2026-09-21.1d.1"),
        ("5h", "", "kappa-x-live.2026-09-21t12.5h.1"),
        ("30d", "", "kappa-x-live.2026-09-04.30d.1"),
        ("24h", "", "kappa-x-live.2026-09-21.1d.1"),
    ],
)
def test_a_name_says_what_is_in_the_index_and_is_read_back(period, group, text):
    name = IndexName.first("kappa-x-live", Lifecycle(**dict(DAILY) | {"period": period, "name": group}), NOON)
    assert str(name) == text
    assert IndexName.parse(text) == name
    assert name.covers(NOON)


@pytest.mark.parametrize(
    "text",
    ["kappa-x-live", "kappa-x-live.anchor", "kappa-x-live.1m.2026-13-21.1d.1", "kappa-x-live.1m.2026-09-21.1d", "a.b"],
)
def test_other_names_are_none(text):
    assert IndexName.parse(text) is None


def test_a_document_belongs_to_what_covers_its_time_and_the_last_part_takes_new_ones():
    first, second = days(0)[0], days(0, part=2)[0]
    assert first.following() == second
    week = IndexName("kappa-x-live", "1m", MIDNIGHT - 3 * DAY, MIDNIGHT + 4 * DAY)
    names = [second, *days(1), first, *days(0, group="other")]
    assert covering(names, "1m", NOON) == (first, second)
    assert covering([*names, week], "1m", NOON) == (week, first, second), "of a period that was declared before"
    assert covering(names, "1m", MIDNIGHT + DAY) == (*days(1),)
    assert covering(names, "1m", MIDNIGHT - 1) == ()


def test_an_index_is_expired_when_all_of_it_is_older_than_the_retention():
    names = days(0, 1, 2, 3, 4, 5)
    assert [name for name in names if is_expired(name, DAILY, names)] == days(0, 1)
    assert not is_expired(days(0)[0], DAILY, []), "the newest there is"
    assert is_expired(days(0, group="10s")[0], DAILY, names), "counted back from the newest of the kind"
