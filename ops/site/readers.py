"""Carries the consumer groups of readers over to a mirror's cluster: each goes on behind the record that it read last.

The groups of the jobs that a savepoint holds are not among them: it has their places. The notifier's is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState

from connectors.kafka.client import open_consumer, topic_partitions
from connectors.kafka.groups import Groups
from connectors.kafka.offsets import SECONDS, TAIL, Log
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets
from infra.errors import UserError
from ops.savepoints import landmarks

_IDLE = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}
OWN = "kappa."  # the groups of all generations' jobs begin with it


@dataclass(frozen=True)
class Reader:
    """A consumer group and how far it has read."""

    group: str
    offsets: Offsets


def readers_of(source: Log, topics: Iterable[str], others: Collection[str]) -> list[Reader]:
    """The groups that have offsets of these topics: of whoever is no job, and of the jobs whose groups are `others`."""
    places, connection = source.partitions(topics), client_config(source.bootstrap)
    groups = Groups(connection)
    try:
        wanted = [name for name in _states(source) if not name.startswith(OWN) or name in others]
        found = [Reader(name, groups.committed(name, places)) for name in sorted(wanted)]
    finally:
        groups.close()
    return [reader for reader in found if reader.offsets]


def check_idle(readers: Iterable[Reader], source: Log, target: Log) -> None:
    """Raises UserError if one of them still reads, on either side: its place would be another one at once."""
    names = {reader.group for reader in readers}
    for kafka in (source, target):
        if at_work := sorted(name for name, state in _states(kafka).items() if name in names and state not in _IDLE):
            raise UserError(
                f"group {at_work[0]!r} still reads on {kafka.bootstrap}; end it, or leave its place behind: "
                f"--without {at_work[0]}"
            )


def _states(kafka: Log) -> Mapping[str, ConsumerGroupState]:
    listed = kafka.admin.list_consumer_groups(request_timeout=SECONDS).result()
    return {one.group_id: one.state for one in listed.valid}


def places_at(target: Log, reader: Reader, source: Log) -> Offsets:
    """Where a reader of the source goes on at the target: at the beginning, if the source has nothing before its place.

    Raises UserError if the record before a place isn't found, or can't be told from others.
    """
    marks = landmarks.take(source, [reader.offsets])
    found = landmarks.relocated(target, marks, f"group {reader.group!r}")
    topics = {topic for topic, _ in reader.offsets}
    first, begin = source.starts(topics), target.starts(topics)
    for place, offset in reader.offsets.items():
        if (place, offset) not in found and offset - first[place] > TAIL:
            raise UserError(
                f"group {reader.group!r}: no record is found before its offset {offset} of {place[0]}/{place[1]}; let "
                f"it read on, or leave its place behind: --without {reader.group}"
            )
    return {place: found.get((place, offset), begin[place]) for place, offset in reader.offsets.items()}


def go_on_at(target: Log, group: str, places: Offsets) -> None:
    """Commit a reader's places."""
    with open_consumer(client_config(target.bootstrap), group) as consumer:
        consumer.commit(offsets=topic_partitions(places), asynchronous=False)
