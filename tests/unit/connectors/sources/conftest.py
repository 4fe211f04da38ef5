import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.sources import decoder

KAFKA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
RECEIVED = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def decode(spark):
    """Record values through a decoder: one list of rows a record, in order."""

    def run(wire_format, values):
        kafka = [(None, value, "telemetry", 0, offset, RECEIVED) for offset, value in enumerate(values)]
        found = [[] for _ in values]
        for row in decoder(wire_format)(spark.createDataFrame(kafka, KAFKA).coalesce(1)).collect():
            found[row["offset"]].append(row)
        assert all(found), "a record without a row"
        return found

    return run


@pytest.fixture(scope="session")
def samples():
    folder = Path(os.environ.get("KAPPA_SHARED", "../shared")) / "samples"
    if not folder.is_dir():
        pytest.skip(f"the collectors' sample bytes aren't at {folder} (set KAPPA_SHARED)")
    return folder
