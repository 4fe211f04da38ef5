"""Records that nobody should have written, on every internal topic: jobs go on, and each is a dead letter."""

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest
from confluent_kafka import Producer

from connectors.kafka.reader import read_topic
from infra.contract.columnar import event_columns
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.query import start_query
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from tests.integration.enrichment import own_map, records_of, wait_for

FOLDS = ("statistics", "detector", "incidents", "rules")
NANO = 10**9
POISON = (
    b"{broken",
    b"\xff\xfe",
    b"[]",
    b'{"machine":7}',
    b'{"watermark_unix_nano":"soon"}',
    b'{"tick_unix_nano":"soon"}',
)
BAD_CONTROL = {"action": "feedback", "machine": "vm-01", "novelty": "n"}

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def topics(servers):
    with own_map(servers.bootstrap) as mapped:
        yield mapped


@contextmanager
def running_folds(spark, bootstrap, topics, home) -> Iterator[list]:
    """The queries of all folds."""
    settings = Settings(kafka_bootstrap=bootstrap, home=home, generation="poison", trigger_seconds=0.2)
    queries = []
    try:
        for job in map(JOBS.__getitem__, FOLDS):
            context = Context(spark, settings, topics, load_job_settings(job))
            queries += [start_query(one, context, Gate()) for one in job.implementation().queries(job, context)]
        yield queries
    finally:
        for query in queries:
            query.stop()


def event(second, machine="vm-1", **more):
    events = event_columns([{"time_unix_nano": second * NANO, "value": 1.0, "series": "cpu", "name": "cpu"}])
    whole = {"id": f"t-0-{second}-0", "machine": machine, "kind": "metric", "inventory": {"known": False}}
    return orjson.dumps({**whole, "events": events, **more})


def watermark(second):
    return orjson.dumps({"watermark_unix_nano": second * NANO})


def test_no_record_on_an_internal_topic_stops_a_fold(spark, servers, topics, tmp_path):
    bootstrap = servers.bootstrap
    producer, begin = Producer({"bootstrap.servers": bootstrap}), int(time.time()) // 10 * 10 - 600
    names = {key: topics[key].name for key in ("events", "statistics", "novelties", "events.rejected", "events.late")}

    def send(key, second, *values):
        for value in values:
            producer.produce(names[key], value, timestamp=second * 1000)
        assert producer.flush(30) == 0

    def letters():
        return [
            (one["stage"], one["code"], one["source"]["topic"], base64.b64decode(one["value"]))
            for one in records_of(bootstrap, names["events.rejected"])
        ]

    body = orjson.dumps(BAD_CONTROL).decode()
    control = {"time_unix_nano": [begin * NANO], "type": ["control"], "body": [body]}
    with running_folds(spark, bootstrap, topics, tmp_path) as queries:
        for key in ("statistics", "novelties"):
            send(key, begin, *POISON)
        ahead = watermark(begin + 3_600)
        send("events", begin, *POISON, ahead, event(begin + 1), event(begin, kind="control", events=control))
        send("events", begin + 30, watermark(begin + 20), event(begin + 5), event(begin + 21))
        send("events", begin + 60, watermark(begin + 40))
        # A letter for each reader of each topic; the control event reaches the detector by way of `statistics`.
        readers = {"events": ("statistics", "rules"), "statistics": ("detector",), "novelties": ("incidents",)}
        expected = {
            (stage, names[key], value) for key, stages in readers.items() for stage in stages for value in POISON
        }
        expected |= {(stage, names["events"], ahead) for stage in readers["events"]}
        wait_for(lambda: len(letters()) > len(expected))
        found = letters()
        controls = [one for one in found if one[1] == "not_control"]
        assert [(stage, topic) for stage, _, topic, _ in controls] == [("detector", names["statistics"])]
        assert orjson.loads(controls[0][3])["control"] == BAD_CONTROL
        assert {(stage, topic, value) for stage, code, topic, value in found if code != "not_control"} == expected
        assert len(found) == len(expected) + 1
        # All go on: windows are emitted, and what came late is kept.
        ends = wait_for(lambda: _window_ends(bootstrap, names["statistics"], 2))
        assert ends == [begin + 10, begin + 30]
        (late,) = records_of(bootstrap, names["events.late"])
        assert (late["machine"], late["events"]["time_unix_nano"]) == ("vm-1", [(begin + 5) * NANO])
        assert [query.exception() for query in queries] == [None] * len(FOLDS)
        assert all(query.isActive for query in queries)


def _window_ends(bootstrap, topic, count):
    """The ends of the ten-second windows that the topic has, if there are so many."""
    found = []
    for message in read_topic(bootstrap, topic):
        try:
            window = orjson.loads(message.value() or b"").get("window", {})
        except (orjson.JSONDecodeError, AttributeError):
            continue
        if window.get("size_seconds") == 10.0 and window.get("kind") == "tumbling":
            found.append(window["end_unix_nano"] // NANO)
    return sorted(found) if len(found) >= count else None
