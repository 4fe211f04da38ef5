"""What is checked before a job starts, so that bad surroundings cost one line and not a stack trace."""

import shutil
import threading
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.errors import UserError
from infra.topics import TopicMap
from jobs.runtime.settings import Settings

MINIMUM_FREE_BYTES = 512 * 1024**2


def check_surroundings(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Raises UserError if no broker answers, a topic is missing or has other partitions, or the disk is full."""
    settings.home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.home).free
    if free < MINIMUM_FREE_BYTES:
        raise UserError(
            f"KAPPA_HOME={settings.home}: {free // 1024**2} MB free; free at least 512 MB or choose another"
        )
    found = _partitions(settings, stop)
    for topic in topics:
        if topic.name not in found:
            raise UserError(f"topic {topic.name!r} is not on {settings.kafka_bootstrap}: run `kappa topics apply`")
        if topic.shards and found[topic.name] != topic.partitions:
            raise UserError(
                f"topic {topic.name!r} has {found[topic.name]} partitions, the map says {topic.partitions}: "
                "a sharded topic can't change; start a new generation"
            )


def _partitions(settings: Settings, stop: threading.Event) -> dict[str, int]:
    """Partitions by topic, from a broker that may need time to come back."""
    bootstrap = settings.kafka_bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + settings.broker_patience_seconds
    while True:
        try:
            metadata = admin.list_topics(timeout=15)
            return {name: len(topic.partitions) for name, topic in metadata.topics.items()}
        except KafkaException:
            if time.monotonic() >= deadline or stop.wait(1):
                fault = f"KAPPA_KAFKA_BOOTSTRAP={bootstrap}: no broker answers; is Kafka up there?"
                raise UserError(fault) from None
