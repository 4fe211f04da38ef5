"""A topic as a user of the servers writes and reads it."""

import time
import uuid

from confluent_kafka import Consumer, Producer


def write(bootstrap, topic, value):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    failures = []
    producer.produce(topic, value, key=value, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(30) == 0
    assert failures == []


def read(bootstrap, topic, count):
    """The first `count` values of a topic, sorted."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = []
    deadline = time.monotonic() + 60
    while len(values) < count:
        assert time.monotonic() < deadline, f"only {values}"
        message = consumer.poll(1)
        if message and not message.error():
            values.append(message.value())
    consumer.close()
    return sorted(values)
