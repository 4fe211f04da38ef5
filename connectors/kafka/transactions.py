"""The transactional writer of the Python side; a Spark task's is KafkaTask.java.

Kafka's transactions make records and consumer-group offsets visible together or not at all. `transactional.id` names
the writer across restarts: whoever opens one fences those before it, and the broker settles what they left open.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from connectors.kafka.client import CALL_SECONDS, Connection, make_producer
from connectors.kafka.deadline import within
from connectors.kafka.retries import retrying

# What a writer is told that is no longer the last one opened with its id, or whose transaction took too long.
FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})

Headers = list[tuple[str, str | bytes | None]]
# topic, partition (-1: by the key's hash), key, value, timestamp in ms (0: now), headers
Row = tuple[str, int, bytes | None, bytes | None, int, Headers | None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How many seconds a writer gives its broker."""

    retry: float = 0.0  # to get over errors that pass; 0: they are raised at once, for the caller to deal with
    call: float = CALL_SECONDS  # for a single answer
    # For `send_offsets` and `abort` to return: a little more than `call`, which librdkafka keeps to if it is well.
    offsets: float = CALL_SECONDS + 5


_RAISE_AT_ONCE = Patience()


class NoAnswerError(TimeoutError):
    """Raised when librdkafka doesn't return from a call: the writer is of no more use, a new one can go on.

    It may wait for ever for a group coordinator that died, whatever timeout it is given: its issue 5456.
    """


class TransactionalWriter:
    """A producer of one transaction after the other: begin, produce, send offsets, commit or abandon.

    Opening it fences its predecessors and settles what they left open: once this is made, every earlier transaction of
    the same id is committed or gone. Each method raises KafkaException; after one that isn't transient the transaction
    can only be abandoned, and after a fencing error the writer is of no more use.
    """

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        settings: Mapping[str, Any],
        patience: Patience = _RAISE_AT_ONCE,
    ) -> None:
        """`settings` are those of the producer, e.g. `transaction.timeout.ms`."""
        self.transactional_id, self.patience = transactional_id, patience
        self._refused: KafkaError | None = None  # why a record of this transaction may not be written
        reports = {"on_delivery": self._hear, "delivery.report.only.error": True}
        self.producer = make_producer(connection, {"transactional.id": transactional_id, **reports, **settings})
        self._retry(lambda: self.producer.init_transactions(self.patience.call))

    def _retry(self, call: Callable[[], None]) -> None:
        retrying(self.patience.retry)(call)

    def begin(self) -> None:
        """Open a transaction."""
        self._refused = None
        self.producer.begin_transaction()

    def produce(self, rows: Iterable[Row]) -> None:
        """Add rows to the open transaction."""
        produce, poll = self.producer.produce, self.producer.poll
        for topic, partition, key, value, timestamp, headers in rows:
            while True:
                try:
                    # By position: keywords cost a third of the call.
                    produce(topic, value, key, partition, None, None, timestamp, headers)
                    break
                except BufferError:
                    poll(0.5)
                except KafkaException as error:
                    if self._refused:  # of a record before this one
                        raise KafkaException(self._refused) from error
                    error.add_note(f"to {topic}, key {key!r}, {len(value or b'')} bytes")
                    raise

    def send_offsets(self, offsets: list[TopicPartition], group: Any) -> None:
        """Commit offsets of a consumer group (its `consumer_group_metadata()`) with the open transaction.

        Raises NoAnswerError if librdkafka doesn't return.
        """
        send, seconds = self.producer.send_offsets_to_transaction, self.patience.call
        self._retry(lambda: self._returning(lambda: send(offsets, group, seconds)))

    def commit(self) -> None:
        """Commit the transaction. A record that failed makes the commit fail, which says only how many there were."""
        try:
            self._retry(lambda: self.producer.commit_transaction(self.patience.call))
        except KafkaException as error:
            if self._refused and error.args[0].code() not in FENCED:
                raise KafkaException(self._refused) from error
            raise

    def _hear(self, error: KafkaError | None, message: Message) -> None:
        if error and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._refused = KafkaError(error.code(), f"{message.topic()}: {error.str()}")

    def abort(self) -> None:
        """Abort the transaction; the next one can begin. Raises NoAnswerError if librdkafka doesn't return."""
        self._retry(lambda: self._returning(lambda: self.producer.abort_transaction(self.patience.call)))

    def _returning(self, call: Callable[[], None]) -> None:
        try:
            within(self.patience.offsets, call)
        except TimeoutError as error:
            raise NoAnswerError(f"{self.transactional_id}: no answer in {self.patience.offsets:g} s") from error

    def abandon(self) -> None:
        """Give up the open transaction; what can't be aborted now is aborted when the next writer is opened."""
        try:
            self.producer.purge()
            within(self.patience.call, lambda: self.producer.abort_transaction(5))
        except (KafkaException, TimeoutError) as error:
            _log.warning("%s: transaction left to its successor: %s", self.transactional_id, error)
