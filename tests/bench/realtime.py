"""`make bench-realtime`: from the raw topic to `events`, real-time mode beside micro-batches, on one broker.

Each mode runs as a process of its own, one after the other, in a generation of its own. Lines are sent at a steady
pace; an event's latency is the time from just before it is sent to when a `read_committed` consumer has it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import typer
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from infra.admin import apply, connect
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from infra.topics import DEFAULT_MAP, TopicMap, load_topics

PORT = 31500
SETTLE_SECONDS = 120
TOPIC = "telemetry.lines"
MODES = {"micro-batch, trigger 0.1 s": ("batches", "0.1", False), "real-time": ("now", "2", True)}
app = typer.Typer(add_completion=False)


@contextmanager
def job(home: Path, bootstrap: str, generation: str, trigger: str, realtime: bool) -> Iterator[None]:
    """The enrichment job as a process."""
    environment = {
        **os.environ,
        "KAPPA_HOME": str(home),
        "KAPPA_JARS": str(default_jars()),
        "KAPPA_KAFKA_BOOTSTRAP": bootstrap,
        "KAPPA_GENERATION": generation,
        "KAPPA_METRICS_PORT": "0",
        "KAPPA_TRIGGER_SECONDS": trigger,
        "KAPPA_TOPICS_FILE": str(home / "topics.yaml"),
    }
    command = [sys.executable, "-m", "jobs.cli", "run", "enrichment", *(["--realtime"] if realtime else [])]
    with (home / f"{generation}.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.terminate()
        running.wait(90)


def latencies(bootstrap: str, topics: TopicMap, rate: int, seconds: int) -> list[float]:
    """Seconds from sending to reading, of each event after the first ones have come."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_committed"})
    name = topics["events"].name
    consumer.assign(
        [TopicPartition(name, n, OFFSET_END) for n in consumer.list_topics(name, 30).topics[name].partitions]
    )
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    found: list[float] = []
    began, number, settled = time.monotonic(), 0, float("inf")
    while time.monotonic() < min(settled + seconds, began + SETTLE_SECONDS + seconds):
        if time.monotonic() - began > number / rate:
            line = {"time_unix_nano": time.time_ns(), "machine": f"vm-{number % 10}", "name": "n", "value": number}
            producer.produce(TOPIC, orjson.dumps(line))
            producer.poll(0)
            number += 1
        message = consumer.poll(0.001)
        if message is None or message.error() or b"tick_unix_nano" in (message.value() or b""):
            continue
        now = time.time_ns()
        events = orjson.loads(message.value() or b"")["events"]
        if settled == float("inf") and (now - events[-1]["time_unix_nano"]) < 5e9:
            settled = time.monotonic() + 10  # another ten seconds to warm up
        if time.monotonic() > settled:
            found += [(now - event["time_unix_nano"]) / 1e9 for event in events]
    consumer.close()
    return found


@app.command()
def main(
    rate: Annotated[int, typer.Option(help="Events a second.")] = 100,
    seconds: Annotated[int, typer.Option(help="How long each mode is measured.")] = 30,
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/realtime.json"),
) -> None:
    """Measure both modes."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        broker = KafkaBroker(home / "broker", PORT, jars=default_jars())
        broker.spawn()
        try:
            while not broker.ready():
                time.sleep(0.5)
            one_partition = DEFAULT_MAP.read_text().replace("partitions: 4", "partitions: 1")
            (home / "topics.yaml").write_text(one_partition)
            for mode, (generation, trigger, realtime) in MODES.items():
                topics = load_topics(home / "topics.yaml").in_generation(generation)
                apply(connect(broker.address), topics)
                with job(home, broker.address, generation, trigger, realtime):
                    seen = np.array(latencies(broker.address, topics, rate, seconds))
                quantiles = np.quantile(seen, [0.5, 0.99]) if len(seen) else [None, None]
                found[mode] = {"p50_ms": quantiles[0] * 1000, "p99_ms": quantiles[1] * 1000, "events": len(seen)}
                typer.echo(json.dumps({mode: found[mode]}))
        finally:
            broker.stop()
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    app()
