"""What belongs to the last hour, minute by minute."""

from jobs.runtime.last_hour import REMEMBERED_MS, LastHour

MINUTE = 60_000


def test_a_minute_is_gathered_in_one_place():
    hour = LastHour(list)
    hour.at(5 * MINUTE).append("first")
    hour.at(6 * MINUTE - 1).append("last")
    hour.at(6 * MINUTE).append("next")
    assert [*hour] == [["first", "last"], ["next"]]


def test_what_comes_late_counts_with_the_newest_minute():
    hour = LastHour(list)
    hour.at(5 * MINUTE)
    assert hour.at(MINUTE) is hour.at(5 * MINUTE)


def test_what_is_older_than_an_hour_is_forgotten():
    hour = LastHour(list)
    hour.at(0).append("oldest")
    hour.at(REMEMBERED_MS).append("an hour later")
    assert [*hour] == [["oldest"], ["an hour later"]]
    hour.at(REMEMBERED_MS + MINUTE).append("later")
    assert [*hour] == [["an hour later"], ["later"]]
