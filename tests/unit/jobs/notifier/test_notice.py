"""Records as notices: their ids, their weight, and what is refused."""

import orjson
import pytest

from infra.contract.dead_letters import InvalidRecordError
from jobs.notifier.notice import read_notice
from tests.unit.jobs.notifier.records import PLACES, START, alert, incident, notice, novelty


def read(topic, value):
    return read_notice(topic, value, lambda machine: {}, 3)


def test_a_start_has_the_id_of_its_thread_and_what_follows_has_others():
    start, update, later, end = (
        notice(incident("i1", phase, at)) for phase, at in (("start", 0), ("update", 5), ("update", 6), ("end", 6))
    )
    assert start.id == start.thread == update.thread == end.thread
    assert len({start.id, update.id, later.id, end.id}) == 4
    assert notice(incident("i1", "update", 5)).id == update.id  # of the same record always the same


def test_topics_have_ids_apart():
    assert notice(alert("x"), "alerts").id != notice(novelty("x"), "novelties").id


@pytest.mark.parametrize(
    ("record", "topic", "severity"),
    [
        (alert(severity="info"), "alerts", "info"),
        (alert(severity="critical"), "alerts", "critical"),
        (incident(), "incidents", "warning"),
        (incident(machines=2), "incidents", "warning"),
        (incident(machines=3), "incidents", "critical"),
        (incident(verdicts=["new_entity"]), "incidents", "info"),
        (incident(verdicts=["gone", "new_entity"]), "incidents", "info"),
        (incident(verdicts=["gone", "silence"]), "incidents", "warning"),
        (novelty(), "novelties", "warning"),
        (novelty(verdict="gone"), "novelties", "info"),
    ],
)
def test_severity(record, topic, severity):
    assert notice(record, topic).severity == severity


def test_how_many_machines_are_critical_can_be_said():
    assert notice(incident(machines=2), critical_machines=2).severity == "critical"


def test_where_the_machines_of_an_incident_are_is_asked_for():
    assert notice(incident(machines=3)).machines == (("vm-1", PLACES["vm-1"]), ("vm-2", PLACES["vm-2"]), ("vm-3", {}))


def test_alerts_and_novelties_say_themselves_where_their_machine_is():
    assert notice(alert(), "alerts").machines == (("vm-2", {"site": "kista"}),)
    assert notice(alert(inventory={"known": False}), "alerts").machines == (("vm-2", {}),)


def test_a_record_of_a_later_version_with_more_fields_is_read():
    assert notice(incident(weather="fine")).id == notice(incident()).id


@pytest.mark.parametrize(
    ("topic", "value", "code", "reason"),
    [
        ("incidents", b"", "not_json", "no JSON"),
        ("incidents", b"[]", "not_expected", "an object"),
        ("incidents", b"{}", "not_expected", "id: is missing"),
        ("incidents", orjson.dumps(incident(members=[])), "not_expected", "members"),
        ("incidents", orjson.dumps(incident(phase="middle")), "not_expected", "phase='middle'"),
        ("incidents", orjson.dumps(incident(time_unix_nano=-1)), "not_expected", "time_unix_nano=-1"),
        ("incidents", orjson.dumps(incident(time_unix_nano=2**63 - 1)), "not_expected", "time_unix_nano"),
        ("incidents", orjson.dumps(incident(since_unix_nano=str(START))), "not_expected", "since_unix_nano"),
        ("alerts", orjson.dumps(alert(severity="fatal")), "not_expected", "severity='fatal'"),
        ("alerts", orjson.dumps(alert(machine="")), "not_expected", "machine=''"),
        ("novelties", orjson.dumps(novelty(inventory=[])), "not_expected", "inventory"),
    ],
)
def test_what_is_not_as_its_schema_says_is_refused(topic, value, code, reason):
    with pytest.raises(InvalidRecordError) as refused:
        read(topic, value)
    assert refused.value.code == code and reason in refused.value.reason
