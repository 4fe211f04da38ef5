"""What the soak judges by: growth, and the truth of its fleet."""

import orjson
import pytest

from infra.contract.columnar import to_columns
from tests.soak.fleet import BROKEN_EVERY, LATE_EVERY, MINUTE, Fleet
from tests.soak.growth import WARM_SECONDS, Sample, growth, settled
from tests.soak.ledger import Ledger

MINUTES = 3
FLEET = Fleet(start=10**18)


def sample(age, **memory):
    return Sample(0.0, {}, memory, dict.fromkeys(memory, age), {})


def test_a_process_that_was_just_started_again_counts_as_what_it_took_before():
    warm, cold = WARM_SECONDS, 1.0
    found = settled(
        [sample(cold, a=10, b=1), sample(warm, a=50, b=2), sample(cold, a=10, b=1), sample(warm, a=60, b=2)]
    )
    assert found == [11, 52, 52, 62]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([100] * 12, 0.0), ([1] * 6 + [100, 100, 100, 100, 110, 110], 0.1), ([0] * 12, 0.0), ([9, 8, 7, 6, 5, 4], -1 / 3)],
)
def test_growth_is_that_of_the_second_half(values, expected):
    assert growth(values) == pytest.approx(expected, abs=0.001)


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
