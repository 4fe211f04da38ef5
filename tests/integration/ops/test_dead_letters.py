"""`kappa rejected` on a real broker: a dead letter is found, shown, retried once, and its events reach `events`."""

import json
import time
from datetime import timedelta

import orjson
import pytest
from confluent_kafka import KafkaException, Producer
from typer.testing import CliRunner

from connectors.kafka.reader import read_topic
from infra.contract import retries
from infra.contract.topics import TopicMap
from infra.errors import UserError
from ops.commands import rejected as rejected_cli
from ops.dead_letters import DeadLetter, OriginalLostError, Redrive, dead_letters
from tests.integration.enrichment import own_map, records_of, running_enrichment, wait_for

HOUR = 3_600_000_000_000
SENT_MS = int(time.time() * 1000) - 3_600_000  # by the sender's clock, and no older than the topic keeps it


@pytest.fixture(scope="module")
def topics(servers):
    with own_map(servers.bootstrap) as mapped:
        yield mapped


@pytest.fixture
def kappa(servers, topics, monkeypatch):
    """`kappa rejected ...` on this test's topics: what it printed, as JSON."""
    monkeypatch.setattr(rejected_cli, "topics_of", lambda _: topics)

    def run(*arguments):
        options = ["--bootstrap", servers.bootstrap, "--json"]
        done = CliRunner().invoke(rejected_cli.app, [*arguments, *options], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


def line(value, ahead=0):
    time_unix_nano = time.time_ns() + ahead
    return orjson.dumps({"time_unix_nano": time_unix_nano, "machine": "vm-1", "name": "n", "value": value})


def send(bootstrap, topic, *values):
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 10_000_000})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def test_a_dead_letter_is_accepted_after_the_fix_and_once(spark, servers, topics, kappa, tmp_path):
    bootstrap = servers.bootstrap
    send(bootstrap, topics["telemetry.lines"].name, line(1.0), line(2.0, ahead=HOUR), b"{broken")
    with running_enrichment(spark, bootstrap, topics, tmp_path):
        wait_for(lambda: len(list(dead_letters(bootstrap, topics["events.rejected"].name))) == 2)
    listed = {row["code"]: row for row in kappa("list")}
    assert set(listed) == {"future", "not_json"}
    assert not listed["future"]["retried"]
    assert kappa("show", listed["not_json"]["id"])["reason"] == "could not be decoded: not_json"
    assert kappa("retry", "--code", "future") == {"sent": 1, "sent_before": 0, "not_telemetry": 0}
    assert kappa("retry", "--all") == {"sent": 1, "sent_before": 1, "not_telemetry": 0}
    assert kappa("retry", "--all") == {"sent": 0, "sent_before": 2, "not_telemetry": 0}
    assert {row["retried"] for row in kappa("list")} == {True}

    # The fix: clocks may be two hours ahead. The broken record stays broken.
    fixed = TopicMap(
        {k: t.model_copy(update={"future": timedelta(hours=2)} if t.format else {}) for k, t in topics.topics.items()}
    )
    with running_enrichment(spark, bootstrap, fixed, tmp_path):
        wait_for(lambda: len(list(dead_letters(bootstrap, topics["events.rejected"].name))) == 3)
        accepted = wait_for(lambda: [r for r in records_of(bootstrap, topics["events"].name) if r.get("retried")])
    assert [record["events"]["value"] for record in accepted] == [[2.0]]
    assert accepted[0]["id"] + "-future" == listed["future"]["id"]
    assert accepted[0]["source"] == listed["future"]["source"]
    ids = [record["id"] for record in records_of(bootstrap, topics["events"].name)]
    assert len(ids) == len(set(ids)) == 2
    again = [row for row in kappa("list", "--code", "not_json") if not row["retried"]]
    assert [row["id"] for row in again] == [listed["not_json"]["id"]]


@pytest.fixture
def letter(servers, topics):
    """A dead letter with only the beginning of a record that its own topic still has."""
    topic = topics["telemetry.syslog"].name
    send(servers.bootstrap, topic, b"y" * 900_000 + b"z" * 50_000)
    [place] = [message.offset() for message in read_topic(servers.bootstrap, topic)][-1:]
    source = {"topic": topic, "partition": 0, "offset": place, "timestamp_unix_milli": SENT_MS}
    return DeadLetter(0, 1_000_000 + place, {"source": source, "value": "eHh4", "id": "x", "code": "not_json"})


def retries_of(servers, topics, letter):
    found = read_topic(servers.bootstrap, topics[retries.TOPIC].name)
    return [message for message in found if message.key() == letter.retry_key.encode()]


def test_a_killed_retry_leaves_nothing_and_the_next_one_sends(servers, topics, letter):
    killed = Redrive(servers.bootstrap, topics[retries.TOPIC])
    killed._writer.begin()
    killed._produce(letter)
    killed._writer.producer.flush(30)
    assert Redrive(servers.bootstrap, topics[retries.TOPIC]).send([letter]) == 1
    assert Redrive(servers.bootstrap, topics[retries.TOPIC]).send([letter]) == 0
    [message] = retries_of(servers, topics, letter)
    assert message.value() == b"xxx"
    assert message.timestamp() == (1, SENT_MS)  # the sender's clock


def test_a_second_retry_fences_the_first(servers, topics, letter):
    first = Redrive(servers.bootstrap, topics[retries.TOPIC])
    assert Redrive(servers.bootstrap, topics[retries.TOPIC]).send([letter]) == 1
    with pytest.raises(KafkaException):
        first.send([letter])
    assert len(retries_of(servers, topics, letter)) == 1


def test_a_cut_record_is_taken_from_its_own_topic(servers, topics, letter, monkeypatch):
    monkeypatch.setattr("ops.dead_letters.REJECTED_BYTES", 3)
    assert Redrive(servers.bootstrap, topics[retries.TOPIC]).send([letter]) == 1
    [message] = retries_of(servers, topics, letter)
    assert len(message.value()) == 950_000
    letter.record["source"]["offset"] += 1
    with pytest.raises(OriginalLostError, match=r"telemetry.syslog/0/\d+"):
        Redrive(servers.bootstrap, topics[retries.TOPIC]).send([DeadLetter(0, 5, letter.record)])


def test_one_line_says_that_the_bytes_of_a_record_are_lost_with_its_topic(servers, topics, kappa):
    source = {"topic": "gone", "partition": 0, "offset": 7, "timestamp_unix_milli": SENT_MS}
    lost = {"id": "lost", "stage": "enrichment", "code": "not_json", "reason": "x", "events": 1, "source": source}
    send(servers.bootstrap, topics["events.rejected"].name, orjson.dumps(lost))
    with pytest.raises(UserError, match=r"^gone/0/7: only its beginning was kept, its topic no longer has it$"):
        kappa("show", "lost", "--raw")
