"""`make bench-realtime`: from the raw topic to `events`, real-time mode beside micro-batches, on one broker.

Each mode runs as a process of its own, one after the other, in a generation of its own. Lines are sent at a steady
pace; a line's latency is the time from just before it is sent to when a `read_committed` consumer has its event.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import typer
import yaml
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Producer, TopicPartition
from rich.console import Console

from connectors.kafka.admin import apply, connect
from infra.contract.topics import DEFAULT_MAP, TopicMap, load_topics
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from jobs.table import JOBS
from tests.waiting import until

PORT = 31500
START_SECONDS, WARM_SECONDS = 120.0, 20.0
NANO = 1_000_000_000

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Mode:
    """A way to run enrichment."""

    name: str
    generation: str
    trigger_seconds: float = 2.0
    arguments: tuple[str, ...] = ()


MODES = (
    Mode("micro-batches, trigger 2 s (default)", "default"),
    Mode("micro-batches, trigger 0.1 s", "quick", 0.1),
    Mode("real-time", "now", arguments=("--realtime",)),
)


@contextmanager
def enrichment(mode: Mode, home: Path, bootstrap: str) -> Iterator[None]:
    """The job as a process."""
    environment = {
        **os.environ,
        "KAPPA_HOME": str(home),
        "KAPPA_JARS": str(default_jars()),
        "KAPPA_KAFKA_BOOTSTRAP": bootstrap,
        "KAPPA_GENERATION": mode.generation,
        "KAPPA_METRICS_PORT": "0",
        "KAPPA_TRIGGER_SECONDS": str(mode.trigger_seconds),
        "KAPPA_TOPICS_FILE": str(home / "topics.yaml"),
    }
    command = [sys.executable, "-m", "ops.cli", "run", "enrichment", *mode.arguments]
    with (home / f"{mode.generation}.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        running.terminate()
        running.wait(90)


@dataclass
class Stopwatch:
    """Sends lines and takes the time until their events are there."""

    bootstrap: str
    topics: TopicMap
    rate: int
    sent: int = 0
    latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        self.consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bench"})
        name = self.topics["events"].name
        partitions = self.consumer.list_topics(name, 30).topics[name].partitions
        self.consumer.assign([TopicPartition(name, number, OFFSET_END) for number in partitions])

    def run(self, seconds: float) -> list[float]:
        """The latencies, seconds, of what comes within that time."""
        self.latencies, began, before = [], time.monotonic(), self.sent
        while (passed := time.monotonic() - began) < seconds:
            if self.sent - before < passed * self.rate:
                self._send()
            self._receive()
        return self.latencies

    def wait(self) -> None:
        """Returns when events come as quickly as they are sent. Raises TimeoutError."""
        deadline = time.monotonic() + START_SECONDS
        while not (found := self.run(1.0)) or min(found) > 5:
            if time.monotonic() > deadline:
                raise TimeoutError("no event came; look at the job's log")

    def _send(self) -> None:
        line = {"time_unix_nano": time.time_ns(), "machine": f"vm-{self.sent % 10}", "name": "n", "value": self.sent}
        self.producer.produce(self.topics["telemetry.lines"].name, orjson.dumps(line))
        self.producer.poll(0)
        self.sent += 1

    def _receive(self) -> None:
        message = self.consumer.poll(0.001)
        if message is None:
            return
        if message.error():
            raise KafkaException(message.error())
        record, now = orjson.loads(message.value() or b"null"), time.time_ns()
        if "events" in record:
            self.latencies += [(now - event_time) / NANO for event_time in record["events"]["time_unix_nano"]]


def measure(mode: Mode, home: Path, bootstrap: str, rate: int, seconds: int) -> dict[str, float]:
    """A mode's quantiles, ms."""
    topics = JOBS.topics_in(load_topics(home / "topics.yaml"), mode.generation)
    apply(connect(bootstrap), topics)
    with enrichment(mode, home, bootstrap):
        stopwatch = Stopwatch(bootstrap, topics, rate)
        stopwatch.wait()
        stopwatch.run(WARM_SECONDS)
        found = np.array(stopwatch.run(seconds)) * 1000
    p50, p99 = np.quantile(found, [0.5, 0.99]).round(1)
    return {"p50_ms": float(p50), "p99_ms": float(p99), "events": len(found)}


@app.command()
def main(
    rate: Annotated[int, typer.Option(help="Events a second.")] = 100,
    seconds: Annotated[int, typer.Option(help="How long each mode is measured.")] = 60,
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/realtime.json"),
) -> None:
    """Measure every mode. Example: python -m tests.bench.realtime --rate 500"""
    console, found = Console(), {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        # One partition: real-time mode holds a core for each.
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        declared["defaults"]["partitions"] = 1
        (home / "topics.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))
        broker = KafkaBroker(home / "broker", PORT, jars=default_jars())
        broker.spawn()
        try:
            until(broker.ready, 60, "the broker does not start")
            for mode in MODES:
                found[mode.name] = measure(mode, home, broker.address, rate, seconds)
                console.print(f"{mode.name}: {found[mode.name]}")
        finally:
            broker.stop()
    report.parent.mkdir(exist_ok=True)
    report.write_bytes(orjson.dumps({"rate": rate, "modes": found}, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    app()
