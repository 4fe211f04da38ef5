"""The load of `make bench`: a cloud's scrapes at a steady pace.

Records are rendered beforehand as far as they can be, so that this process takes little of the machine that it loads;
the report says how much.
"""

import random
import time
from dataclasses import dataclass
from itertools import count
from typing import Annotated

import orjson
import typer

from connectors.kafka.client import make_producer
from connectors.kafka.offsets import Log
from connectors.kafka.security import client_config
from ops.simulator import cloud, signals
from ops.simulator.encode import INVENTORY_TOPIC, LINES_TOPIC, METRICS_TOPIC, MetricTemplate, metric_line

SLACK = 0.05  # seconds; it sleeps only for longer than that: to wake for each record took a quarter of its CPU time
QUEUED = 100_000  # records: then it waits for the broker
VARIANTS = 16  # of a gauge's values; they follow each other at random
TIME_MARK = 1_111_111_111_111_111_111

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Scraped:
    """A machine: how to render one scrape of it, and how many data points that has."""

    name: bytes
    points: int
    template: MetricTemplate
    variants: list[list[bytes]]  # the gauges' values
    lines: list[bytes]

    def scrape(self, time_unix_nano: int, step: int) -> bytes:
        """All its data points in one OTLP record."""
        gauges = random.choice(self.variants)
        counter = b"%d" % (step * 1000)
        return self.template.fill(time_unix_nano, [*gauges, *[counter] * (self.points - len(gauges))])

    def single(self, time_unix_nano: int) -> list[bytes]:
        """Its data points, one a record."""
        now = b"%d" % time_unix_nano
        return [line.replace(b"%d" % TIME_MARK, now) for line in self.lines]


class Sender:
    """Sends to one topic a machine's records at a time: to be told of the delivery of each took half of the CPU time.

    So what has arrived is counted in the end.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic, self.log, self.sent = topic, Log(bootstrap), 0
        settings = {"enable.idempotence": True, "acks": "all", "compression.type": "lz4", "linger.ms": 50}
        self.producer = make_producer(client_config(bootstrap), settings)
        self.before = self._end()

    def send(self, key: bytes, values: list[bytes]) -> None:
        """Queue a machine's records; waits while too many are."""
        while len(self.producer) > QUEUED:
            self.producer.poll(0.1)
        queued = self.producer.produce_batch(self.topic, [{"key": key, "value": value} for value in values])
        assert queued == len(values), f"the producer took {queued} of {len(values)} records"
        self.sent += queued

    def finish(self) -> None:
        """Wait until all records have arrived."""
        self.producer.flush()
        arrived = self._end() - self.before
        assert arrived == self.sent, f"{arrived} of {self.sent} records have arrived in {self.topic}"

    def _end(self) -> int:
        return sum(self.log.ends([self.topic]).values())


def scraped(machine: cloud.Machine, *, singles: bool) -> Scraped:
    """Render what can be rendered beforehand of a machine."""
    instruments = [signal.instrument for signal in signals.of_role(machine.role)]
    rng = random.Random(machine.name)
    levels = [rng.uniform(0.1, 0.9) for _ in range(signals.GAUGES)]
    variants = [[b"%.4f" % (level * rng.gauss(1, 0.03)) for level in levels] for _ in range(VARIANTS)]
    template = MetricTemplate(machine, instruments, time.time_ns())
    lines = [metric_line(machine, one, TIME_MARK, variants[0][0]) for one in instruments if singles]
    return Scraped(machine.name.encode(), len(instruments), template, variants, lines)


@app.command()
def main(
    bootstrap: Annotated[str, typer.Option(help="Kafka's addresses.")],
    rate: Annotated[int, typer.Option(help="Events a second.")] = 10_000,
    seconds: Annotated[int, typer.Option(help="How long.")] = 60,
    machines: Annotated[int, typer.Option(help="How many machines; each is scraped in turn.")] = 1_000,
    singles: Annotated[bool, typer.Option(help="One event a record instead of a machine's scrape.")] = False,
) -> None:
    """Send, then print what was sent, the CPU time that it took and how far it fell behind, as JSON.

    Example: python -m tests.bench.chain.load --bootstrap 127.0.0.1:9092 --rate 50000
    """
    built = cloud.build(machines, max(2, machines // 300))
    inventory = Sender(bootstrap, INVENTORY_TOPIC)
    for machine in built:
        inventory.send(machine.name.encode(), [orjson.dumps(machine.inventory(0))])
    inventory.finish()
    fleet = [scraped(machine, singles=singles) for machine in built]
    sender = Sender(bootstrap, LINES_TOPIC if singles else METRICS_TOPIC)
    sent, behind, spent, began = 0, 0.0, time.process_time(), time.time()
    for step, one in ((step, one) for step in count() for one in fleet):
        if (left := began + sent / rate - time.time()) > SLACK:
            time.sleep(left)
        behind = max(behind, -left)
        if time.time() - began >= seconds:
            break
        now = time.time_ns()
        sender.send(one.name, one.single(now) if singles else [one.scrape(now, step)])
        sent += one.points
    sender.finish()
    facts = {"events": sent, "seconds": time.time() - began, "behind_seconds": behind}
    print(orjson.dumps(facts | {"cpu_seconds": time.process_time() - spent}).decode())


if __name__ == "__main__":
    app()
