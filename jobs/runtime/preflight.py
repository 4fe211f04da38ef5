"""What is checked before a job starts, so that bad surroundings cost one line and not a stack trace."""

import shutil

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.errors import UserError
from infra.topics import TopicMap
from jobs.runtime.settings import Settings

MINIMUM_FREE_BYTES = 512 * 1024**2


def check_surroundings(settings: Settings, topics: TopicMap) -> None:
    """Raises UserError if no broker answers, a topic is missing or has other partitions, or the disk is full."""
    settings.home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.home).free
    if free < MINIMUM_FREE_BYTES:
        raise UserError(
            f"KAPPA_HOME={settings.home}: {free // 1024**2} MB free; free at least 512 MB or choose another"
        )
    found = _partitions(settings.kafka_bootstrap)
    for topic in topics:
        if topic.name not in found:
            raise UserError(f"topic {topic.name!r} is not on {settings.kafka_bootstrap}: run `kappa topics apply`")
        if topic.shards and found[topic.name] != topic.partitions:
            raise UserError(
                f"topic {topic.name!r} has {found[topic.name]} partitions, the map says {topic.partitions}: "
                "a sharded topic can't change; start a new generation"
            )


def _partitions(bootstrap: str) -> dict[str, int]:
    try:
        metadata = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=15)
    except KafkaException:
        raise UserError(
            f"KAPPA_KAFKA_BOOTSTRAP={bootstrap}: no broker answers; is it right, and is Kafka up?"
        ) from None
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}
