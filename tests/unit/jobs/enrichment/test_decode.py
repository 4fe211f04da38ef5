"""A micro-batch is decoded topic by topic: each record by its own format's decoder, once, whatever else is there."""

import json
from datetime import UTC, datetime

import pytest

from infra.contract.dead_letters import REJECTED_BYTES, REJECTED_NAME
from infra.contract.schemas import DECODED
from infra.contract.topics import load_topics
from jobs.enrichment.decode import BatchDecoder
from tests.unit.jobs.enrichment.test_retry import KAFKA, RECEIVED, line, otlp, undecoded

TOPICS = load_topics()


@pytest.fixture(scope="module")
def decode():
    return BatchDecoder(TOPICS, list)


def rows(spark, *records):
    """Kafka's rows of (topic, value, headers)."""
    return spark.createDataFrame(
        [
            (None, value, topic, 0, offset, RECEIVED, 0, headers)
            for offset, (topic, value, headers) in enumerate(records)
        ],
        KAFKA,
    )


def decoded(decode, frame):
    return sorted((row.offset, row.machine, row.error, row.retried) for row in decode(frame).collect())


def test_each_record_is_decoded_once_by_the_decoder_of_its_topic(spark, decode):
    letter = undecoded(line(machine="again"))
    sent = [(name, value.encode()) for name, value in letter.headers()]
    frame = rows(
        spark,
        ("telemetry.lines", line(machine="vm-1"), None),
        ("telemetry.otlp.metrics", otlp("vm-2", "vm-3"), None),
        ("telemetry.otlp.metrics", line(machine="vm-4"), None),
        ("events.retry", letter.value, sent),
    )
    assert decoded(decode, frame) == [
        (0, "vm-1", None, None),
        (1, "vm-2", None, None),
        (1, "vm-3", None, None),
        (2, None, "not_otlp", None),
        (7, "again", None, True),  # its original offset
    ]


def test_a_batch_without_records_has_the_same_columns(spark, decode):
    frame = decode(rows(spark).where("false"))
    assert frame.count() == 0
    assert set(DECODED.names) < set(frame.columns)


def test_what_cannot_be_decoded_keeps_as_many_bytes_as_its_dead_letter_has(spark, decode):
    broken = json.dumps("x" * 2 * REJECTED_BYTES).encode()
    ((row,),) = [decode(rows(spark, ("telemetry.lines", broken, None))).collect()]
    assert len(row.value) == REJECTED_BYTES
    assert row.timestamp.replace(tzinfo=UTC) == datetime.fromtimestamp(RECEIVED.timestamp(), UTC)


def test_each_part_of_a_record_has_a_key_of_bounded_length(spark, decode):
    record = ("k" * 2 * REJECTED_NAME).encode(), otlp("vm-1", "vm-2"), "telemetry.otlp.metrics", 0, 0, RECEIVED, 0, None
    found = decode(spark.createDataFrame([record], KAFKA)).collect()
    assert [row.key for row in found] == [b"k" * REJECTED_NAME] * 2
