from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

from connectors.decoders.columns import event_rows
from connectors.decoders.registry import decoder_of
from infra.contract.schemas import EVENTS

KAFKA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
RECEIVED = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def decode(spark):
    """Record values through a decoder: one list of rows a record, in order; `json` is read back into `events`."""

    def run(wire_format, values):
        kafka = [(None, value, "telemetry", 0, offset, RECEIVED) for offset, value in enumerate(values)]
        found = [[] for _ in values]
        decoded = decoder_of(wire_format).decode(spark.createDataFrame(kafka, KAFKA).coalesce(1))
        parsed = decoded.withColumn("parsed", F.from_json("json", EVENTS["events"].dataType.simpleString()))
        rendered = F.when(F.col("json").isNotNull(), event_rows(F.col("parsed")))
        for row in parsed.withColumn("events", F.coalesce("events", rendered)).collect():
            found[row["offset"]].append(row)
        assert all(found), "a record without a row"
        return found

    return run
