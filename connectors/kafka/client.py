"""Makes the clients of Kafka: every consumer, producer and admin client of librdkafka in the product comes from here.

A *connection* is what any of them needs to reach its brokers: addresses, encryption and identity, as settings of
confluent_kafka. security.py makes it from the environment. Why a broker refuses it, refusals.py hears; a password that
is changed later, logins.py passes on.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from connectors.kafka.deadline import within
from connectors.kafka.logins import LOGINS, Client, login_of
from connectors.kafka.refusals import hear

Connection = Mapping[str, Any]
CALL_SECONDS = 30.0  # for a single answer of the broker
COMMITTED_SECONDS = 10.0  # for a group's offsets: that they are refused is known only afterwards
CLOSE_SECONDS = 10.0  # for leaving a group, and the end of a client's threads
# By default all brokers are forgotten once none answers. A request that waits for one that is forgotten, as the
# coordinator of a group, is never answered (librdkafka's issue 5511). Addresses of brokers are looked up again anyway.
_RECOVERY = {"metadata.recovery.strategy": "none"}
C = TypeVar("C", bound=Client)
READER = "kappa.reader"  # the group of whoever only reads: librdkafka wants one, nothing is ever committed to it

_log = logging.getLogger(__name__)


def make_admin(connection: Connection, settings: Mapping[str, Any] = {}) -> AdminClient:
    """A client that asks for and changes topics, settings and offsets."""
    config = _config(connection, settings)
    return _kept(AdminClient(config), config)


def make_producer(connection: Connection, settings: Mapping[str, Any] = {}) -> Producer:
    """A producer; transactional ones are made by transactions.TransactionalWriter."""
    config = _config(connection, settings)
    return _kept(_Producer(config), config)


def make_consumer(connection: Connection, group: str, settings: Mapping[str, Any] = {}) -> Consumer:
    """A consumer of a group that commits no offsets unless it is told to. Close it."""
    config = _config(connection, {"group.id": group, "enable.auto.commit": False, **settings})
    return _kept(_Consumer(config), config)


# The originals can't be referred to weakly.
class _Producer(Producer):
    pass


class _Consumer(Consumer):
    def close(self) -> None:
        """Leave the group and the brokers, within CLOSE_SECONDS.

        librdkafka may wait for its own threads for ever (its issue 5476): they are then left to the process's end.
        """
        LOGINS.forget(self)
        try:
            within(CLOSE_SECONDS, super().close)
        except TimeoutError:
            _log.warning("a consumer of Kafka did not end within %g s: it is left behind", CLOSE_SECONDS)


def _config(connection: Connection, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"error_cb": hear, **_RECOVERY, **LOGINS.present(connection), **settings}


def _kept(client: C, config: Mapping[str, Any]) -> C:
    if login := login_of(config):
        LOGINS.keep(client, login)
    return client


@contextmanager
def open_consumer(
    connection: Connection, group: str, isolation: str = "read_committed", settings: Mapping[str, Any] = {}
) -> Iterator[Consumer]:
    """A consumer that names the group but never joins it, closed at the end: for offsets, and for assigned partitions.

    With `read_committed` it waits for group offsets that an open transaction holds; else it gives those before.
    """
    consumer = make_consumer(connection, group, {"isolation.level": isolation, **settings})
    try:
        yield consumer
    finally:
        consumer.close()


def fetch_committed(consumer: Consumer, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The offsets and metadata that the consumer's group has committed; a negative offset where it has none.

    Raises KafkaException, also for an error of a single partition.
    """
    wanted = list(partitions)
    try:
        found = consumer.committed(wanted, timeout=COMMITTED_SECONDS)
    except KafkaException as error:
        is_unanswered = error.args[0].code() == KafkaError._TIMED_OUT
        raise (is_unanswered and _refusal(consumer)) or error from None
    for partition in found:
        if partition.error:
            raise KafkaException(partition.error)
    return found


def _refusal(consumer: Consumer) -> KafkaException | None:
    """What a broker has refused the consumer, which librdkafka says where records are read; the call only times out."""
    if consumer.assignment():  # a record could be read, and would be lost
        return None
    said = consumer.poll(0)
    error = said.error() if said else None
    return KafkaException(error) if error else None


def topic_partitions(offsets: Mapping[tuple[str, int], int]) -> list[TopicPartition]:
    """Offsets by (topic, partition) as confluent_kafka takes them."""
    return [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
