"""Sends the events of the Yahoo benchmark: as quickly as the broker takes them, or each at its time."""

import time
from typing import Annotated

import orjson
import typer

from connectors.kafka.client import make_producer
from connectors.kafka.offsets import Log
from connectors.kafka.security import client_config
from tests.bench.yahoo.ads import STEP_MS, Ads

QUEUED = 200_000  # records: then it waits for the broker

app = typer.Typer(add_completion=False)


class Sender:
    """Sends to the partitions of a topic in turn, and counts in the end what has arrived."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic, self.sent, self._log = topic, 0, Log(bootstrap)
        settings = {"enable.idempotence": True, "acks": "all", "compression.type": "lz4", "linger.ms": 20}
        room = {"queue.buffering.max.messages": 2 * QUEUED}
        self._producer = make_producer(client_config(bootstrap), settings | room)
        self._partitions = len(self._log.partitions([topic]))

    def send(self, timestamps: list[int], values: list[bytes]) -> None:
        """Queue records; waits while too many are."""
        while len(self._producer) > QUEUED:
            self._producer.poll(0.1)
        for partition in range(self._partitions):
            turn = slice(partition, None, self._partitions)
            # One by one, as a batch of this client has no timestamps.
            for timestamp, value in zip(timestamps[turn], values[turn], strict=True):
                self._producer.produce(self.topic, value, partition=partition, timestamp=timestamp)
        self.sent += len(values)

    def finish(self) -> None:
        """Wait until all records have arrived, in a topic that was empty."""
        self._producer.flush()
        arrived = sum(self._log.ends([self.topic]).values())
        assert arrived == self.sent, f"{arrived} of {self.sent} records have arrived in {self.topic}"


@app.command()
def main(
    bootstrap: Annotated[str, typer.Option(help="Kafka's addresses.")],
    topic: Annotated[str, typer.Option(help="An empty topic.")],
    seed: Annotated[int, typer.Option(help="What the events follow from.")],
    start_ms: Annotated[int, typer.Option(help="The time of the first event, ms since the Unix epoch.")],
    rate: Annotated[int, typer.Option(help="Events a second of event time.")],
    seconds: Annotated[int, typer.Option(help="Seconds of event time.")],
    paced: Annotated[bool, typer.Option(help="Send each event at its time.")] = False,
) -> None:
    """Send, then print what was sent, the CPU time that it took and how far it fell behind, as JSON.

    Example: python -m tests.bench.yahoo.load --bootstrap 127.0.0.1:9092 --topic ads --seed 1 --start-ms 0
    --rate 10000 --seconds 60
    """
    ads, sender, behind = Ads(seed, start_ms, rate, seconds), Sender(bootstrap, topic), 0.0
    for number in range(ads.steps):
        timestamps, values = ads.render(number)
        if paced:
            left = (start_ms + (number + 1) * STEP_MS) / 1000 - time.time()
            behind = max(behind, -left)
            time.sleep(max(0.0, left))
        sender.send(timestamps, values)
    sender.finish()
    facts = {"events": sender.sent, "behind_seconds": round(behind, 3), "cpu_seconds": round(time.process_time(), 2)}
    print(orjson.dumps(facts).decode())


if __name__ == "__main__":
    app()
