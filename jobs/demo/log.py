"""A topic as it stands, for comparisons."""

from collections.abc import Iterator
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException, TopicPartition

from infra.kafka import client_config


def read_partitions(bootstrap: str, topic: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every committed record up to the topic's present end: its partition, and the parsed record."""
    consumer = Consumer(
        {
            **client_config(bootstrap),
            "group.id": "kappa.reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        for number in consumer.list_topics(topic, 30).topics[topic].partitions:
            for record in _read_partition(consumer, TopicPartition(topic, number)):
                yield number, record
    finally:
        consumer.close()


def _read_partition(consumer: Consumer, partition: TopicPartition) -> Iterator[dict[str, Any]]:
    position, end = consumer.get_watermark_offsets(partition, 30)
    consumer.assign([TopicPartition(partition.topic, partition.partition, position)])
    while position < end:
        message = consumer.poll(0.2)
        if message is not None:
            if message.error():
                raise KafkaException(message.error())
            yield orjson.loads(message.value() or b"null")
        # The position also steps over what aborted transactions and their markers left.
        position = max(position, consumer.position([partition])[0].offset)
