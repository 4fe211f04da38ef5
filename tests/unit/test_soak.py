"""What the soak judges by: growth, and the truth of its fleet."""

import os
from types import SimpleNamespace

import orjson
import psutil
import pytest

from infra.contract.columnar import to_columns
from tests.soak.fleet import BROKEN_EVERY, LATE_EVERY, MINUTE, Fleet
from tests.soak.growth import WARM_SECONDS, Sample, checkpoint_bytes, disk_bytes, growth, is_warm
from tests.soak.ledger import Ledger

MINUTES = 3
FLEET = Fleet(start=10**18)


def samples(values, **more):
    """One a minute of a process that takes so much."""
    return [Sample(60.0 * number, {}, {"a": value, **more}, {}) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([100] * 12, 0.0),
        ([100, 100, 110, 120, 130, 140, 100, 100], 0.0),  # as it was when it was as old
        ([100, 100, 110, 120, 130, 140, 110, 110], 0.1),
        ([100] * 6, None),  # too short to say
        ([0] * 12, None),
    ],
)
def test_growth_is_beside_what_was_there_when_the_same_was_killed_before(values, expected):
    found = growth(samples(values), "memory_bytes", period=6 * 60.0)
    assert found == (None if expected is None else pytest.approx(expected, abs=0.001))


def test_a_round_of_maintenance_is_not_growth_and_a_process_more_is():
    usual = [100] * 20
    assert growth(samples([*usual, 900, 100, 100, 100]), "memory_bytes", period=18 * 60.0) == 0.0
    more = [*samples(usual), *[one._replace(seconds=one.seconds + 1200.0) for one in samples([100] * 4, b=50)]]
    assert growth(more, "memory_bytes", period=12 * 60.0) == pytest.approx(0.5)


def test_a_process_that_has_just_been_started_again_says_nothing_of_growth():
    taken = [{"a": 100}] * 10 + [{}] * 3 + [{"a": 100}] * 5 + [{}] * 4 + [{"a": 100}] * 2
    found = [Sample(60.0 * number, {}, one, {}) for number, one in enumerate(taken)]
    assert growth(found, "memory_bytes", period=12 * 60.0) == 0.0


@pytest.mark.parametrize(("seconds", "expected"), [(WARM_SECONDS - 1.0, False), (WARM_SECONDS, True)])
def test_a_process_is_warm_some_minutes_after_its_start(monkeypatch, seconds, expected):
    now = psutil.Process().create_time() + seconds
    monkeypatch.setattr("tests.soak.growth.time", SimpleNamespace(time=lambda: now))
    assert is_warm(os.getpid()) == expected


def test_checkpoints_are_told_apart_by_query(tmp_path):
    for path in ("live/statistics/state/1", "live/archive.log/offsets/1", ".savepoints/a/f", ".savepoints/b/f"):
        file = tmp_path / "checkpoints" / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 5_000)
    found = checkpoint_bytes(tmp_path)
    assert found["statistics"] == found["archive.log"] > 0
    assert found == {**found, ".savepoints": 2 * found["statistics"]} and len(found) == 3


def test_of_documents_the_most_before_a_day_is_deleted_counts():
    days = [Sample(60.0 * number, {}, {}, {"a": 100 * (1 + number % 4)}) for number in range(24)]
    assert growth(days, "documents", period=720.0) == 0.0


def test_what_delta_deletes_by_days_of_the_wall_clock_is_not_counted(tmp_path):
    for name in ("delta/live/log/_delta_log", "delta/live/log/date=2026-11-01", "log"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(bytes(8192))
    assert disk_bytes(tmp_path) == {"delta": 8192}


def window(machine, minute, **changes):
    rows = [{"name": name, "count": 1, "mean": value} for name, value in FLEET.values(machine, minute).items()]
    start = FLEET.start + minute * MINUTE
    record = {"machine": machine, "window": {"size_seconds": 60, "start_unix_nano": start}}
    return record | {"statistics": to_columns([row | changes for row in rows])}


def filled(*more):
    ledger = Ledger(FLEET)
    for minute in range(MINUTES):
        for machine in FLEET.machines(minute):
            ledger.take("statistics", 0, window(machine, minute), 1)
    for topic, record in (
        ("events.rejected", {"id": "r"}),
        ("events.late", {"events": {"value": [0.0]}}),
        *more,
    ):
        ledger.take(topic, 0, record, 1)
    return ledger


def test_all_that_was_sent_is_right():
    assert -(-MINUTES // BROKEN_EVERY) == -(-MINUTES // LATE_EVERY) == 1
    found = filled().compared(MINUTES)
    assert (found["windows"], found["lost"], found["duplicated"], found["wrong"]) == (MINUTES * 20, 0, 0, 0)


def test_what_is_missing_doubled_or_wrong_is_found():
    ledger = filled(("statistics", window("vm-01", 1)), ("statistics", window("vm-02", 1, mean=0.0)))
    del ledger.windows["vm-03"][2]
    found = ledger.compared(MINUTES)
    assert (found["lost"], found["duplicated"], found["wrong"]) == (1, 2, 1)
    assert "vm-02 in minute 1" in found["examples"][0]


def test_the_watermark_is_that_of_the_last_partition():
    ledger = Ledger(FLEET)
    for partition, time in ((0, 7), (1, 5)):
        ledger.take("statistics", partition, orjson.loads(b'{"watermark_unix_nano": %d}' % time), 2)
    assert ledger.watermark == 5
