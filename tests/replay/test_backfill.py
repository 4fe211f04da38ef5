"""How fast `kappa backfill` leads the archive through the jobs, beside the way through Kafka, in one run."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from jobs.runtime.settings import Settings
from tests.chaos.reading import read_topic
from tests.replay.chain import Chain, stop
from tests.replay.conftest import PORT
from tests.replay.report import Report

MACHINES, SECONDS = 200, 1_800  # so that the start of either is a small part of it
LEAST_GAIN = 3
SHIPPED = {
    f"KAPPA_{name.upper()}": str(Settings.model_fields[name].default)
    for name in ("max_offsets_per_trigger", "archive_trigger_seconds")
}


@pytest.fixture(scope="module")
def archived() -> Iterator[Chain]:
    """A chain with the shipped settings whose archive holds a simulated cloud; no other job has run."""
    home = Path(tempfile.mkdtemp(prefix="backfill-"))
    chain = Chain(home, PORT + 10)
    try:
        chain.up()
        chain.environment_changes |= SHIPPED
        chain.feed(SECONDS, machines=MACHINES, faults=())
        process = chain.start("run", "archive")
        chain.wait_until_caught_up("live", "archive")
        stop(process)
        yield chain
    finally:
        chain.down()
        shutil.rmtree(home, ignore_errors=True)


def test_a_backfill_is_faster_than_the_way_through_kafka(archived: Chain, report: Report):
    bounds = ("--source", "delta", "--to", "latest")
    through_kafka = _seconds(archived, "replay", "start", "--job", "enrichment", *bounds, "--as", "through")
    backfill = _seconds(archived, "backfill", *bounds, "--as", "y1")

    found = [record.value for record in read_topic(archived.settings.kafka_bootstrap, "events.through") if record.key]
    events = sum(len(orjson.loads(value)["events"]["time_unix_nano"]) for value in found if value)
    report.add(
        "backfill",
        events=events,
        events_per_s=round(events / backfill),
        through_kafka=round(events / through_kafka),
        gain=round(through_kafka / backfill, 1),
    )
    assert through_kafka / backfill >= LEAST_GAIN


def _seconds(chain: Chain, *command: str) -> float:
    """How long a command takes, with its start."""
    began = time.monotonic()
    chain.kappa(*command)
    return time.monotonic() - began
