"""What the notifier reads: new records of its topics from the committed offsets on, and where machines are."""

from collections.abc import Sequence
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Polled

from connectors.kafka.client import READER, fetch_committed, make_admin, make_consumer
from connectors.kafka.offsets import Log, latest_offsets
from connectors.kafka.reader import consume, value_of
from connectors.kafka.retries import retrying
from connectors.kafka.security import client_config
from infra.contract.dead_letters import InvalidRecordError, Source
from infra.contract.inventory import PLACES
from infra.contract.offsets import Offsets, Partition
from jobs.notifier.notice import Places
from jobs.runtime.intake import parse, watermark_in
from jobs.runtime.shard_state import Message

BATCH_RECORDS = 500
SECONDS = 30.0

_log = structlog.get_logger(__name__)


class Intake:
    """Reads committed records of all partitions of some topics. It is assigned them: the journal keeps others away.

    A topic of which the group has no offsets is read from its end: what has happened before the notifier's first start
    is no news.
    """

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str]) -> None:
        connection = client_config(bootstrap)
        settings = {
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # an offset that is out of range is a gap, which must be noticed
            # The end is behind the last transaction's marker: only with it can the lag come down to 0.
            "enable.partition.eof": True,
        }
        self._consumer = make_consumer(connection, group, settings)
        # Of its own connection: on the consumer's, a request waits for as long as a fetch that finds nothing.
        self._admin = make_admin(connection)
        self._log = Log(bootstrap)
        partitions = self._log.partitions(topics)
        self._committed = self._read_committed(partitions)
        self.gaps: dict[Partition, tuple[int, int]] = {}  # what retention has deleted: first offset, and next one
        self.offsets: Offsets = self._begin(partitions)  # to be read next
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self.offsets.items()])

    def _read_committed(self, partitions: Sequence[Partition]) -> Offsets:
        wanted = [TopicPartition(*place) for place in partitions]
        found = retrying(SECONDS)(lambda: fetch_committed(self._consumer, wanted))
        return {(at.topic, at.partition): at.offset for at in found if at.offset >= 0}

    def _begin(self, partitions: Sequence[Partition]) -> Offsets:
        topics, known = {topic for topic, _ in partitions}, {topic for topic, _ in self._committed}
        starts, ends = self._log.starts(topics), latest_offsets(self._admin, partitions, SECONDS)
        # A partition that is new in a topic that is known has only news.
        begin = {**starts, **self._log.ends(topics - known), **self._committed}
        for place in partitions:
            if begin[place] < starts[place]:
                self.gaps[place] = begin[place], starts[place]
            if not starts[place] <= begin[place] <= ends[place]:  # the topic may also have been made anew
                begin[place] = starts[place]
        return begin

    def gather(self, seconds: float) -> list[Message]:
        """The records that come within so many seconds; `offsets` stand behind them. Raises KafkaException."""
        found: list[Message] = []
        for polled in consume(self._consumer, BATCH_RECORDS, seconds):
            error = polled.error()
            place, offset = (polled.topic() or "", polled.partition() or 0), polled.offset() or 0
            if error is None:
                found.append(_received(polled))
                self.offsets[place] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self.offsets[place] = offset
            elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.fatal():
                raise KafkaException(error)
            else:
                _log.warning("kafka unavailable", reason=error.str())
        return found

    def moved(self) -> Offsets:
        """The offsets that are not committed yet."""
        return {place: offset for place, offset in self.offsets.items() if self._committed.get(place) != offset}

    def committed(self, offsets: Offsets) -> None:
        """These offsets are committed now."""
        self._committed.update(offsets)

    def membership(self) -> Any:
        """The group's metadata, with which offsets are committed in a transaction."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


class Whereabouts:
    """The places of machines, from the records of `novelties`: those of an incident's machines are there before it.

    Its watermarks say how far event time has come.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.event_time = 0
        self._places: dict[str, tuple[int, Places]] = {}  # with the time of the record that said so
        settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
        self._consumer = make_consumer(client_config(bootstrap), READER, settings)
        self._topic, self._log = topic, Log(bootstrap)
        self._read = self._log.starts([topic])  # up to where
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self._read.items()])

    def __call__(self, machine: str) -> Places:
        """The places of a machine; empty if none is known."""
        return self._places.get(machine, (0, {}))[1]

    def catch_up(self) -> None:
        """Read to the present end of the topic, as committed records end. Raises KafkaException."""
        ends = self._log.ends([self._topic])
        while any(self._read[place] < end for place, end in ends.items()):
            for polled in consume(self._consumer, 10_000, 1.0):
                self._take(polled)

    def evict(self, before: int) -> None:
        """Forget what was said before a time."""
        self._places = {machine: known for machine, known in self._places.items() if known[0] >= before}

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _take(self, polled: Polled) -> None:
        error, place = polled.error(), (polled.topic() or "", polled.partition() or 0)
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        self._read[place] = (polled.offset() or 0) + (error is None)
        if error is None:
            try:
                self._learn(_received(polled))
            except (InvalidRecordError, KeyError, TypeError, ValueError, AttributeError):
                return  # the job that works with this topic says what is wrong with it

    def _learn(self, message: Message) -> None:
        record = parse(message.value)
        if (watermark := watermark_in(record, message)) is not None:
            self.event_time = max(self.event_time, watermark)
            return
        facts, time_unix_nano = record.get("inventory") or {}, int(record["time_unix_nano"])
        places = {name: str(fact) for name in PLACES if (fact := facts.get(name))}
        self._places[str(record["machine"])] = time_unix_nano, places


def _received(polled: Polled) -> Message:
    source = Source(polled.topic() or "", polled.partition() or 0, polled.offset() or 0, polled.timestamp()[1])
    return Message(source, value_of(polled))
