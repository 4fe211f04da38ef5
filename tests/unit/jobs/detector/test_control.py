import getpass

import orjson
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from infra.contract.json_schema import json_schema
from infra.contract.schemas import CONTROL
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.detector import control
from jobs.detector.intake import check_control
from jobs.detector.rules import Rule
from ops.commands import detector as cli

NOVELTY = {
    "id": "n1",
    "machine": "vm-1",
    "verdict": "anomaly",
    "kind": "metric",
    "series": "cpu",
    "observed": 9.0,
    "expected": 5.0,
    "score": 20.0,
    "time_unix_nano": 20,
    "since_unix_nano": 10,
    "text": "cpu is high",
}


@pytest.fixture
def sent(monkeypatch):
    """What the commands write; the topics hold a novelty in two phases, and one rule."""
    written = []
    found = [
        (0, NOVELTY | {"observed": 7.0, "score": 14.0}),
        (0, NOVELTY),
        (0, NOVELTY | {"score": 3.0}),
        (1, {"id": "n2"}),
    ]
    ruled = [(partition, control.suppress(Rule(machine="amf-*"))) for partition in (0, 1)]
    topics = {"novelties": found, "detector.control": ruled}
    monkeypatch.setattr(control, "read_records", lambda _, topic, begin=None: topics[topic])
    monkeypatch.setattr(control, "send", lambda _, topic, event, by: written.append((topic.name, event, by)))
    return written


def run(*arguments):
    result = CliRunner().invoke(cli.app, arguments)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_feedback_carries_the_strongest_moment_of_the_novelty(sent):
    run("feedback", "n1", "not-anomalous")
    (topic, event, by) = sent.pop()
    assert (topic, by) == ("detector.control", getpass.getuser())
    assert event == {
        "action": "feedback",
        "machine": "vm-1",
        "novelty": "n1",
        "verdict": "anomaly",
        "kind": "metric",
        "series": "cpu",
        "observed": 9.0,
        "expected": 5.0,
        "novelty_record": orjson.dumps(NOVELTY | {"score": 3.0}).decode(),
    }


def test_feedback_about_an_unknown_novelty_is_refused(sent):
    with pytest.raises(UserError, match="NOVELTY 'n9': novelties holds none of this id"):
        run("feedback", "n9", "not-anomalous")
    assert sent == []


def test_commands_write_events_of_the_schema(sent):
    run("feedback", "n1", "not-anomalous")
    run("reset", "cpu*", "--machine", "vm-1", "--by", "ada")
    run("suppress", "--machine", "upf-*", "--series", "cpu*", "--direction", "above", "--size", "2")
    run("allow", Rule(machine="amf-*").id)
    assert [event["action"] for _, event, _ in sent] == ["feedback", "reset", "suppress", "allow"]
    assert [by for *_, by in sent] == [getpass.getuser(), "ada", getpass.getuser(), getpass.getuser()]
    for _, event, _ in sent:
        check_control(event)
        Draft202012Validator(json_schema("control", CONTROL)).validate(event)
    assert Rule.of(sent[2][1]) == Rule(machine="upf-*", series="cpu*", direction="above", size=2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reset",), "every series of every machine"),
        (("suppress",), "every novelty would be suppressed"),
        (("suppress", "--size", "-1"), "size.*greater than 0"),
        (("allow", "r9"), "RULE 'r9': there is none; there are"),
    ],
)
def test_what_makes_no_sense_is_refused(sent, arguments, message):
    with pytest.raises(UserError, match=message):
        run(*arguments)
    assert sent == []


def test_rules_are_listed(sent):
    rule = Rule(machine="amf-*")
    assert run("rules", "--json") == f'{{"{rule.id}": {{"machine": "amf-*"}}}}\n'
    assert "amf-*" in run("rules")


def test_a_rule_that_was_taken_back_is_over(monkeypatch):
    rule = Rule(machine="amf-*")
    events = [
        (0, control.suppress(rule)),
        (1, control.suppress(rule)),
        (1, control.allow(rule.id)),
        (0, control.allow(rule.id)),
    ]
    monkeypatch.setattr(control, "read_records", lambda *_: events)
    assert control.rules("", "") == {}


def test_what_an_operator_says_carries_who_said_it(monkeypatch):
    written = []
    monkeypatch.setattr(control, "write_now", lambda *arguments: written.append(arguments))
    control.send("", load_topics()["detector.control"], control.reset("cpu*", "vm-1"), "ada")
    ((_, topic, key, value, _),) = written
    said = {"action": "reset", "machine": "vm-1", "series": "cpu*", "by": "ada"}
    assert (topic, key, orjson.loads(value)) == ("detector.control", "vm-1", said)


def test_what_cannot_be_obeyed_is_not_written():
    with pytest.raises(UserError, match="series: must be a text of 1 to 1000 characters, is ''"):
        control.send("", load_topics()["detector.control"], control.reset("", "vm-1"), "ada")


def test_control_events_that_cannot_be_obeyed_are_no_rules(monkeypatch):
    odd = [(0, {"action": "suppress"}), (0, {"action": "suppress", "machine": "vm-1", "rule": "r", "size": -1})]
    monkeypatch.setattr(control, "read_records", lambda *_: [*odd, (0, control.suppress(Rule(machine="amf-*")))])
    assert list(control.rules("", "").values()) == [Rule(machine="amf-*")]


class Message:
    """A record of the topic of control events."""

    def __init__(self, partition, time, value):
        self._partition, self._time, self._value = partition, time, value

    def partition(self):
        return self._partition

    def timestamp(self):
        return 1, self._time

    def value(self):
        return self._value


def history(monkeypatch, *messages):
    monkeypatch.setattr(control, "read_topic", lambda *_: iter(messages))
    return [(event["action"], event["machine"], event["time"]) for event in control.history("", "detector.control")]


def test_history_has_once_what_is_in_each_partition_and_twice_what_was_said_twice(monkeypatch):
    everywhere = orjson.dumps(control.reset("cpu*", "vm-*") | {"by": "ada"})
    one = orjson.dumps(control.reset("cpu", "vm-1") | {"by": "ada"})
    said = [Message(0, 50, everywhere), Message(0, 90, everywhere), Message(1, 51, everywhere), Message(1, 70, one)]
    expected = [("reset", "vm-*", 50), ("reset", "vm-1", 70), ("reset", "vm-*", 90)]
    assert history(monkeypatch, *said, Message(1, 91, everywhere)) == expected


@pytest.mark.parametrize("value", [b"no JSON", b"[]", None, b'{"action": "dance"}'])
def test_history_leaves_out_what_the_detector_can_not_obey(monkeypatch, value):
    assert history(monkeypatch, Message(0, 1, value)) == []
