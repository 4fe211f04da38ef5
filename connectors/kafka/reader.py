"""A topic as it stands: for comparisons, for commands, and for what a program must know before it starts."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from connectors.kafka.access import describe_topic
from connectors.kafka.client import READER, open_consumer
from connectors.kafka.security import client_config
from infra.contract.offsets import Partition
from infra.contract.versions import HEADER, upcast

_RECORDS = 10_000
_TAIL = -2000  # librdkafka's RD_KAFKA_OFFSET_TAIL_BASE, which its Python form lacks


def read_topic(
    bootstrap: str,
    topic: str,
    tail: int | None = None,
    begin: Mapping[Partition, int] | None = None,
    partitions: Collection[int] | None = None,
) -> Iterator[Message]:
    """Every committed record up to the topic's present end, in order within a partition; none if it isn't there.

    With `tail` only what stands at the last so many offsets of each partition; with `begin` from these offsets on; with
    `partitions` only of these.

    Raises UserError if no broker lets us in or this user may not see the topic, KafkaException if one fails for good.
    """
    own = {
        "auto.offset.reset": "earliest",  # where a partition is shorter than `tail`
        # The end lies behind what aborted transactions and their markers left.
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # at the end: a broker that has no more says so at once
        "log_level": 0,
    }
    with open_consumer(client_config(bootstrap), READER, settings=own) as consumer:
        found = describe_topic(consumer, bootstrap, topic)
        first = OFFSET_BEGINNING if tail is None else _TAIL - tail
        places = [(topic, number) for number in found.partitions if partitions is None or number in partitions]
        consumer.assign([TopicPartition(*place, (begin or {}).get(place, first)) for place in places])
        yield from _until_end(consumer, len(places))


def _until_end(consumer: Consumer, partitions: int) -> Iterator[Message]:
    ended: set[int | None] = set()
    while len(ended) < partitions:
        for message in consume(consumer, _RECORDS, 1.0):
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif not error.retriable():
                raise KafkaException(error)


def consume(consumer: Consumer, most: int, seconds: float) -> list[Message]:
    """What comes with the first message, for which it waits so long; the consumer's own call would wait for `most`."""
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(most - 1, 0.005)]


def read_records(
    bootstrap: str, topic: str, tail: int | None = None, begin: Mapping[Partition, int] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The partition and the parsed JSON of each of these records, as this version would have written it.

    What is no JSON object is passed over: whoever may write the topic could stop its readers by it.
    """
    for message in read_topic(bootstrap, topic, tail, begin):
        if (record := object_of(value_of(message))) is not None:
            yield message.partition() or 0, record


def object_of(value: bytes | None) -> dict[str, Any] | None:
    """The JSON object that a record's value is, or None if it is none."""
    try:
        found = orjson.loads(value or b"null")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def value_of(message: Message) -> bytes | None:
    """The bytes of a consumed record, as this version would have written it (see infra.contract.versions)."""
    headers: Iterable[tuple[str, bytes | None]] = message.headers() or ()  # type: ignore[assignment]
    return upcast(message.value(), next((value for name, value in headers if name == HEADER), None))
