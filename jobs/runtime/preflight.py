"""Checks disk, broker and topics before a job starts, so that a wrong environment gives one line, not a traceback."""

import shutil
import threading
import time
from collections.abc import Collection

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from connectors.kafka.client import make_admin
from connectors.kafka.security import client_config
from infra.contract.topics import Topic
from infra.errors import UserError
from jobs.runtime.settings import Settings

MINIMUM_FREE_BYTES = 512 * 1024**2


def check_surroundings(settings: Settings, topics: Collection[Topic], stop: threading.Event) -> None:
    """Raises UserError if no broker answers, one of `topics` is missing or has other partitions, or the disk is full.

    Waits settings.broker_patience_seconds for broker and topics, as a deployment starts everything at once.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.home).free
    if free < MINIMUM_FREE_BYTES:
        raise UserError(
            f"KAPPA_HOME={settings.home}: {free // 1024**2} MB free; free at least 512 MB or choose another"
        )
    found = reach_broker(settings, {topic.name for topic in topics}, stop)
    for topic in topics:
        if topic.shards and found[topic.name] != topic.partitions:
            raise UserError(
                f"topic {topic.name!r} has {found[topic.name]} partitions, the map says {topic.partitions}: "
                "a sharded topic can't change; start a new generation"
            )


def reach_broker(settings: Settings, wanted: set[str], stop: threading.Event) -> dict[str, int]:
    """The number of partitions by topic; waits settings.broker_patience_seconds for the broker and the topics `wanted`.

    Raises UserError if none answers, or a topic is missing.
    """
    bootstrap = settings.kafka_bootstrap
    admin = make_admin(client_config(bootstrap), {"log_level": 0})
    deadline = time.monotonic() + settings.broker_patience_seconds
    while True:
        found = _ask(admin)
        missing = wanted - (found or {}).keys()
        if found is not None and not missing:
            return found
        if time.monotonic() >= deadline or stop.wait(1):
            break
    if found is None:
        raise UserError(f"KAPPA_KAFKA_BOOTSTRAP={bootstrap}: no broker answers; is Kafka up there?")
    raise UserError(f"topic {min(missing)!r} is not on {bootstrap}: run `kappa topics apply`")


def _ask(admin: AdminClient) -> dict[str, int] | None:
    try:
        topics = admin.list_topics(timeout=15).topics
    except KafkaException:
        return None
    return {name: len(topic.partitions) for name, topic in topics.items()}
