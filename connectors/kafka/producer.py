"""A Kafka producer whose failures are heard: idempotent, acks=all, every delivery error raised."""

import time
from collections.abc import Callable, Iterable
from threading import Event
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message

from connectors.kafka.access import no_right, partitions_of, reach
from connectors.kafka.client import make_producer
from connectors.kafka.security import client_config
from infra.errors import UserError

Delivered = Callable[[int], None]
STOP_TIMEOUT_S = 5  # what was sent gets so long to be delivered once the program is told to stop
TOPIC_TIMEOUT_S = 5
WRITE_TIMEOUT_S = 30
BY_KEY = -1  # as a partition: the one that the key's hash says


class Sender(Protocol):
    """Where a collector's records go."""

    def send(self, topic: str, key: bytes, value: bytes, timestamp_ms: int, delivered: Delivered | None = None) -> None:
        """Takes a record; `delivered` gets the timestamp that it has on the topic, ms."""

    def poll(self, seconds: float = 0) -> None:
        """Serves delivery reports."""

    def flush(self) -> None:
        """Returns when all is delivered."""


class CollectorProducer:
    """Sends records; raises `KafkaException` from the next call after one could not be delivered."""

    def __init__(self, bootstrap: str, topics: Iterable[str], stop: Event | None = None, **config: Any) -> None:
        """Connects and checks the topics. Once `stop` is set, nothing here waits for a broker for longer than seconds.

        Raises:
            UserError: no broker at `bootstrap` lets us in, or a topic is missing.
        """
        self._stop = stop or Event()
        self._give_up_at: float | None = None
        self._error: KafkaError | None = None
        settings = {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 20,
            "compression.type": "zstd",
            "queue.buffering.max.messages": 200_000,
            "log_level": 2,
            **config,
        }
        self._check(bootstrap, set(topics))
        self._producer = make_producer(client_config(bootstrap), settings)

    def _check(self, bootstrap: str, topics: set[str]) -> None:
        admin = reach(bootstrap, stop=self._stop)
        # A broker may show a topic some seconds after it was made.
        deadline = time.monotonic() + TOPIC_TIMEOUT_S
        while (missing := topics - partitions_of(admin, topics).keys()) and time.monotonic() < deadline:
            time.sleep(0.2)
        if missing:
            raise UserError(f"topic {min(missing)!r} is not on {bootstrap}: make the topics with `kappa topics apply`")

    def send(self, topic: str, key: bytes, value: bytes, timestamp_ms: int, delivered: Delivered | None = None) -> None:
        """Queues one record; waits while the queue is full."""

        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._error = self._error or error
            elif delivered is not None:
                delivered(message.timestamp()[1])

        self.poll()
        while True:
            try:
                return self._producer.produce(topic, value, key, timestamp=timestamp_ms, on_delivery=report)
            except BufferError:
                self._check_patience()
                self.poll(0.1)

    def poll(self, seconds: float = 0) -> None:
        """Serves delivery reports for up to `seconds`."""
        self._producer.poll(seconds)
        if self._error is not None:
            raise KafkaException(self._error)

    def flush(self) -> None:
        """Waits until all that was sent is delivered.

        Raises UserError if it was not, seconds after the program was told to stop.
        """
        while self._producer.flush(1):
            self._check_patience()
            self.poll()
        self.poll()

    def _check_patience(self) -> None:
        if not self._stop.is_set():
            return
        self._give_up_at = self._give_up_at or time.monotonic() + STOP_TIMEOUT_S
        if time.monotonic() > self._give_up_at:
            raise UserError(
                f"{len(self._producer):,} records were not delivered before the stop: no Kafka broker answers"
            )


def write_now(bootstrap: str, topic: str, key: str, value: bytes, partitions: Iterable[int] = (BY_KEY,)) -> None:
    """Write a record into these partitions of a topic: it is on the broker when this returns.

    Raises:
        UserError: it can't be written.
    """
    reach(bootstrap)
    # The sink's partitioner: what is of a machine lies where its events do.
    settings = {"enable.idempotence": True, "partitioner": "murmur2_random"}
    producer = make_producer(client_config(bootstrap), settings)
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for partition in partitions:
        try:
            producer.produce(topic, value, key, partition, on_delivery=delivered)
        except KafkaException as refused:  # the client knew the broker's answer before it queued the record
            failures.append(refused.args[0])
    if producer.flush(WRITE_TIMEOUT_S) or failures:
        if failures and failures[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise UserError(no_right(f"topic {topic!r}"))
        reason = failures[0].str() if failures else "no answer"
        raise UserError(f"topic {topic!r}: can't be written ({reason}); is it there? kappa topics apply")
