"""A day of a fleet: what is arranged happens, on machines of its own, and explains what is told of it and no more."""

import orjson
import pytest

from ops.quality.fleet_day import AFTERMATH, HOUR, MINUTE, START, WINDOW_SECONDS, Day, Event, Fleet, measure
from ops.simulator.faults import SECOND, STEAL, USED


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return Fleet(84, 10, 1)


@pytest.fixture(scope="module")
def windows(fleet):
    """The records of each window until the third hour's end, by machine, and what is ordered."""
    found = {}
    for number, raw in zip(range(1, 3 * HOUR), Day(fleet).windows(), strict=False):
        records = [orjson.loads(one) for one in raw]
        assert records[-1] == {"watermark_unix_nano": START + number * WINDOW_SECONDS * SECOND}
        machines = {record["machine"]: record for record in records if "machine" in record}
        found[number] = machines, [record["control"] for record in records if "control" in record]
    return found


def first(fleet: Fleet, kind: str) -> Event:
    return next(event for event in fleet.events if event.kind == kind)


def value(record, series: str) -> float:
    table = record["statistics"]
    return table["mean"][table["series"].index(series)]


def test_each_event_but_a_burst_has_machines_of_its_own(fleet):
    rows = [row for event in fleet.events if event.kind not in ("burst", "birth") for row in event.rows]
    present = [row for row in rows if row < 84]
    assert len(present) == len(set(present))
    assert {event.kind for event in fleet.events} == {
        "birth",
        "retirement",
        "maintenance",
        "slow_host",
        "leak",
        "burst",
    }
    assert min(event.begin for event in fleet.events) == HOUR


def test_machines_come_and_go_and_the_inventory_says_until_when(fleet, windows):
    born, retired = first(fleet, "birth"), first(fleet, "retirement")
    name, other = fleet.names[born.rows[0]], fleet.names[retired.rows[0]]
    assert next(number for number, (machines, _) in windows.items() if name in machines) == born.begin
    assert [number for number, (machines, _) in windows.items() if other in machines][-1] == retired.begin - 1
    until = windows[1][0][other]["inventory"]["valid_to_unix_nano"]
    assert until == START + retired.begin * WINDOW_SECONDS * SECOND


def test_what_is_maintained_is_down_under_an_order_that_ends(fleet, windows):
    event = first(fleet, "maintenance")
    names = {fleet.names[row] for row in event.rows}
    down = [number for number, (machines, _) in windows.items() if not names & machines.keys()]
    assert down[0] >= event.begin + 5 * MINUTE and down[-1] < event.begin + 10 * MINUTE
    orders = {number: [one["action"] for one in orders] for number, (_, orders) in windows.items() if orders}
    assert orders[event.begin] == ["suppress"] * len(names)
    assert orders[event.end] == ["allow"] * len(names)


def test_leaks_and_slow_hosts_show_in_the_series_that_they_change(fleet, windows):
    leak, slow = first(fleet, "leak"), first(fleet, "slow_host")
    name = fleet.names[leak.rows[0]]
    rise = value(windows[3 * HOUR - 1][0][name], USED) - value(windows[leak.begin - 1][0][name], USED)
    assert rise == pytest.approx(0.3 * (2 * HOUR - 1) / (4 * HOUR), abs=0.1)
    guest = fleet.names[slow.rows[1]]
    assert value(windows[slow.begin][0][guest], STEAL) > value(windows[slow.begin - 1][0][guest], STEAL) + 0.15


@pytest.mark.parametrize(
    ("kind", "machine", "verdict", "window", "explained"),
    [
        ("leak", "b", "anomaly", 10, True),
        ("leak", "b", "anomaly", 20 + AFTERMATH, True),
        ("leak", "b", "anomaly", 21 + AFTERMATH, False),
        ("leak", "b", "anomaly", 9, False),
        ("leak", "a", "anomaly", 10, False),
        ("retirement", "b", "gone", 500, True),
        ("retirement", "b", "silence", 11, False),
        ("maintenance", "b", "silence", 11, False),
    ],
)
def test_an_event_explains_what_its_machines_show_meanwhile(kind, machine, verdict, window, explained):
    event = Event(kind, (1,), 10, 20)
    assert event.explains(["a", "b"], {"machine": machine, "verdict": verdict}, window) is explained


def test_births_are_told_and_nothing_of_what_is_maintained():
    found = measure(28, 2)
    assert found["events"]["birth"] == {"arranged": 1, "told": 1}
    maintained = {Fleet(28, 2, 1).names[row] for row in first(Fleet(28, 2, 1), "maintenance").rows}
    assert not maintained & {example["machine"] for example in found["examples"]}
    assert found["false_alarms"] == len(found["examples"])
