"""A long backlog: its rate, and the memory that it takes, whatever its length.

KAPPA_REPLAY_EVENTS=10000000 for the whole of it.
"""

import os
import time
from typing import Any

import orjson
import psutil
import pytest
from confluent_kafka import Producer

from infra.contract.columnar import event_columns
from jobs.runtime.watermarks import last_watermarks
from jobs.table import JOBS
from ops.replay.registry import CHAIN, Generation, write
from ops.replay.run import prepare
from tests.replay.chain import Chain, descendants
from tests.replay.report import Report

EVENTS = int(os.environ.get("KAPPA_REPLAY_EVENTS", "1000000"))
MACHINES, SERIES, WINDOW_SECONDS = 200, 50, 10
STEPS = max(2, EVENTS // (MACHINES * SERIES))
START = 1_700_000_000_000  # ms: much older than the retention of the live topics
MEMORY_MEGABYTES = 10_000  # of the four jobs together: three JVMs of 1 GB heap, with batches of a million events


@pytest.fixture(scope="module")
def backlog(chain: Chain):
    """`events` of a generation of its own, filled as enrichment would: a record a machine and window, watermarks."""
    generation = Generation(name="long", base="live", jobs=CHAIN)
    prepare(generation, JOBS.topics_in(chain.topics, "long"), chain.settings)
    write(chain.settings.kafka_bootstrap, generation)
    producer = Producer(
        {"bootstrap.servers": chain.settings.kafka_bootstrap, "compression.type": "lz4", "linger.ms": 50}
    )
    records = [(f"m-{number:03}", _record(f"m-{number:03}")) for number in range(MACHINES)]
    for step in range(STEPS):
        milli = START + step * WINDOW_SECONDS * 1000
        for machine, record in records:
            _send(producer, record.replace(b"1111111111111", b"%d" % milli), machine, milli)
        for partition in range(4):
            _send(producer, b'{"watermark_unix_nano":%d000000}' % milli, None, milli, partition)
    assert producer.flush(120) == 0
    return STEPS * MACHINES * SERIES


def _record(machine: str) -> bytes:
    points = [
        {"time_unix_nano": 1111111111111_000000, "series": f"metric_{n}", "name": f"metric_{n}", "value": n + 0.5}
        for n in range(SERIES)
    ]
    source = {"topic": "telemetry.lines", "partition": 0, "offset": 0, "timestamp_unix_milli": START}
    head = {"id": machine, "machine": machine, "kind": "metric", "resource": {}, "inventory": {"known": False}}
    return orjson.dumps({**head, "source": source, "events": event_columns(points)})


def _send(producer: Producer, value: bytes, key: str | None, milli: int, partition: int = -1) -> None:
    while True:
        try:
            return producer.produce("events.long", value, key, partition, timestamp=milli)
        except BufferError:
            producer.poll(0.2)


def test_a_long_backlog_takes_bounded_memory(chain: Chain, report: Report, backlog: int):
    facts = _replayed(chain, backlog, "fast")
    report.add("a long backlog", **facts)
    peaks = facts["peak_megabytes_by_third"]
    assert max(peaks) < MEMORY_MEGABYTES
    assert peaks[2] < 1.2 * max(peaks[:2])  # it doesn't grow with what was read


def test_without_tables_and_documents_it_is_quicker(chain: Chain, report: Report, backlog: int):
    facts = _replayed(chain, backlog, "bare", "--without", "archive", "--without", "indexer")
    report.add("a long backlog, to compare", **facts)
    assert max(facts["peak_megabytes_by_third"]) < MEMORY_MEGABYTES
    assert facts["seconds"] < report.proofs["a long backlog"]["seconds"]


def _replayed(chain: Chain, events: int, name: str, *options: str) -> dict[str, Any]:
    """Replay the backlog as a generation, to its end; how long that took, and what it used."""
    chain.environment_changes["KAPPA_MAX_OFFSETS_PER_TRIGGER"] = "20000"
    start = ("replay", "start", "--job", "statistics", "--base", "long", "--to", "latest", "--as", name, *options)
    began = time.monotonic()
    process = chain.start(*start)
    peaks: list[float] = []
    busy: dict[int, float] = {}
    while process.poll() is None:
        family = [*descendants(process), psutil.Process(process.pid)]
        peaks.append(sum(map(_megabytes, family)))
        busy |= {one.pid: max(_cpu_seconds(one), busy.get(one.pid, 0.0)) for one in family}
        time.sleep(1)
    seconds = time.monotonic() - began
    assert process.returncode == 0

    last = (START + (STEPS - 1) * WINDOW_SECONDS * 1000) * 1_000_000
    assert set(last_watermarks(chain.settings.kafka_bootstrap, f"statistics.{name}", tail=300).values()) == {last}
    third = len(peaks) // 3
    return {
        "events": events,
        "seconds": round(seconds, 1),
        "events_per_second": round(events / seconds),
        "cores_busy": round(sum(busy.values()) / seconds, 2),  # beside those of the broker
        "cores": psutil.cpu_count(),
        "peak_megabytes": round(max(peaks)),
        "peak_megabytes_by_third": [round(max(peaks[n * third : (n + 1) * third or None] or [0])) for n in range(3)],
    }


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0


def _megabytes(process: psutil.Process) -> float:
    try:
        return process.memory_full_info().uss / 2**20
    except psutil.NoSuchProcess:
        return 0.0
