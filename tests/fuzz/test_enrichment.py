"""100,000 bad records through decoders and enrichment: nothing fails, in = events + late + rejected, exactly."""

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from connectors.decoders.registry import decoder_of
from infra.contract.topics import load_topics
from jobs.enrichment.inventory import SCHEMA
from jobs.enrichment.transform import enrichment
from tests.fuzz.inputs import FORMATS, HOSTILE, REFERENCES, expected, mutate, seeds

COUNT = int(os.environ.get("KAPPA_FUZZ", "12500"))  # of each of the eight formats
BATCH = 2500
GENERATED = 10  # hypothesis's lists of up to 100 values, for each JSON format
KAFKA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
TOPICS = load_topics()
TOPIC_OF = {topic.format: topic.name for topic in TOPICS.telemetry}
RECEIVED = datetime.fromtimestamp(1795245484, UTC)  # when the samples were taken: most of their points are in time

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["NaN", "-Infinity", "-1", "0", "253402300800000000000", "1795245484000000000", "vm-1"]),
)
# fmt: off
NAMES = (
    "resourceMetrics", "resourceLogs", "resource", "attributes", "key", "value", "stringValue", "scopeMetrics",
    "scopeLogs", "metrics", "logRecords", "name", "gauge", "sum", "histogram", "summary", "exponentialHistogram",
    "dataPoints", "timeUnixNano", "asInt", "asDouble", "count", "body", "values", "dstypes", "dsnames", "time",
    "host", "plugin", "type", "machine", "time_unix_nano", "message", "@timestamp", "severity_text", "positive",
    "bucketCounts",
)
# fmt: on
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=25,
)


@pytest.fixture
def outcome(spark):
    """Values of a format through decoder and enrichment: for each, its events by topic, and its rejection codes."""
    inventory = spark.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA))

    def run(wire_format, values):
        place = {"topic": TOPIC_OF[wire_format], "partition": 0, "timestamp": RECEIVED, "timestampType": 1}
        rows = [{"key": None, "value": value, "offset": number, **place} for number, value in enumerate(values)]
        # As Arrow: pickled rows of 10 MB take more memory than a job has.
        kafka = spark.createDataFrame(pa.Table.from_pylist(rows, KAFKA)).repartition(2)
        found = [(Counter(), []) for _ in values]
        for record in enrichment(TOPICS)(decoder_of(wire_format).decode(kafka), inventory).toLocalIterator():
            parsed = json.loads(record.value)
            counts, codes = found[parsed["source"]["offset"]]
            if record.topic == "events.rejected":
                counts[record.topic] += parsed["events"]
                codes.append(parsed["code"])
            else:
                counts[record.topic] += len(parsed["events"]["time_unix_nano"])
        return found

    return run


def check(wire_format, value, counts, codes):
    """Every event of a decoded record is in one place; a record that could not be decoded is one rejection."""
    whole = [code for code in codes if code.startswith("not_") and code != "not_finite"]
    if whole:
        assert (counts, len(codes)) == (Counter({"events.rejected": 1}), 1), value
    elif "no_events" in codes and wire_format in REFERENCES:
        assert counts.total() - codes.count("no_events") == expected(wire_format, value), value
    else:
        assert counts.total() == expected(wire_format, value), value


@pytest.mark.timeout(600)
@pytest.mark.parametrize("wire_format", FORMATS)
def test_hostile_values_are_rejected_once(outcome, wire_format):
    for name, value in HOSTILE.items():  # one by one: a frame holds its values several times over
        [(counts, _)] = outcome(wire_format, [value])
        assert counts.total() == 1, name


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("wire_format", FORMATS)
def test_every_event_of_mutated_bytes_is_in_one_place(outcome, samples, wire_format):
    rng = random.Random(wire_format)
    originals = seeds(samples, wire_format)
    topics = Counter()
    for begin in range(0, COUNT, BATCH):
        values = [mutate(rng.choice(originals), rng) for _ in range(min(BATCH, COUNT - begin))]
        for value, (counts, codes) in zip(values, outcome(wire_format, values), strict=True):
            assert counts, value
            check(wire_format, value, counts, codes)
            topics.update(counts)
    assert topics["events.rejected"] > COUNT / 10
    assert topics.total() - topics["events.rejected"] > COUNT / 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("wire_format", [name for name in FORMATS if name.endswith("json")])
def test_every_event_of_generated_documents_is_in_one_place(outcome, wire_format):
    @settings(max_examples=GENERATED, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(documents, min_size=20, max_size=100))
    def run(found):
        values = [json.dumps(document).encode() for document in found]
        for value, (counts, codes) in zip(values, outcome(wire_format, values), strict=True):
            assert counts, value
            if not codes:
                check(wire_format, value, counts, codes)

    run()
