"""The topic `notifications`: every step of every delivery, written in one transaction with the consumer's offsets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import structlog
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.client import topic_partitions
from connectors.kafka.deadline import within
from connectors.kafka.reader import read_topic
from connectors.kafka.security import client_config
from connectors.kafka.transactions import FENCED, Patience, Row, TransactionalWriter
from infra.contract.offsets import Offsets
from infra.contract.versions import version_header
from infra.errors import UserError
from jobs.notifier.delivery import Delivery, from_record

DEADLINE_SECONDS = 50  # of a transaction: longer than its calls may take
_PATIENCE = Patience(retry=20, call=10, offsets=20)
_SETTINGS = {"transaction.timeout.ms": 60_000, "message.max.bytes": 10_000_000}

_log = structlog.get_logger(__name__)


class Interrupted(Exception):
    """A transaction is done in whole or not at all, and only the log says which: everything is to be read again."""


class Journal:
    """Opening it fences a former notifier of the same generation, and settles the transaction that it left open."""

    def __init__(self, bootstrap: str, name: str, topic: str, rejected: str) -> None:
        self._bootstrap, self._name, self._topic, self._rejected = bootstrap, name, topic, rejected
        try:
            self._writer = TransactionalWriter(client_config(bootstrap), name, _SETTINGS, _PATIENCE)
        except KafkaException as error:
            raise Interrupted(error.args[0].str()) from error

    def read(self) -> Iterator[Delivery]:
        """The states of all deliveries, in the order in which they were written."""
        for message in read_topic(self._bootstrap, self._topic):
            try:
                yield from_record(orjson.loads(message.value() or b""))
            except (KeyError, TypeError, ValueError) as error:
                _log.error("state of a notification passed over", offset=message.offset(), reason=repr(error))

    def commit(
        self,
        deliveries: Sequence[Delivery],
        rejected: Sequence[Mapping[str, Any]],
        offsets: Offsets,
        group: Any,
    ) -> None:
        """Write states and dead letters, and commit `offsets` for the consumer whose group metadata is `group`.

        Raises:
            Interrupted: open another journal, and read everything again.
            UserError: another notifier has taken over.
        """
        rows = [*map(self._row, deliveries), *map(self._rejected_row, rejected)]

        def transact() -> None:
            self._writer.begin()
            self._writer.produce(rows)
            if offsets:
                self._writer.send_offsets(topic_partitions(offsets), group)
            self._writer.commit()

        try:
            within(DEADLINE_SECONDS, transact)
        except KafkaException as error:
            cause = self._cause(error)
            if cause.args[0].code() in FENCED:
                raise UserError(
                    f"{self._name}: another notifier took over ({cause.args[0].str()}); stop one of the two"
                ) from error
            raise Interrupted(cause.args[0].str()) from error
        except TimeoutError as error:
            raise Interrupted("no answer to a transaction") from error

    def _cause(self, failure: KafkaException) -> KafkaException:
        """The error that made the writer useless; a record that is written after it only fails because of it."""
        if failure.args[0].code() != KafkaError._FATAL:
            return failure
        try:
            self._writer.commit()  # refused, with the cause
        except KafkaException as cause:
            return cause
        return failure

    def _row(self, delivery: Delivery) -> Row:
        value = orjson.dumps(delivery.to_record())
        return self._topic, -1, delivery.key.encode(), value, 0, [version_header("notifications")]

    def _rejected_row(self, letter: Mapping[str, Any]) -> Row:
        source = letter["source"]
        key = f"{source['topic']}/{source['partition']}/{source['offset']}"
        return self._rejected, -1, key.encode(), orjson.dumps(letter), source["timestamp_unix_milli"], None
