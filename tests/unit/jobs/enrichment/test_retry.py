"""The redrive of a dead letter: what `kappa rejected retry` writes is decoded as if it came from its own topic."""

import base64
import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from infra.contract.columnar import to_columns, to_rows
from infra.contract.dead_letters import REJECTED_BYTES
from infra.contract.topics import load_topics
from jobs.enrichment.inventory import SCHEMA
from jobs.enrichment.retry import decode_retried
from jobs.enrichment.transform import enrichment
from ops.dead_letters import DeadLetter, printable

KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int,"
    " headers array<struct<key string, value binary>>"
)
RECEIVED = datetime(2026, 11, 21, 7, 18, 5, tzinfo=UTC)
MILLI = int(RECEIVED.timestamp() * 1000)
SOURCE = {"topic": "telemetry.lines", "partition": 2, "offset": 7, "timestamp_unix_milli": MILLI}


def line(seconds_ago=0, **fields):
    time = MILLI * 1_000_000 - seconds_ago * 1_000_000_000
    return json.dumps({"time_unix_nano": time, "machine": "m", "name": "n", "value": 1.5, **fields}).encode()


def undecoded(value, **fields):
    return DeadLetter(0, 1, {"source": SOURCE, "value": base64.b64encode(value).decode(), **fields})


def otlp(*machines):
    """A request of one resource a machine."""

    def resource(machine):
        point = {"timeUnixNano": str(MILLI * 1_000_000), "asDouble": 2.0}
        return {
            "resource": {"attributes": [{"key": "host.name", "value": {"stringValue": machine}}]},
            "scopeMetrics": [{"metrics": [{"name": "n", "gauge": {"dataPoints": [point]}}]}],
        }

    return json.dumps({"resourceMetrics": [resource(machine) for machine in machines]}).encode()


EVENT = {"time_unix_nano": MILLI * 1_000_000, "series": "n", "name": "n", "value": 3.0, "type": "gauge"}
BATCH = {"id": "telemetry.lines-2-7-4", "machine": "m", "kind": "metric", "resource": {}, "events": to_columns([EVENT])}
SENT = {
    "good": undecoded(line()),
    "in time": undecoded(line(19)),
    "late": undecoded(line(21)),
    "broken": undecoded(b"{"),
    "part": undecoded(otlp("a", "b"), part=1, source=SOURCE | {"topic": "telemetry.otlp.metrics"}),
    "events": DeadLetter(0, 1, {"code": "future", "source": SOURCE, "batch": json.dumps(BATCH)}),
    "foreign": undecoded(line()),
}


@pytest.fixture(scope="module")
def came(spark):
    """What enrichment makes of each dead letter that is retried: (topic, record)."""
    inventory = spark.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA))
    topics = load_topics()
    rows = []
    for name, letter in SENT.items():
        # The offset distinguishes them here; really it is that of the original record.
        headers = [(k, str(len(rows)) if k.endswith("offset") else v) for k, v in letter.headers()]
        encoded = [(k, v.encode()) for k, v in headers] if name != "foreign" else [("other", b"x")]
        rows.append((None, letter.value, "events.retry", 0, len(rows), RECEIVED, 0, encoded))
    sent = spark.createDataFrame(rows, KAFKA)
    decoded = decode_retried(sent, topics)
    found = {name: [] for name in SENT}
    for row in enrichment(topics)(decoded, inventory).collect():
        record = json.loads(row.value)
        found[list(SENT)[record["source"]["offset"]]].append((row.topic, record))
    return found


def test_it_comes_out_as_it_would_have(came):
    [(topic, record)] = came["good"]
    assert topic == "events"
    assert record["id"] == "telemetry.lines-2-0-0"
    assert record["source"] == SOURCE | {"offset": 0}
    assert record["retried"] is True
    assert record["events"]["value"] == [1.5]


def test_lateness_is_judged_by_the_time_it_first_came(came):
    assert [topic for name in ("in time", "late") for topic, _ in came[name]] == ["events", "events.late"]


def test_what_is_still_broken_is_rejected_again_under_the_same_id(came):
    [(topic, record)] = came["broken"]
    assert (topic, record["code"], record["id"]) == ("events.rejected", "not_json", "telemetry.lines-2-3-0-not_json")
    assert record["source"] == SOURCE | {"offset": 3}
    assert base64.b64decode(record["value"]) == b"{"


def test_only_the_part_that_was_rejected_comes_back(came):
    [(topic, record)] = came["part"]
    assert (topic, record["machine"], record["id"]) == ("events", "b", "telemetry.otlp.metrics-2-4-1")


def test_rejected_events_of_a_decoded_batch_come_back_alone(came):
    [(topic, record)] = came["events"]
    assert (topic, record["id"], to_rows(record["events"])) == ("events", "telemetry.lines-2-5-4", [EVENT])


def test_what_nobody_sent_again_is_rejected_where_it_stands(came):
    [(topic, record)] = came["foreign"]
    assert (topic, record["code"], record["source"]["topic"]) == (
        "events.rejected",
        "not_telemetry",
        "events.retry",
    )


def test_a_cut_record_is_known():
    assert undecoded(b"x" * REJECTED_BYTES).is_cut
    assert not undecoded(b"x").is_cut
    assert DeadLetter(0, 0, {"code": "too_large", "source": {}}).is_cut


@pytest.mark.parametrize(("value", "text"), [(b"caf\xc3\xa9\n", "café\n"), (b"\xff\x00", "ff00"), (b"a\x00", "6100")])
def test_bytes_for_a_person(value, text):
    assert printable(value) == text
