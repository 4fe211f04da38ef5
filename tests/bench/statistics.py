"""Measures the statistics fold alone, decoding included, over a recorded log of the simulated cloud; then what reading
its records costs the detector's fold and the indexer.

python -m tests.bench.statistics --machines 200 --minutes 5
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import orjson

from infra.contract.columnar import event_columns
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.indexer import documents
from jobs.runtime.shard_state import Input
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard as StatisticsShard
from ops.simulator.faults import SECOND
from ops.simulator.simulation import Lines, Record, Scrape, Simulation
from ops.simulator.simulation import Settings as Cloud

LATENESS = 25 * SECOND  # the topics' lateness and the watermarks' margin
START = 1_800_000_000 * SECOND


def events_log(cloud: Cloud, batch_seconds: int = 2) -> Iterator[tuple[int, list[bytes]]]:
    """Batches as enrichment writes them to one partition: (events in it, records and their watermark)."""
    simulation = Simulation(cloud)
    batch: list[bytes] = []
    count, due = 0, cloud.start_unix_nano // 1_000_000 + batch_seconds * 1000
    for number, record in enumerate(simulation.records()):
        if record.timestamp_ms >= due:
            yield count, [*batch, orjson.dumps({"watermark_unix_nano": due * 1_000_000 - LATENESS})]
            batch, count = [], 0
            due += batch_seconds * 1000 * (1 + (record.timestamp_ms - due) // (batch_seconds * 1000))
        events = list(_events(simulation, record))
        if events:
            batch.append(_enriched(simulation, record, number, events))
            count += len(events)
    yield count, [*batch, orjson.dumps({"watermark_unix_nano": due * 1_000_000 + LATENESS})]


def _events(simulation: Simulation, record: Record) -> Iterator[dict]:
    match record.content:
        case Scrape() as scrape:
            values = scrape.values.tolist()
            for instrument, value in zip(simulation.instruments[scrape.machine], values, strict=True):
                kind = (
                    {"temporality": "cumulative", "monotonic": instrument.monotonic} if instrument.type == "sum" else {}
                )
                yield {
                    "time_unix_nano": scrape.time_unix_nano,
                    "series": instrument.series,
                    "name": instrument.name,
                    "value": value,
                    "unit": instrument.unit,
                    "type": instrument.type,
                    **kind,
                    "attributes": dict(instrument.attributes),
                }
        case Lines(_, lines):
            for simulated in lines:
                yield {
                    "time_unix_nano": simulated.line.time_unix_nano,
                    "series": simulated.template.masked,
                    "type": "log",
                    "attributes": {},
                    "severity_number": simulated.line.severity_number,
                    "severity_text": simulated.line.severity_text,
                    "body": simulated.line.body,
                    "template": simulated.template.masked,
                }


def _enriched(simulation: Simulation, record: Record, number: int, events: list[dict]) -> bytes:
    machine = simulation.machines[record.content.machine]
    facts = {key: value for key, value in machine.inventory(0).items() if key in ("type", "site", "hypervisor", "role")}
    return orjson.dumps(
        {
            "id": f"{record.topic}-0-{number}-0",
            "machine": machine.name,
            "kind": "log" if isinstance(record.content, Lines) else "metric",
            "resource": {"host.name": machine.name},
            "inventory": {"known": True, **facts},
            "source": {"topic": record.topic, "partition": 0, "offset": number, "timestamp_unix_milli": 0},
            "events": event_columns(events),
        }
    )


def main() -> None:
    """Print CPU time an event, and the size of what is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--batch", type=int, default=2, help="seconds of event time in a micro-batch")
    given = parser.parse_args()
    cloud = Cloud(START, given.minutes * 60 * SECOND, machines=given.machines)
    log, settings = list(events_log(cloud, given.batch)), load_windows()
    events = sum(count for count, _ in log)
    statistics, state, offset, batches = StatisticsShard(settings), None, 0, []
    with measured("statistics", events):
        for _, values in log:
            batches.append(statistics.feed(Input("events", 0, range(offset, offset + len(values)), values)))
            state = statistics.dump()
            offset += len(values)
    written = [output for outputs in batches for output in outputs]
    size = sum(len(output.value) for output in written)
    held = sum(map(len, (state or {}).values()))
    print(f"{len(written):,} records, {size / 1e6:.1f} MB out; state {held / 1e6:.2f} MB")
    final = [[output.value for output in outputs if output.topic is None] for outputs in batches]
    shard = Shard(DetectorSettings())
    with measured("detector", events):
        for values in final:
            shard.feed(values)
    with measured("documents", events):
        for value in chain.from_iterable(final):
            documents.statistics(orjson.loads(value))


@contextmanager
def measured(what: str, events: int) -> Iterator[None]:
    """Print the block's CPU time."""
    began = time.process_time()
    yield
    seconds = time.process_time() - began
    print(f"{what}: {events:,} events in {seconds:.2f} CPU s: {1e6 * seconds / events:.2f} us each")


if __name__ == "__main__":
    main()
