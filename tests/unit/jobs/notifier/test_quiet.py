"""Quiet hours: until when something waits, over midnight, weekends and changes of the clock."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from jobs.notifier.quiet import Quiet, hold_until

NIGHT = {"from": "22:00", "to": "07:00"}
WEEKEND = {"from": "00:00", "to": "00:00", "days": ["sat", "sun"]}


def held(moment, *quiet):
    """Until when something of a moment (ISO 8601, UTC) waits, in the same form."""
    time = int(datetime.fromisoformat(f"{moment}+00:00").timestamp()) * 10**9
    until = hold_until(tuple(Quiet.model_validate(one) for one in quiet), time)
    return datetime.fromtimestamp(until // 10**9, UTC).strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    ("moment", "until"),
    [
        ("2026-09-21T14:13", "2026-09-21T14:13"),  # in the day
        ("2026-09-21T22:00", "2026-09-22T07:00"),  # the begin belongs to it
        ("2026-09-22T02:30", "2026-09-22T07:00"),  # after midnight
        ("2026-09-22T07:00", "2026-09-22T07:00"),  # the end doesn't
    ],
)
def test_nights_are_quiet_until_the_morning(moment, until):
    assert held(moment, NIGHT) == until


def test_days_are_those_on_which_it_begins():
    of_friday = NIGHT | {"days": ["fri"]}
    assert held("2026-09-26T03:00", of_friday) == "2026-09-26T07:00"  # Saturday, the night of Friday
    assert held("2026-09-25T03:00", of_friday) == "2026-09-25T03:00"  # Friday, the night of Thursday


def test_quiet_hours_that_meet_are_one():
    assert held("2026-09-25T23:00", NIGHT, WEEKEND) == "2026-09-28T07:00"  # from Friday night to Monday morning


def test_they_are_local_time_also_when_the_clock_changes():
    stockholm = NIGHT | {"zone": "Europe/Stockholm"}
    assert held("2026-09-21T20:00", stockholm) == "2026-09-22T05:00"  # summer: UTC+2
    assert held("2026-10-24T23:00", stockholm) == "2026-10-25T06:00"  # the night in which summer ends


def test_without_quiet_hours_a_time_stays_as_it_is_to_the_nanosecond():
    assert hold_until((), 1_790_000_000_123_456_789) == 1_790_000_000_123_456_789


def test_quiet_hours_without_an_end_are_refused():
    with pytest.raises(ValueError, match="leave no time in a week"):
        held("2026-09-21T14:13", {"from": "06:00", "to": "06:00"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"from": "25:00"}, 'write a time of day as "22:30"'),
        ({"from": "noon"}, 'write a time of day as "22:30"'),
        ({"zone": "Europe/Lund"}, "no such time zone"),
        ({"zone": "../etc"}, "no such time zone"),
        ({"days": []}, "at least 1 item"),
        ({"days": ["monday"]}, "'mon', 'tue'"),
    ],
)
def test_what_is_wrong_is_named(fields, message):
    with pytest.raises(ValidationError, match=message):
        Quiet.model_validate(NIGHT | fields)


def test_yaml_reads_a_time_without_quotes_as_minutes():
    assert Quiet.model_validate({"from": 22 * 60 + 30, "to": "07:00"}).begin.isoformat() == "22:30:00"
