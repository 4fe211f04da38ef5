import base64

import orjson
import pytest

from jobs.rules.intake import BODY_CHARACTERS, Intake
from jobs.rules.rule import SECOND
from tests.unit.jobs.rules.logs import (
    absence,
    alerts,
    change,
    line,
    log_of,
    point,
    record,
    sequence,
    shown,
    watermark,
)


def read(rules, *values, before=0):
    moments, after, rejected = Intake(rules).read(log_of(values).messages(), before * SECOND)
    assert not rejected
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


@pytest.mark.parametrize("more", [{}, {"retried": True}])
def test_what_is_older_than_the_watermark_is_passed_over(more):
    moments, _ = read([absence()], watermark(5), record(point(4, 1), point(6, 1), **more))
    assert list(moments) == [("vm-1", 6)]


@pytest.mark.parametrize(
    ("wrong", "code", "reason"),
    [
        (b"{", "not_json", "no JSON"),
        (b"[]", "not_expected", "the record: must be an object, is list of 0"),
        (record(point(1, 1), kind="trace"), "unknown_kind", "kind: must be metric, log or control, is 'trace'"),
        (record(point(1, 1), machine=7), "not_expected", "machine: must be a text of 1 to 1000 characters, is 7"),
        (record(point(1, "x")), "not_expected", "value: must be a list of numbers"),
        (record(line(1, 5)), "not_expected", "series: must be a list of texts"),
        (record(point(1, 1), inventory={"role": 3}), "not_expected", "inventory: must be an object of texts"),
        (orjson.dumps({"watermark_unix_nano": "x"}), "not_expected", "watermark_unix_nano: must be a time"),
        (orjson.dumps({"watermark_unix_nano": 8 * 10**18}), "not_expected", "watermark_unix_nano: must be a time"),
    ],
)
def test_what_cannot_be_used_is_a_dead_letter_and_the_rest_goes_on(wrong, code, reason):
    batch = log_of([wrong, record(point(6, 1))])
    moments, _, (letter,) = Intake([absence()]).read(batch.messages(), 0)
    assert [moment.time for moment in moments] == [6 * SECOND]
    found = orjson.loads(letter.value)
    assert (letter.topic, letter.by_key, letter.note, letter.key) == ("events.rejected", True, code, "events/3/0")
    assert (found["stage"], found["code"], found["source"]["offset"]) == ("rules", code, 0)
    assert found["reason"].startswith(reason)
    assert base64.b64decode(found["value"]) == wrong


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
