"""The job learns from a log how late events come, on a real broker, and a later replay judges them alike."""

import time
from datetime import timedelta

import orjson
import pytest
from confluent_kafka import Producer
from jsonschema import Draft202012Validator

from connectors.kafka.offsets import Log, missing
from infra.contract.json_schema import json_schema
from infra.contract.lateness import Decision
from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Lateness
from jobs.runtime.lateness import ENOUGH, FIRST_MS, NOTICE_MS
from tests.integration.enrichment import own_map, records_of, running_enrichment, wait_for

LINES = "telemetry.lines"
LEARNED = {"timestamp": "CreateTime", "lateness": Lateness(max=timedelta(seconds=20), share=0.0001)}


def _now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture
def topics(servers):
    with own_map(servers.bootstrap, **LEARNED) as mapped:
        yield mapped


@pytest.fixture
def send(servers, topics):
    """Sends an event for each (Kafka timestamp, delay) in ms, of a machine of its own; its value is the delay."""
    producer = Producer({"bootstrap.servers": servers.bootstrap})

    def sent(*times):
        for number, (timestamp, delay) in enumerate(times):
            time_unix_nano = (timestamp - delay) * 1_000_000
            line = {"time_unix_nano": time_unix_nano, "machine": f"vm-{number}", "name": "n", "value": delay}
            producer.produce(topics[LINES].name, orjson.dumps(line), timestamp=timestamp)
        assert producer.flush(30) == 0

    return sent


def test_what_is_decided_holds_from_its_time_on_in_each_replay(spark, servers, topics, send, tmp_path):
    bootstrap, log = servers.bootstrap, Log(servers.bootstrap)

    def read_by(group):
        ends = log.ends([topics[LINES].name])
        wait_for(lambda: not missing(log.committed(group, ends), ends))

    def found():
        """The delays of the events by topic, those of the usual ones aside."""
        return {
            key: sorted(
                value
                for record in records_of(bootstrap, topics[key].name)
                for value in record["events"]["value"]
                if value > 900
            )
            for key in ("events", "events.late")
        }

    with running_enrichment(spark, bootstrap, topics, tmp_path / "live") as group:
        send((_now_ms() - FIRST_MS, 100))
        read_by(group)
        now = _now_ms()  # decisions are made at the log's end alone
        send(*((now - number, 600 + number % 100) for number in range(ENOUGH, 0, -1)))
        read_by(group)
        decided = wait_for(lambda: records_of(bootstrap, topics["lateness"].name))
        begin = now - 1 + NOTICE_MS
        assert decided == [orjson.loads(Decision(begin, 2_000).value())]  # 0.7 s, and half as much again
        Draft202012Validator(json_schema("lateness", SCHEMAS["lateness"])).validate(decided[0])
        # A second before its time and after it.
        send((begin - 1_000, 1_900), (begin - 1_000, 2_100), (begin + 1_000, 1_901), (begin + 1_000, 2_101))
        read_by(group)
        live = wait_for(lambda: found()["events.late"] and found())
    assert live == {"events": [1_900, 1_901, 2_100], "events.late": [2_101]}

    with running_enrichment(spark, bootstrap, topics, tmp_path / "replayed") as group:
        read_by(group)
        again = wait_for(lambda: len(found()["events.late"]) == 2 and found())
    assert again == {key: sorted(2 * values) for key, values in live.items()}
