import orjson
import pytest

from infra.contract.watermarks import OutOfOrderError
from jobs.rules.intake import BODY_CHARACTERS, Intake
from jobs.rules.rule import SECOND
from tests.unit.jobs.rules.logs import absence, alerts, change, line, point, record, sequence, shown, watermark


def read(rules, *values, before=0):
    moments, after = Intake(rules).read(enumerate(values), before * SECOND)
    return {
        (m.machine, m.time / SECOND): [(i, o.series, o.value) for i, o in asked] for m, asked in moments.items()
    }, after


def test_only_what_rules_look_at_is_kept():
    values = [record(point(0, 1), point(1, 2, "other", "other")), record(point(2, 1), machine="hv-1"), watermark(9)]
    moments, after = read([change(match={"machine": "vm-*"})], *values)
    assert moments == {("vm-1", 0): [("hot", "temperature{sensor=cpu}", 1)]}
    assert after == 9 * SECOND


def test_an_absence_needs_the_times_of_all_events():
    assert read([absence()], record(point(0, 1), point(0, 2), point(1, 2)))[0] == {("vm-1", 0): [], ("vm-1", 1): []}


def test_events_that_share_their_labels_are_read():
    """As enrichment writes a record of several scrapes: labels once, and which of them each event has."""
    whole = orjson.loads(record(point(0, 1), point(0, 7, "other", "other")))
    whole["events"] |= {"time_unix_nano": [0, 0, SECOND, SECOND], "value": [1, 7, 22, 8], "labels": [0, 1, 0, 1]}
    series = "temperature{sensor=cpu}"
    assert read([change()], orjson.dumps(whole))[0] == {
        ("vm-1", 0): [("hot", series, 1)],
        ("vm-1", 1): [("hot", series, 22)],
    }


def test_an_event_before_a_watermark_is_a_fault():
    with pytest.raises(OutOfOrderError, match="record otlp-0-1-0 at offset 1 has an event at 4000000000, before"):
        read([change()], watermark(5), record(point(4, 1)))


def test_of_a_retried_record_what_is_older_than_the_watermark_is_left_out():
    moments, _ = read([absence()], watermark(5), record(point(4, 1), point(6, 1), retried=True))
    assert list(moments) == [("vm-1", 6)]


def test_control_events_are_none_of_a_machine():
    assert read([absence()], record(line(0, "{}"), kind="control"))[0] == {}


def test_a_long_line_is_searched_as_a_whole_and_kept_in_part():
    (alert,) = alerts(
        [sequence(first={"log": "end$"})], record(line(0, "x" * 5000 + "end"), line(1, "B")), watermark(9)
    )
    assert alert["observed"][0]["body"] == "x" * BODY_CHARACTERS


def test_inventory_decides_line_by_line():
    rule = sequence(match={"role": "upf"})
    other = {"known": True, "role": "amf"}
    values = [record(line(0, "A"), machine=m, inventory=i) for m, i in (("vm-1", None), ("vm-2", other))]
    values += [record(line(1, "B"), machine=m, inventory=i) for m, i in (("vm-1", None), ("vm-2", other))]
    assert shown(alerts([rule], *values, watermark(9))) == [("vm-1", "start", 1, 0)]
