"""How large a topic's records are: Kafka bounds a read by their number, memory and time are a matter of their bytes."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from connectors.kafka.client import READER, open_consumer
from connectors.kafka.offsets import Log
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets, Partition

PLACES = 4  # over the length of each partition
RECORDS = 5  # at each place
SECONDS = 2.0  # at most, for one place
UNPACKED_BYTES = 100_000_000  # librdkafka unpacks no batch of records that is larger


def filled_topics(bootstrap: str, topics: Iterable[str]) -> set[str]:
    """Those of the topics that hold records. Raises KafkaException if the broker fails for good."""
    return {topic for topic, _ in _filled(bootstrap, topics)}


def _filled(bootstrap: str, topics: Iterable[str]) -> dict[Partition, range]:
    """The offsets of each partition that holds records."""
    log, topics = Log(bootstrap), list(topics)
    starts, ends = log.starts(topics), log.ends(topics)
    return {partition: range(starts[partition], end) for partition, end in ends.items() if end > starts[partition]}


def largest_mean_bytes(bootstrap: str, topics: Iterable[str]) -> float:
    """The mean size of records, key and value unpacked, where it is largest of a few places in the log; 0 if empty.

    Each topic counts by the number of its records, as Spark reads on in all of them evenly: a few records of megabytes
    in one of them don't make the batches of all small.

    Raises KafkaException if the broker fails for good.
    """
    filled = _filled(bootstrap, topics)
    if not filled:
        return 0.0
    records = Counter[str]()
    for (topic, _), offsets in filled.items():
        records[topic] += len(offsets)
    # Small fetches: a place is only looked at.
    settings = {"enable.partition.eof": True, "fetch.message.max.bytes": 64 * 1024, "log_level": 0}
    settings["fetch.wait.max.ms"] = 10  # by default a broker waits half a second to say that a partition is at its end
    settings["receive.message.max.bytes"] = UNPACKED_BYTES
    with open_consumer(client_config(bootstrap), READER, "read_uncommitted", settings) as consumer:
        means = [
            _means_at(consumer, {p: offsets[len(offsets) * place // PLACES] for p, offsets in filled.items()})
            for place in range(PLACES)
        ]
    return max(_weighted(found, records) for found in means)


def _weighted(means: Mapping[str, float], records: Mapping[str, int]) -> float:
    """The mean over all topics; one of which nothing was seen doesn't count."""
    seen = sum(records[topic] for topic in means)
    return sum(mean * records[topic] for topic, mean in means.items()) / seen if seen else 0.0


def _means_at(consumer: Consumer, offsets: Offsets) -> dict[str, float]:
    """The mean of each topic's records at these offsets; what can't be unpacked counts as UNPACKED_BYTES."""
    sizes: dict[str, list[int]] = defaultdict(list)
    left = dict.fromkeys(offsets, RECORDS)
    consumer.assign([TopicPartition(*partition, offset) for partition, offset in offsets.items()])
    deadline = time.monotonic() + SECONDS
    while left and time.monotonic() < deadline:
        for message in consumer.consume(RECORDS * len(left), 0.1):
            partition, error = (message.topic() or "", message.partition() or 0), message.error()
            if error is None and partition in left:
                sizes[partition[0]].append(len(message.key() or b"") + len(message.value() or b""))
            elif error is not None and error.code() == KafkaError._BAD_COMPRESSION:
                sizes[partition[0]].append(UNPACKED_BYTES)
            elif error is not None and error.code() != KafkaError._PARTITION_EOF and not error.retriable():
                raise KafkaException(error)
            left[partition] = left.get(partition, 0) - 1 if error is None else 0
        left = {partition: number for partition, number in left.items() if number > 0}
    return {topic: sum(found) / len(found) for topic, found in sizes.items()}
